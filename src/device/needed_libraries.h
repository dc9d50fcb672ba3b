// What a shared library links.
#ifndef CREMA_DEVICE_NEEDED_LIBRARIES_H_
#define CREMA_DEVICE_NEEDED_LIBRARIES_H_

#include <string>
#include <vector>

namespace crema {

// The names by which a shared library asks for others ("libcudart.so.13"), in its order; none where the file cannot be
// read or is no library of this machine's kind. (System V ABI: ELF-64 object files, the dynamic section.)
std::vector<std::string> NeededLibraries(const std::string& path);

}  // namespace crema

#endif  // CREMA_DEVICE_NEEDED_LIBRARIES_H_
