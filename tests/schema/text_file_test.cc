// Files that cannot be read, and whose fault it is.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "crema/files.h"
#include "errors.h"

namespace crema {
namespace {

std::string UserErrorOf(const std::string& path) {
  return ThrownBy<UserError>([&] { ReadNetFile(path); });
}

TEST(TextFile, AbsentFileNamesTheWorkingDirectory) {
  EXPECT_EQ(UserErrorOf("no/such/net.prototxt"),
            "no/such/net.prototxt: error: there is no such file; relative paths start at the working directory " +
                std::filesystem::current_path().string());
  EXPECT_EQ(UserErrorOf("/no/such/net.prototxt"), "/no/such/net.prototxt: error: there is no such file");
  EXPECT_EQ(UserErrorOf(""), "error: the path of a prototxt file is empty");
  EXPECT_THROW(ReadSolverFile("no/such/solver.prototxt"), UserError);
}

TEST(TextFile, Folder) { EXPECT_EQ(UserErrorOf("/"), "/: error: is a folder; expected a prototxt file"); }

TEST(TextFile, FileWithoutPermissionIsTheEnvironments) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const std::string path = ::testing::TempDir() + "/text_file_test.prototxt";
  std::ofstream(path) << "name: \"n\"";
  ::chmod(path.c_str(), 0);
  EXPECT_THROW(ReadNetFile(path), EnvironmentError);
  EXPECT_THROW(ReadWeights(path), EnvironmentError);
  std::filesystem::remove(path);
}

TEST(TextFile, ReadsWhatWasWritten) {
  const std::string path = ::testing::TempDir() + "/text_file_test_net.prototxt";
  std::ofstream(path) << "name: \"n\"\r\nlayer {\r\n  name: \"a\"\r\n}\r\n";
  const NetFile file = ReadNetFile(path);
  EXPECT_EQ(file.net.name(), "n");
  EXPECT_EQ(file.source->Layer(0, "name").ToString(), path + ":3:3");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace crema
