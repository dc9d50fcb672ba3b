// crema keygen, with the real program.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "tools/program.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

TEST(Keygen, WritesAPairAndTellsNoSecret) {
  const ScratchFolder folder;
  const Finished run = RunProgram({"crema", "keygen", "--output=worker1"}, {.folder = folder.path()});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  struct stat status;
  ASSERT_EQ(stat((folder / "worker1.secret").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const std::string text = ReadText(folder / "worker1.secret");
  const size_t begin = text.find("secret = \"") + 10;
  const std::string secret = text.substr(begin, 40);
  EXPECT_EQ(secret.find('"'), std::string::npos) << "not of 40 characters";
  EXPECT_EQ((run.out + run.err + ReadText(folder / "worker1.public")).find(secret), std::string::npos);
  EXPECT_NE(ReadText(folder / "worker1.public").find("\npublic = \""), std::string::npos);
  for (const char* part : {"worker1.secret", "worker1.public", "authorized_keys_dir", "--server_key"}) {
    EXPECT_NE(run.out.find(part), std::string::npos) << part;
  }
}

TEST(Keygen, OverwritesNothing) {
  const ScratchFolder folder;
  ASSERT_EQ(RunProgram({"crema", "keygen", "--output=a"}, {.folder = folder.path()}).exit_code, 0);
  const std::string before = ReadText(folder / "a.secret");
  const Finished run = RunProgram({"crema", "keygen", "--output=a"}, {.folder = folder.path()});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(run.Says("a.secret: error: exists already")) << run.err;
  EXPECT_EQ(ReadText(folder / "a.secret"), before);
}

TEST(Keygen, MistakesAreTold) {
  const ScratchFolder folder;
  const auto run = [&](const std::string& output) {
    return RunProgram({"crema", "keygen", "--output=" + output}, {.folder = folder.path()});
  };
  EXPECT_EQ(run("").exit_code, 2);
  EXPECT_TRUE(run("a.secret").Says("give the name without .secret"));
  EXPECT_TRUE(run("keys/").Says("is a folder"));
  const Finished absent = run("absent/a");
  EXPECT_EQ(absent.exit_code, 1);
  EXPECT_TRUE(absent.Says("does its folder exist?")) << absent.err;
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace crema::testing_tools
