// Small files of a test.
#ifndef CREMA_TESTS_SOLVER_FILES_H_
#define CREMA_TESTS_SOLVER_FILES_H_

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "temporary_folder.h"

namespace crema {

// Where small files are written, too.
class WritableFolder : public TemporaryFolder {
 public:
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(*this / name, std::ios::binary) << text;
    return *this / name;
  }
};

inline std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What `body` throws as E, or "" when it does not.
template <typename E, typename Body>
std::string ThrownBy(const Body& body) {
  try {
    body();
  } catch (const E& error) {
    return error.what();
  }
  return {};
}

}  // namespace crema

#endif  // CREMA_TESTS_SOLVER_FILES_H_
