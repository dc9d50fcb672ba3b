#include "distributed/sockets/private_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "temporary_folder.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

class PrivateFolders : public testing::Test {
 protected:
  PrivateFolders() { setenv("TMPDIR", temporary_.path().c_str(), 1); }
  ~PrivateFolders() override {
    if (before_.empty()) {
      unsetenv("TMPDIR");
    } else {
      setenv("TMPDIR", before_.c_str(), 1);
    }
  }

  // As a process leaves it that is killed before it listens.
  std::string MakeFolder(const std::string& name, mode_t mode = 0700) const {
    const std::string path = temporary_ / name;
    EXPECT_EQ(mkdir(path.c_str(), mode), 0);
    chmod(path.c_str(), mode);
    return path;
  }

  const std::string before_ = std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "";
  const TemporaryFolder temporary_;
};

TEST_F(PrivateFolders, AnEmptyOneOfAKilledProcessIsRemoved) {
  const std::string left = MakeFolder("crema-aB3dE6");
  const std::vector<std::string> others = {MakeFolder("crema-backup", 0755), MakeFolder("crema-longer1"),
                                           MakeFolder("other-aB3dE6"), MakeFolder("crema-filled")};
  std::ofstream(others.back() + "/file") << "somebody's";
  {
    const PrivateFolder folder;
    EXPECT_FALSE(fs::exists(left));
    EXPECT_TRUE(fs::exists(fs::path(folder.socket()).parent_path()));
  }
  for (const std::string& other : others) EXPECT_TRUE(fs::exists(other)) << other;
}

TEST_F(PrivateFolders, OneThatIsInUseStays) {
  const PrivateFolder one;
  std::vector<std::unique_ptr<PrivateFolder>> more;
  for (int i = 0; i < 20; ++i) more.push_back(std::make_unique<PrivateFolder>());
  more.clear();
  EXPECT_TRUE(fs::exists(fs::path(one.socket()).parent_path())) << "though there is no socket in it yet";
}

}  // namespace
}  // namespace crema
