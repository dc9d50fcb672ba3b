// The file of the program that runs.
#ifndef CREMA_BASE_OWN_PROGRAM_H_
#define CREMA_BASE_OWN_PROGRAM_H_

#include <filesystem>

namespace crema {

// Its absolute path, links resolved; empty where the system does not tell (no /proc). Where the file was removed since,
// Linux appends " (deleted)".
inline std::filesystem::path OwnProgram() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/exe", unknown);
}

}  // namespace crema

#endif  // CREMA_BASE_OWN_PROGRAM_H_
