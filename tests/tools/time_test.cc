// crema time --data.
#include <gtest/gtest.h>

#include <string>

#include "tools/patterns.h"
#include "tools/program.h"
#include "tools/tiny_training.h"

namespace crema::testing_tools {
namespace {

TEST(TimeData, ShowsTheDataLayerAndWhatLimits) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {});
  const Finished run =
      RunProgram({"crema", "time", "--model=net.prototxt", "--data", "--iterations=20"}, {.folder = folder.path()});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(Matches(run.out, "Tiny, phase TRAIN, data layers alone, means of 20 batches")) << run.out;
  // Name, type, rate, shape, batch, time and threads.
  EXPECT_TRUE(Matches(run.out, "data +Data +[0-9.]+ [kM]? +1x10x10 +16 +[0-9.]+ m?s +1\n")) << run.out;
  EXPECT_TRUE(Matches(run.out,
                      "A training pass of the whole net takes [0-9.]+ m?s, [0-9]+ % of it "
                      "waiting for data: the (net|data) limits"))
      << run.out;
  const Finished test = RunProgram(
      {"crema", "time", "--model=net.prototxt", "--data", "--phase=TEST", "--iterations=5", "--data_threads=3"},
      {.folder = folder.path()});
  ASSERT_EQ(test.exit_code, 0) << test.err;
  EXPECT_TRUE(Matches(test.out, " 23 +[0-9.]+ m?s +3\n")) << test.out;
  EXPECT_NE(test.out.find("A forward pass"), std::string::npos) << test.out;
}

TEST(TimeData, MistakesAreNamed) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {});
  folder.Write("deploy.prototxt",
               "layer { name: \"in\" type: \"Input\" top: \"x\" input_param { shape { dim: 1 dim: 4 } } }\n"
               "layer { name: \"relu\" type: \"ReLU\" bottom: \"x\" top: \"y\" }\n");
  const auto time = [&](const std::string& model, const std::string& data) {
    return RunProgram({"crema", "time", "--model=" + model, data}, {.folder = folder.path()});
  };
  const Finished deploy = time("deploy.prototxt", "--data");
  EXPECT_EQ(deploy.exit_code, 2);
  EXPECT_TRUE(deploy.Says("has no layer that reads data")) << deploy.err;
  const Finished path = time("net.prototxt", "--data=db");
  EXPECT_EQ(path.exit_code, 2);
  EXPECT_TRUE(path.Says("--data without a value")) << path.err;
  // Without it, the table of layers.
  const Finished table = time("net.prototxt", "--nodata");
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_NE(table.out.find("conv1"), std::string::npos);
}

}  // namespace
}  // namespace crema::testing_tools
