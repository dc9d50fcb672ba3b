// A folder for the key files of one test.
#ifndef CREMA_TESTS_DISTRIBUTED_KEY_FOLDER_H_
#define CREMA_TESTS_DISTRIBUTED_KEY_FOLDER_H_

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "distributed/keys.h"

namespace crema::testing_distributed {

// Removed with everything in it. Cases run as processes of their own, at the same time.
class KeyFolder {
 public:
  KeyFolder() : path_(testing::TempDir() + "/crema_keys." + std::to_string(getpid())) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_ + "/authorized");
  }
  ~KeyFolder() { std::filesystem::remove_all(path_); }
  KeyFolder(const KeyFolder&) = delete;
  KeyFolder& operator=(const KeyFolder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::string authorized() const { return path_ + "/authorized"; }

  // A new pair NAME.secret and NAME.public.
  KeyPair Make(const std::string& name) const {
    const KeyPair pair = MakeKeyPair();
    WriteKeyPair(pair, *this / name);
    return pair;
  }
  // Copies NAME.public to where it lets its owner in.
  void Authorize(const std::string& name) const {
    std::filesystem::copy_file(*this / (name + ".public"), authorized() + "/" + name + ".public",
                               std::filesystem::copy_options::overwrite_existing);
  }
  std::string Write(const std::string& name, const std::string& text, mode_t mode = 0600) const {
    const std::string path = *this / name;
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }
  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(*this / name).rdbuf();
    return text.str();
  }

 private:
  std::string path_;
};

}  // namespace crema::testing_distributed

#endif  // CREMA_TESTS_DISTRIBUTED_KEY_FOLDER_H_
