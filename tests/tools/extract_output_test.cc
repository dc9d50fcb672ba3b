// What crema extract writes over, and what it leaves behind.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tools/extract_testing.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

using ExtractOutput = Extract;

TEST_F(ExtractOutput, ReplacesOnlyWhenTold) {
  folder_.Write("f.csv", "mine");
  const Finished refused = Run({"--output=f.csv", "images"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(refused.Says("f.csv: error: exists already; choose another name, or pass --force")) << refused.err;
  EXPECT_EQ(ReadText(folder_ / "f.csv"), "mine");
  EXPECT_EQ(Run({"--output=f.csv", "--force", "images"}).exit_code, 0);
  EXPECT_TRUE(ReadText(folder_ / "f.csv").starts_with("record,label,0,1,2\n"));
}

TEST_F(ExtractOutput, DoesNotReplaceWhatItReads) {
  ASSERT_EQ(Run({"--blob=data", "--output=data_lmdb", "images"}).exit_code, 0);
  const std::string before = ReadText(folder_ / "data_lmdb/data.mdb");
  const Finished run = Run({"--output=./data_lmdb", "--force", "data_lmdb"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(run.Says("data_lmdb: error: is what is read; write to another name")) << run.err;
  EXPECT_EQ(ReadText(folder_ / "data_lmdb/data.mdb"), before);
  const Finished inside = Run({"--output=data_lmdb/f.csv", "data_lmdb"});
  EXPECT_EQ(inside.exit_code, 2);
  EXPECT_TRUE(inside.Says("lies in \"data_lmdb\", which is read")) << inside.err;
  EXPECT_EQ(Run({"--output=images/f.csv", "images"}).exit_code, 0);
  fs::copy_file(folder_ / "net.caffemodel", folder_ / "more.csv");
  for (const std::string weights : {"more.csv,net.caffemodel", "net.caffemodel,more.csv"}) {
    const Finished listed = RunProgram({"crema", "extract", "--model=deploy.prototxt", "--weights=" + weights,
                                        "--output=more.csv", "--force", "images"},
                                       {.folder = folder_.path()});
    EXPECT_EQ(listed.exit_code, 2) << weights;
    EXPECT_TRUE(listed.Says("more.csv: error: is what is read")) << listed.err;
    EXPECT_EQ(ReadText(folder_ / "more.csv"), ReadText(folder_ / "net.caffemodel"));
  }
}

TEST_F(ExtractOutput, LeavesNothingOnAFullDisk) {
  for (int i = 0; i < 40; ++i) WritePng(folder_, "many/" + std::to_string(i) + ".png", Coloured(64, 64, i, 0, 0));
  for (const std::string output : {"f.csv", "f.h5", "f_lmdb"}) {
    const Finished run = RunProgram({"crema", "extract", "--model=deploy.prototxt", "--weights=net.caffemodel",
                                     "--blob=data", "--batch=40", "--output=" + output, "many"},
                                    {.folder = folder_.path(), .file_size_limit = 4096});
    if (output == "f.h5" && run.Says("without HDF5")) continue;
    EXPECT_EQ(run.exit_code, 1) << output << run.err;
    EXPECT_TRUE(run.Says("cannot ") && run.Says(output)) << run.err;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      EXPECT_FALSE(entry.path().filename().string().starts_with("f.") || entry.path().filename() == "f_lmdb" ||
                   entry.path().string().find(".tmp.") != std::string::npos)
          << entry.path();
    }
  }
}

}  // namespace
}  // namespace crema::testing_tools
