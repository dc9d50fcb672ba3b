// crema detect with a net in the form of Faster R-CNN's: regions are proposed where the image is red or green.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "crema/files.h"
#include "crema/net.h"
#include "tools/colour_net.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

// Anchors are squares of 16 pixels, whose score is the mean of red and green. An object is where all four parts of a
// region have its colour.
const char* const kInputs =
    "input: \"data\" input_shape { dim: 1 dim: 3 dim: 224 dim: 224 }\n"
    "input: \"im_info\" input_shape { dim: 1 dim: 3 }\n";
const char* const kLayers =
    "layer { name: \"mean\" type: \"Pooling\" bottom: \"data\" top: \"mean\"\n"
    "  pooling_param { pool: AVE kernel_size: 16 stride: 16 } }\n"
    "layer { name: \"fine\" type: \"Pooling\" bottom: \"data\" top: \"fine\"\n"
    "  pooling_param { pool: AVE kernel_size: 8 stride: 8 } }\n"
    "layer { name: \"rpn_score\" type: \"Convolution\" bottom: \"mean\" top: \"rpn_score\"\n"
    "  convolution_param { num_output: 2 kernel_size: 1 bias_term: false } }\n"
    "layer { name: \"rpn_offset\" type: \"Convolution\" bottom: \"mean\" top: \"rpn_offset\"\n"
    "  convolution_param { num_output: 4 kernel_size: 1 bias_term: false } }\n"
    "layer { name: \"proposal\" type: 'Python' bottom: \"rpn_score\" bottom: \"rpn_offset\" bottom: \"im_info\" top: "
    "\"rois\"\n"
    "  python_param { module: 'rpn.proposal_layer' layer: 'ProposalLayer'\n"
    "    param_str: \"'feat_stride': 16 \\n'scales': [1]\\n'ratios': [1]\" } }\n"
    "layer { name: \"pool\" type: \"ROIPooling\" bottom: \"fine\" bottom: \"rois\" top: \"pool\"\n"
    "  roi_pooling_param { pooled_w: 2 pooled_h: 2 spatial_scale: 0.125 } }\n"
    "layer { name: \"score\" type: \"InnerProduct\" bottom: \"pool\" top: \"score\"\n"
    "  inner_product_param { num_output: 3 } }\n"
    "layer { name: \"bbox_pred\" type: \"InnerProduct\" bottom: \"pool\" top: \"bbox_pred\"\n"
    "  inner_product_param { num_output: 12 bias_term: false } }\n"
    "layer { name: \"prob\" type: \"Softmax\" bottom: \"score\" top: \"prob\" }\n";

// Black but for a square of one colour.
Image Square(int height, int width, int left, int top, int side, int green, int red) {
  Image image = Coloured(height, width, 0, 0, 0);
  for (int y = top; y < top + side; ++y) {
    for (int x = left; x < left + side; ++x) {
      uint8_t* const pixel = image.pixels.data() + (y * width + x) * 3;
      pixel[1] = static_cast<uint8_t>(green);
      pixel[2] = static_cast<uint8_t>(red);
    }
  }
  return image;
}

class DetectRegions : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteNet(std::string(kInputs) + kLayers);
    Net net(ReadNetFile((folder_ / "test.pt").string()), {.phase = TEST, .backward = false});
    const std::vector<float> object = {0, 0, 0, 0, 1, 1}, none(12 * 12, 0.0f), background = {27, 0, 0};
    std::vector<float> score(3 * 12, 0.0f);
    for (int part = 0; part < 4; ++part) score[12 + 4 + part] = score[24 + 8 + part] = 9;
    net.parameters()[0].SetData(object.data());
    net.parameters()[1].SetData(none.data());
    net.parameters()[2].SetData(score.data());
    net.parameters()[3].SetData(background.data());
    net.parameters()[4].SetData(none.data());
    std::ofstream(folder_ / "net.caffemodel", std::ios::binary) << net.ToProto().SerializeAsString();
    WritePng(folder_, "wide.png", Square(96, 128, 32, 32, 32, 0, 255));  // seen as 48 x 64
    WritePng(folder_, "high.png", Square(128, 64, 0, 64, 32, 255, 0));   // seen as 64 x 32, since 96 x 48 is too high
    WritePng(folder_, "small.png", Square(48, 64, 32, 0, 16, 0, 255));   // seen as it is
  }

  void WriteNet(const std::string& text) { folder_.Write("test.pt", text); }

  Finished Run(std::vector<std::string> words) const {
    words.insert(words.begin(), {"crema", "detect", "--model=test.pt", "--weights=net.caffemodel", "--threads=1",
                                 "--scale=0.00392156863"});
    return RunProgram(words, {.folder = folder_.path()});
  }

  const ScratchFolder folder_;
};

