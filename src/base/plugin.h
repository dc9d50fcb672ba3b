// Libraries that crema loads only when it needs them, so that programs that do not need them start without.
#ifndef CREMA_BASE_PLUGIN_H_
#define CREMA_BASE_PLUGIN_H_

#include <string>

namespace crema {

// Where such a library is: what the environment variable names, else `file` beside the library that holds crema.
std::string PluginPath(const char* variable, const char* file);

// Whether there is a file at such a path; true for names without a folder, which the system's own search decides.
bool MayBeThere(const std::string& path);

}  // namespace crema

#endif  // CREMA_BASE_PLUGIN_H_
