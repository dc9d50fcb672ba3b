#include "distributed/sockets/library.h"

#include <zmq.h>

#include <string>
#include <tuple>

#include "crema/error.h"

namespace crema {

LibraryFacts DescribeLibrary() {
  LibraryFacts facts;
  zmq_version(&facts.major, &facts.minor, &facts.patch);
  facts.has_curve = zmq_has("curve") == 1;
  return facts;
}

void CheckLibrary(const LibraryFacts& facts) {
  const std::string name =
      "libzmq " + std::to_string(facts.major) + "." + std::to_string(facts.minor) + "." + std::to_string(facts.patch);
  if (std::tie(facts.major, facts.minor, facts.patch) < std::make_tuple(4, 3, 3)) {
    throw EnvironmentError(name +
                           " lets strangers crash it before they authenticate (CVE-2020-15166 and earlier ones); " +
                           "install libzmq 4.3.3 or later");
  }
  if (!facts.has_curve) {
    throw EnvironmentError(name + " was built without CURVE, so it knows no keys; install one that was built with " +
                           "libsodium, as the packages libzmq3-dev and zeromq-devel are");
  }
}

}  // namespace crema