// Each step from a region to a box adds the pixel of its far corner, as the authors' does.
constexpr char kObjects[] =
    "wide.png  2  0.9999  32.0 32.0 66.0 66.0\n"
    "high.png  1  0.9999  0.0 64.0 34.0 98.0\n"
    "small.png  2  0.9999  32.0 0.0 50.0 18.0\n";

TEST_F(DetectRegions, TakesNetsAsTheirAuthorsWroteThem) {
  const Finished run = Run({"--shorter_side=48", "--longer_side=64", "wide.png", "high.png", "small.png"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, kObjects);
  EXPECT_EQ(run.err, "test.pt:1:1: warning: uses the old \"input\" fields; read as a layer of type \"Input\"\n");
}

TEST_F(DetectRegions, OrderAndBrokenImagesChangeNothing) {
  folder_.Write("bad.png", "not an image");
  std::vector<std::string> words = {"--shorter_side=48", "--longer_side=64", "bad.png"};
  for (int i = 0; i < 2; ++i) words.insert(words.end(), {"wide.png", "high.png", "bad.png", "small.png"});
  const Finished run = Run(words);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, std::string(kObjects) + kObjects);
  EXPECT_EQ(Count(run.err, "bad.png: warning: "), 3) << run.err;
}

TEST_F(DetectRegions, LayersOfItsOwnAreUsed) {
  WriteNet(std::string(kInputs) + kLayers +
           "layer { name: \"found\" type: \"DetectionOutput\" bottom: \"bbox_pred\" bottom: \"prob\" bottom: \"rois\"\n"
           "  bottom: \"im_info\" top: \"found\" detection_output_param { num_classes: 3 keep_top_k: 1 } }\n");
  const Finished run = Run({"--shorter_side=48", "--threshold=0", "wide.png"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "wide.png  2  0.9999  32.0 32.0 66.0 66.0\n");
}

// im_info then tells the net's input, as it did in training.
TEST_F(DetectRegions, ImagesCanBeResizedToOneSize) {
  const Finished run = Run({"--resize=48x64", "--batch=1", "wide.png", "small.png"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out,
            "wide.png  2  0.9999  32.0 32.0 68.0 68.0\n"
            "small.png  2  0.9999  32.0 0.0 50.0 18.0\n");
  EXPECT_TRUE(Run({"--resize=48x64", "--longer_side=5", "wide.png"}).Says("so that --longer_side has no effect"));
}

TEST_F(DetectRegions, SaysMistakes) {
  EXPECT_TRUE(Run({"--batch=2", "wide.png"}).Says("each goes through it by itself; leave the size of batches out"));
  WriteNet(std::string(kInputs) + kLayers + "layer { name: \"s\" type: \"Silence\" bottom: \"bbox_pred\" }\n");
  EXPECT_TRUE(
      Run({"wide.png"}).Says("has a Proposal layer but no DetectionOutput, and its outputs are \"prob 300x3\""));
  WriteNet(std::string(kInputs) + "input: \"more\" input_shape { dim: 1 }\n" + kLayers);
  EXPECT_TRUE(Run({"wide.png"}).Says("has 2 inputs, \"data\", \"more\"; expected one blob of an Input layer"));
}

}  // namespace
}  // namespace crema::testing_tools
