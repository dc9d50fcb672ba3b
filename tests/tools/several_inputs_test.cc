// Nets for training that several layers feed, in use: crema extract, predict and export of what one of these suffices
// for.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/colour_net.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

std::string Images(const std::string& name, const std::string& tops) {
  return "layer { name: \"" + name + "\" type: \"ImageData\" " + tops + " transform_param { scale: 0.00392156863 }\n" +
         "  image_data_param { source: \"list.txt\" root_folder: \"images/\" batch_size: 50 } }\n";
}

std::string Scores(const std::string& name, const std::string& bottom) {
  return "layer { name: \"" + name + "\" type: \"InnerProduct\" bottom: \"" + bottom + "\" top: \"" + name +
         "\" inner_product_param { num_output: 3 } param { name: \"w\" } param { name: \"b\" } }\n";
}

class SeveralInputs : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteColourNet(folder_);
    WritePng(folder_, "images/red/1.png", Coloured(4, 4, 0, 0, 255));
    WritePng(folder_, "images/red/2.png", Coloured(4, 4, 0, 0, 51));
    WritePng(folder_, "images/green.png", Coloured(4, 4, 0, 255, 0));
    folder_.Write("list.txt", "red/2.png 2\nred/1.png 2\n");
    folder_.Write("pairs.prototxt",
                  Images("first", "top: \"a\" top: \"label_a\"") + Images("second", "top: \"b\" top: \"label_b\"") +
                      Scores("other", "b") + Scores("score", "a") +
                      "layer { name: \"distance\" type: \"EuclideanLoss\" bottom: \"score\" bottom: \"other\"\n"
                      "  top: \"distance\" }\n"
                      "layer { name: \"all\" type: \"Eltwise\" bottom: \"score\" bottom: \"other\" top: \"all\" }\n"
                      "layer { name: \"labels\" type: \"Silence\" bottom: \"label_a\" bottom: \"label_b\" }\n");
  }

  Finished Run(const std::string& command, const std::string& model, std::vector<std::string> words) const {
    words.insert(words.begin(), {"crema", command, "--model=" + model, "--weights=net.caffemodel"});
    return RunProgram(words, {.folder = folder_.path()});
  }

  // What `crema extract` writes of both images of the list, for each blob the same.
  std::string Extracted(const std::string& model, const std::vector<std::string>& flags) const {
    std::vector<std::string> words = {"--output=f.csv", "--force", "images/red"};
    words.insert(words.end(), flags.begin(), flags.end());
    const Finished run = Run("extract", model, words);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const std::string text = ReadText(folder_ / "f.csv");
    return text.substr(text.find('\n'));
  }

  const ScratchFolder folder_;
};

TEST_F(SeveralInputs, OneThatSufficesForABlobTakesImages) {
  const std::string expected = Extracted("deploy.prototxt", {"--blob=score"});
  EXPECT_EQ(Extracted("pairs.prototxt", {"--blob=score"}), expected);
  const Finished predicted = Run("predict", "pairs.prototxt", {"--blob=score", "--format=csv", "images/green.png"});
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_NE(predicted.out.find("images/green.png,1,1,"), std::string::npos) << predicted.out;
  const Finished exported =
      Run("export", "pairs.prototxt", {"--blob=score", "--shape=a=1,3,4,4", "--output=pairs.onnx"});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_NE(exported.out.find("input   a  Nx3x4x4\noutput  score  Nx3\n"), std::string::npos) << exported.out;
}

