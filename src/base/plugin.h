// Libraries that crema loads only when it needs them, so that programs that do not need them start without.
#ifndef CREMA_BASE_PLUGIN_H_
#define CREMA_BASE_PLUGIN_H_

#include <string>

namespace crema {

// Where such a library is: what the environment variable names, else `file` beside the library that holds crema.
std::string PluginPath(const char* variable, const char* file);

// Whether there is a file at such a path; true for names without a folder, which the system's own search decides.
bool MayBeThere(const std::string& path);

// A library of crema that is there where crema was built with something optional, and exports a table of functions.
struct OptionalLibrary {
  const char *variable, *file;  // see PluginPath
  const char *name, *package;   // what it was built with, "HDF5", and Debian's package of that with its headers
  const char* table;            // the name of the table, which begins with an int: the version of the interface
  int interface_version;
};

// Loads it, never to be closed, and returns the table. `purpose` is "read x.h5". Throws EnvironmentError, with what to
// install, where it is absent or does not load.
const void* LoadTable(const OptionalLibrary& library, const std::string& purpose);

}  // namespace crema

#endif  // CREMA_BASE_PLUGIN_H_
