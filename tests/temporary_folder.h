// A folder of its own for each test: two processes never share one, not even when one left its behind.
#ifndef CREMA_TESTS_TEMPORARY_FOLDER_H_
#define CREMA_TESTS_TEMPORARY_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace crema {

// Removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "crema_test_XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make " + pattern);
    path_ = pattern;
    // Programs of other users are to look at what lies there.
    std::filesystem::permissions(path_, std::filesystem::perms(0755));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace crema

#endif  // CREMA_TESTS_TEMPORARY_FOLDER_H_
