// Whole files of a test.
#ifndef CREMA_TESTS_FILES_H_
#define CREMA_TESTS_FILES_H_

#include <fstream>
#include <iterator>
#include <string>

namespace crema {

inline void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// All bytes of a file; none where there is no file.
inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace crema

#endif  // CREMA_TESTS_FILES_H_
