// crema import; what comes out of models is tested in tests/onnx.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tools/colour_net.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

// Models are made by crema export.
class Import : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteColourNet(folder_);
    const Finished done = Run({"export", "--model=deploy.prototxt", "--weights=net.caffemodel", "--output=net.onnx"});
    ASSERT_EQ(done.exit_code, 0) << done.err;
  }

  Finished Run(std::vector<std::string> words) const {
    words.insert(words.begin(), "crema");
    return RunProgram(words, {.folder = folder_.path()});
  }

  const ScratchFolder folder_;
};

TEST_F(Import, WritesANetThatPredicts) {
  const Finished done = Run({"import", "--model=net.onnx", "--output=back"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.err, "");
  EXPECT_EQ(done.out.find("back.prototxt, back.caffemodel: "), 0u) << done.out;
  EXPECT_NE(done.out.find("\ninput   data  1x3x4x4\noutput  prob  1x3\n"), std::string::npos) << done.out;
  const std::string net = ReadText(folder_ / "back.prototxt");
  EXPECT_EQ(net.find("# Of net.onnx; its weights: back.caffemodel\n"), 0u) << net;
  // What both files compute for the same numbers.
  const auto probe = [&](const std::string& model, const std::string& weights) {
    return Run({"probe", "--model=" + model, "--weights=" + weights, "--phase=TEST", "--shape=data=1,3,4,4"});
  };
  const Finished old = probe("deploy.prototxt", "net.caffemodel"), back = probe("back.prototxt", "back.caffemodel");
  ASSERT_EQ(back.exit_code, 0) << back.err;
  const auto result = [](const std::string& text) { return text.substr(text.rfind("\"prob\"")); };
  ASSERT_NE(old.out.find("\"prob\""), std::string::npos) << old.out;
  EXPECT_EQ(result(old.out).substr(0, 60), result(back.out).substr(0, 60));
}

TEST_F(Import, TakesBatchAndShape) {
  const Finished batch = Run({"import", "--model=net.onnx", "--output=back", "--batch=5"});
  EXPECT_NE(batch.out.find("input   data  5x3x4x4\n"), std::string::npos) << batch.out << batch.err;
  const Finished shape = Run({"import", "--model=net.onnx", "--output=back", "--shape=data=2,3,4,4"});
  EXPECT_NE(shape.out.find("output  prob  2x3\n"), std::string::npos) << shape.out << shape.err;
}

TEST_F(Import, AddsASoftmaxForFinetuning) {
  folder_.Write("scores.prototxt", R"(
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } }
layer { name: "score" type: "InnerProduct" bottom: "data" top: "score" inner_product_param { num_output: 3 } })");
  const Finished scores =
      Run({"export", "--model=scores.prototxt", "--weights=net.caffemodel", "--output=scores.onnx"});
  ASSERT_EQ(scores.exit_code, 0) << scores.err;
  const Finished done = Run({"import", "--model=scores.onnx", "--output=back", "--softmax"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("output  prob  1x3\n"), std::string::npos) << done.out;
}

TEST_F(Import, LeavesNothingBehindAMistake) {
  const auto expect = [&](const std::vector<std::string>& words, const std::string& said) {
    const Finished done = Run(words);
    EXPECT_EQ(done.exit_code, 2) << said;
    EXPECT_TRUE(done.Says(said)) << done.err;
  };
  expect({"import", "--model=net.onnx", "--output=net.prototxt"},
         "--output=net.prototxt: expected a name without its end");
  expect({"import", "--model=net.onnx"}, "--output=PREFIX");
  expect({"import", "--model=deploy.prototxt", "--output=back"}, "deploy.prototxt: error: is no file of ONNX");
  expect({"import", "--model=absent.onnx", "--output=back"}, "absent.onnx");
  expect({"import", "--model=net.onnx", "--output=back", "--shape=image=1,3,4,4"},
         "--shape=image=...: has no input of this name");
  const Finished full = RunProgram({"crema", "import", "--model=net.onnx", "--output=back"},
                                   {.folder = folder_.path(), .file_size_limit = 100});
  EXPECT_EQ(full.exit_code, 1) << full.err;
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    EXPECT_EQ(entry.path().filename().string().find("back"), std::string::npos) << entry.path();
  }
}

}  // namespace
}  // namespace crema::testing_tools
