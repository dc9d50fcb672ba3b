// What a folder holds beside the files of a request.
#include "finetune/output_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "crema/error.h"
#include "errors.h"
#include "files.h"
#include "temporary_folder.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

class OutputFolder : public testing::Test {
 protected:
  // Writes the solver of a request with these weights.
  FoundFolder Write(const std::string& weights) {
    return WriteOutputFolder(folder_.path(), {{"solver.prototxt", "weights: \"" + weights + "\"\n"}}, false);
  }

  TemporaryFolder folder_;
};

TEST_F(OutputFolder, WeightsMayHaveAnotherPlace) {
  for (const char* place : {"a", "b", "c"}) fs::create_directory(folder_ / place);
  WriteFile(folder_ / "a/w.caffemodel", "1234");
  WriteFile(folder_ / "b/w.caffemodel", "1234");
  WriteFile(folder_ / "c/w.caffemodel", "1235");
  EXPECT_FALSE(Write(folder_ / "a/w.caffemodel").same_request);
  EXPECT_TRUE(Write(folder_ / "b/w.caffemodel").same_request);
  EXPECT_THROW(Write(folder_ / "c/w.caffemodel"), UserError);
  EXPECT_TRUE(Write(folder_ / "b/w.caffemodel").same_request);
}

// Folders are read by nobody, and have no size.
TEST_F(OutputFolder, WeightsThatCannotBeReadAreNotTheSame) {
  for (const char* place : {"a/w.caffemodel", "b/w.caffemodel"}) fs::create_directories(folder_ / place);
  Write(folder_ / "a/w.caffemodel");
  EXPECT_EQ(ThrownBy<EnvironmentError>([&] { Write(folder_ / "b/w.caffemodel"); }),
            (folder_ / "a/w.caffemodel") + ": cannot be read: it is a folder");
}

}  // namespace
}  // namespace crema