TEST_F(SeveralInputs, TopsOfAnInputLayerAreSeveral) {
  folder_.Write(
      "two.prototxt",
      "layer { name: \"d\" type: \"Input\" top: \"more\" top: \"data\" top: \"most\" transform_param { scale: "
      "0.00392156863 }\n"
      "  input_param { shape { dim: 1 dim: 5 } shape { dim: 1 dim: 3 dim: 4 dim: 4 } shape { dim: 2 } } }\n" +
          Scores("score", "data") + "layer { name: \"silent\" type: \"Silence\" bottom: \"more\" bottom: \"most\" }\n");
  EXPECT_EQ(Extracted("two.prototxt", {"--blob=score"}), Extracted("deploy.prototxt", {"--blob=score"}));
  const Finished exported = Run("export", "two.prototxt", {"--blob=score", "--output=two.onnx"});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_NE(exported.out.find("\ninput   data  Nx3x4x4\noutput  score  Nx3\n"), std::string::npos) << exported.out;
  EXPECT_EQ(exported.out.find("more"), std::string::npos) << exported.out;
}

TEST_F(SeveralInputs, ThatAreNeededAreNamed) {
  const auto says = [&](const std::vector<std::string>& flags, const std::string& text) {
    std::vector<std::string> words = {"--output=f.csv", "images/red"};
    words.insert(words.begin(), flags.begin(), flags.end());
    const Finished run = Run("extract", "pairs.prototxt", words);
    EXPECT_EQ(run.exit_code, 2) << run.out;
    EXPECT_TRUE(run.Says(text)) << run.err;
  };
  says({"--blob=all"}, "needs 2 inputs, \"a\", \"b\" for \"all\"; images can go into one blob only");
  says({"--blob=scor"}, "has no blob \"scor\"; did you mean \"score\"?");
  says({}, "has 2 inputs, \"a\", \"b\"; expected one blob of an Input layer, or in TEST one data layer");
  says({"--blob=label_b"}, "blob \"label_b\" holds the labels of the net's data");
}

// What DummyData makes for each image of a batch is for as many as there are.
TEST_F(SeveralInputs, MadeUpOnesFollowTheImages) {
  folder_.Write("noisy.prototxt",
                Images("first", "top: \"a\" top: \"label\"") +
                    "layer { name: \"made\" type: \"DummyData\" top: \"noise\" top: \"other\" dummy_data_param {\n"
                    "  shape { dim: 50 dim: 3 dim: 4 dim: 4 } shape { dim: 2 dim: 50 } } }\n"
                    "layer { name: \"sum\" type: \"Eltwise\" bottom: \"a\" bottom: \"noise\" top: \"sum\" }\n" +
                    Scores("score", "sum") +
                    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"score\" bottom: \"label\" }\n"
                    "layer { name: \"silent\" type: \"Silence\" bottom: \"other\" }\n");
  const std::string expected = Extracted("deploy.prototxt", {"--blob=score"});
  EXPECT_EQ(Extracted("noisy.prototxt", {"--blob=score"}), expected);
  EXPECT_EQ(Extracted("noisy.prototxt", {"--blob=score", "--batch=1"}), expected);
}

TEST_F(SeveralInputs, ArraysOfFilesHaveTheShapeThatIsGiven) {
  folder_.Write("arrays.prototxt",
                "layer { name: \"h\" type: \"HDF5Data\" top: \"data\" top: \"label\"\n"
                "  hdf5_data_param { source: \"list.txt\" batch_size: 3 } }\n" +
                    Scores("score", "data") +
                    "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"score\" bottom: \"label\" }\n");
  const Finished unknown = Run("export", "arrays.prototxt", {"--output=arrays.onnx"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_TRUE(unknown.Says("or export it, say their shape, --shape=data=N,...")) << unknown.err;
  const Finished exported = Run("export", "arrays.prototxt", {"--shape=data=1,3,4,4", "--output=arrays.onnx"});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_NE(exported.out.find("input   data  Nx3x4x4\n"), std::string::npos) << exported.out;
  EXPECT_EQ(Extracted("arrays.prototxt", {"--blob=score", "--shape=data=1,3,4,4", "--scale=0.00392156863"}),
            Extracted("deploy.prototxt", {"--blob=score"}));
}

}  // namespace
}  // namespace crema::testing_tools
