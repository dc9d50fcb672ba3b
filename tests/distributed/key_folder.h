// A folder for the key files of one test.
#ifndef CREMA_TESTS_DISTRIBUTED_KEY_FOLDER_H_
#define CREMA_TESTS_DISTRIBUTED_KEY_FOLDER_H_

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "distributed/security/keys.h"
#include "files.h"
#include "temporary_folder.h"

namespace crema::testing_distributed {

class KeyFolder : public TemporaryFolder {
 public:
  KeyFolder() { std::filesystem::create_directories(authorized()); }

  std::string authorized() const { return path() + "/authorized"; }

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
    WriteFile(path, text);
    chmod(path.c_str(), mode);
    return path;
  }
  std::string Read(const std::string& name) const { return ReadFile(*this / name); }
};

}  // namespace crema::testing_distributed

#endif  // CREMA_TESTS_DISTRIBUTED_KEY_FOLDER_H_
