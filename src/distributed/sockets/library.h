// Whether the ZeroMQ library that was loaded can be trusted with a network.
#ifndef CREMA_DISTRIBUTED_SOCKETS_LIBRARY_H_
#define CREMA_DISTRIBUTED_SOCKETS_LIBRARY_H_

namespace crema {

struct LibraryFacts {
  int major = 0, minor = 0, patch = 0;
  bool has_curve = false;
};

// Of the loaded libzmq, which may be another than the one of the build.
LibraryFacts DescribeLibrary();

// Throws EnvironmentError that says what to install where libzmq is older than 4.3.3, which strangers can crash or take
// over before they authenticate (CVE-2019-6250, CVE-2019-13132, CVE-2020-15166), or has no CURVE.
void CheckLibrary(const LibraryFacts& facts = DescribeLibrary());

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SOCKETS_LIBRARY_H_
