// crema detect with a net that sees one box in each image, whose class is the image's colour.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/input_file.h"
#include "crema/files.h"
#include "crema/net.h"
#include "image/codec.h"
#include "image/draw.h"
#include "report/json_reader.h"
#include "tools/colour_net.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

using testing_json::Json;
using testing_json::ParseJson;

// The mean of green is the score of class 1, that of red the score of class 2, of the one prior, which is the middle of
// the image. Its left side is moved out of the image.
const char* const kDetectedNet =
    "layer { name: \"data\" type: \"Input\" top: \"data\"\n"
    "  input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } transform_param { scale: 0.00392156863 } }\n"
    "layer { name: \"mean\" type: \"Pooling\" bottom: \"data\" top: \"mean\"\n"
    "  pooling_param { pool: AVE global_pooling: true } }\n"
    "layer { name: \"prior\" type: \"PriorBox\" bottom: \"mean\" bottom: \"data\" top: \"prior\"\n"
    "  prior_box_param { min_size: 2 } }\n"
    "layer { name: \"offset\" type: \"InnerProduct\" bottom: \"mean\" top: \"offset\"\n"
    "  inner_product_param { num_output: 4 } }\n"
    "layer { name: \"score\" type: \"InnerProduct\" bottom: \"mean\" top: \"score\"\n"
    "  inner_product_param { num_output: 3 bias_term: false } }\n"
    "layer { name: \"positive\" type: \"ReLU\" bottom: \"score\" top: \"score\" }\n"
    "layer { name: \"found\" type: \"DetectionOutput\" bottom: \"offset\" bottom: \"score\" bottom: \"prior\"\n"
    "  top: \"found\" detection_output_param { num_classes: 3 keep_top_k: 5 confidence_threshold: 0.01 } }\n";

class Detect : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("deploy.prototxt", kDetectedNet);
    WriteWeights("net.caffemodel", -5, 0);
    folder_.Write("map.prototxt",
                  "item { name: \"none\" label: 0 }\nitem { name: \"n1\" label: 1 display_name: \"green\" }\n"
                  "item { name: \"red\" label: 2 }\n");
    WritePng(folder_, "red.png", Coloured(4, 4, 0, 0, 255));
    WritePng(folder_, "photos/green.png", Coloured(60, 40, 0, 204, 0));
    WritePng(folder_, "photos/blue.png", Coloured(8, 8, 255, 0, 0));
  }

  // left, right: how far the box's sides move to the right, in tenths of the image's width.
  void WriteWeights(const std::string& name, float left, float right) const {
    Net net(ReadNetFile((folder_ / "deploy.prototxt").string()), {.phase = TEST, .backward = false});
    const std::vector<float> none(12, 0.0f), offset = {left, 0, right, 0}, score = {0, 0, 0, 0, 1, 0, 0, 0, 1};
    net.parameters()[0].SetData(none.data());
    net.parameters()[1].SetData(offset.data());
    net.parameters()[2].SetData(score.data());
    std::ofstream(folder_ / name, std::ios::binary) << net.ToProto().SerializeAsString();
  }

  Finished Run(std::vector<std::string> words) const {
    words.insert(words.begin(),
                 {"crema", "detect", "--model=deploy.prototxt", "--weights=net.caffemodel", "--threads=1"});
    return RunProgram(words, {.folder = folder_.path()});
  }

  const ScratchFolder folder_;
};

TEST_F(Detect, WritesALineForEachObject) {
  const Finished run = Run({"--labels=map.prototxt", "red.png", "photos"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out,
            "red.png  red  0.9375  0.0 1.0 3.0 3.0\n"
            "photos/green.png  green  0.8000  0.0 15.0 30.0 45.0\n");
  EXPECT_EQ(run.err, "");
}

TEST_F(Detect, LeavesOutWhatLiesBesideTheImage) {
  WriteWeights("beside.caffemodel", -20, -20);
  const Finished run = Run({"--weights=beside.caffemodel", "--format=json", "red.png"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("\"objects\": []"), std::string::npos) << run.out;
}

// The same, of one cell of YOLO: the logits of its classes are 8 times green and red, less 4.
TEST_F(Detect, FindsWhatYoloDoes) {
  folder_.Write("yolo.prototxt",
                "layer { name: \"data\" type: \"Input\" top: \"data\"\n"
                "  input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } transform_param { scale: 0.00392156863 } }\n"
                "layer { name: \"mean\" type: \"Pooling\" bottom: \"data\" top: \"mean\"\n"
                "  pooling_param { pool: AVE global_pooling: true } }\n"
                "layer { name: \"cell\" type: \"Convolution\" bottom: \"mean\" top: \"cell\"\n"
                "  convolution_param { num_output: 7 kernel_size: 1 } }\n"
                "layer { name: \"found\" type: \"Yolov3DetectionOutput\" bottom: \"cell\" top: \"found\"\n"
                "  yolov3_detection_output_param { num_classes: 2 num_box: 1 mask_group_num: 1 mask: 0\n"
                "    biases: [2, 2] anchors_scale: 4 confidence_threshold: 0.3 } }\n");
  Net net(ReadNetFile((folder_ / "yolo.prototxt").string()), {.phase = TEST, .backward = false});
  std::vector<float> weights(21, 0.0f);
  weights[5 * 3 + 1] = weights[6 * 3 + 2] = 8;
  const std::vector<float> shift = {0, 0, 0, 0, 20, -4, -4};
  net.parameters()[0].SetData(weights.data());
  net.parameters()[1].SetData(shift.data());
  std::ofstream(folder_ / "yolo.caffemodel", std::ios::binary) << net.ToProto().SerializeAsString();
  const std::vector<std::string> words = {
      "crema", "detect", "--model=yolo.prototxt", "--weights=yolo.caffemodel", "--threads=1", "red.png", "photos"};
  const auto with = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), words.begin(), words.end());
    return RunProgram(flags, {.folder = folder_.path()});
  };
  const Finished run = with({"--labels=map.prototxt"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out,
            "red.png  red  0.9707  1.0 1.0 3.0 3.0\n"
            "photos/green.png  green  0.9168  10.0 15.0 30.0 45.0\n");
  // The green image lies between two black borders, each half as wide, so that only half of what the net sees is green,
  // and the box, half as wide as that, reaches over the whole width of the image.
  std::string fitting = ReadText(folder_ / "yolo.prototxt");
  const std::string transform = "transform_param {";
  fitting.insert(fitting.find(transform) + transform.size(),
                 " resize_param { resize_mode: FIT_LARGE_SIZE_AND_PAD height: 4 width: 4 }");
  folder_.Write("fitting.prototxt", fitting);
  const Finished fitted = with({"--labels=map.prototxt", "--model=fitting.prototxt", "--threshold=0.3"});
  ASSERT_EQ(fitted.exit_code, 0) << fitted.err;
  EXPECT_EQ(fitted.out,
            "red.png  red  0.9707  1.0 1.0 3.0 3.0\n"
            "photos/green.png  green  0.3100  0.0 15.0 40.0 45.0\n");
  const Finished low = with({"--threshold=0.1"});
  EXPECT_NE(low.err.find("\"found\" has confidence_threshold: 0.3"), std::string::npos) << low.err;
}

// DetectNet's: green and red are the coverage of every cell of a grid, a pixel each, whose boxes are 3 x 3 around them.
TEST_F(Detect, FindsWhatDetectNetDoes) {
  folder_.Write("grid.prototxt",
                "layer { name: \"data\" type: \"Input\" top: \"data\"\n"
                "  input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } transform_param { scale: 0.00392156863 } }\n"
                "layer { name: \"coverage\" type: \"Convolution\" bottom: \"data\" top: \"coverage\"\n"
                "  convolution_param { num_output: 2 kernel_size: 1 bias_term: false } }\n"
                "layer { name: \"boxes\" type: \"Convolution\" bottom: \"data\" top: \"boxes\"\n"
                "  convolution_param { num_output: 4 kernel_size: 1 } }\n"
                "layer { name: \"cluster\" type: \"Python\" bottom: \"coverage\" bottom: \"boxes\" top: \"greens\"\n"
                "  top: \"reds\" python_param { module: \"caffe.layers.detectnet.clustering\"\n"
                "    layer: \"ClusterDetections\" param_str: \"4, 4, 1, 0.6, 3, 1.0, 0, 2\" } }\n");
  Net net(ReadNetFile((folder_ / "grid.prototxt").string()), {.phase = TEST, .backward = false});
  const std::vector<float> none(12, 0.0f), coverage = {0, 1, 0, 0, 0, 1}, sides = {-1, -1, 2, 2};
  net.parameters()[0].SetData(coverage.data());
  net.parameters()[1].SetData(none.data());
  net.parameters()[2].SetData(sides.data());
  std::ofstream(folder_ / "grid.caffemodel", std::ios::binary) << net.ToProto().SerializeAsString();
  const auto with = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"crema", "detect", "--model=grid.prototxt", "--weights=grid.caffemodel", "--threads=1",
                                 "red.png", "photos"});
    return RunProgram(flags, {.folder = folder_.path()});
  };
  const std::string red = "red.png  red  2.7081  1.0 1.0 4.0 4.0\n";  // the logarithm of 15 cells: one pixel is black
  const Finished run = with({"--labels=map.prototxt"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, red + "photos/green.png  green  2.7726  0.0 0.0 30.0 45.0\n");
  EXPECT_EQ(with({"--labels=map.prototxt", "--blob=reds"}).out, red);
  const Finished none_left = with({"--threshold=2.8"});
  EXPECT_EQ(none_left.exit_code, 0) << none_left.err;
  EXPECT_EQ(none_left.out, "");
  const Finished other = with({"--blob=boxes"});
  EXPECT_NE(other.err.find("no layer makes objects in \"boxes\", but in \"greens\""), std::string::npos) << other.err;
}

TEST_F(Detect, LeavesOutLowScores) {
  const Finished run = Run({"--threshold=0.9", "red.png", "photos"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "red.png  2  0.9375  0.0 1.0 3.0 3.0\n");
  WritePng(folder_, "yellow.png", Coloured(4, 4, 0, 136, 255));
  const Finished both = Run({"--threshold=0.1", "yellow.png"});
  EXPECT_EQ(both.out, "yellow.png  2  0.9375  0.0 1.0 3.0 3.0\nyellow.png  1  0.5000  0.0 1.0 3.0 3.0\n");
}

// What the net leaves out itself.
TEST_F(Detect, SaysThatAThresholdIsBelowTheNets) {
  const Finished equal = Run({"--threshold=0.01", "red.png"});
  EXPECT_EQ(equal.err, "");
  const Finished below = Run({"--threshold=0.001", "red.png"});
  ASSERT_EQ(below.exit_code, 0) << below.err;
  EXPECT_EQ(below.out, equal.out);
  EXPECT_TRUE(below.Says("deploy.prototxt: warning: \"found\" has confidence_threshold: 0.01")) << below.err;
  EXPECT_TRUE(below.Says("--threshold=0.001 shows no more than --threshold=0.01; to see more, lower")) << below.err;
  std::string text = kDetectedNet;
  text.replace(text.find("0.01 }"), 4, "0.9");
  folder_.Write("deploy.prototxt", text);
  EXPECT_EQ(Run({"red.png"}).err, "");  // nobody asked for less
  text.erase(text.find("confidence_threshold"), 25);
  folder_.Write("deploy.prototxt", text);
  EXPECT_EQ(Run({"--threshold=-1", "red.png"}).err, "");
}

TEST_F(Detect, DrawsObjects) {
  const Finished run = Run({"--labels=map.prototxt", "--draw=seen", "red.png", "photos"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, Run({"--labels=map.prototxt", "red.png", "photos"}).out);
  const auto read = [&](const char* file) {
    Image image;
    EXPECT_EQ(DecodeImage(ReadFileBytes((folder_ / file).string()), {}, &image), "") << file;
    return image;
  };
  EXPECT_EQ(read("seen/red.jpg").width, 4);
  EXPECT_EQ(read("seen/blue.jpg").width, 8);
  Image expected = read("photos/green.png");
  const DrawnBox box = {.xmin = 0, .ymin = 15, .xmax = 30, .ymax = 45, .kind = 1, .text = "green 0.75"};
  DrawBoxes({&box, 1}, &expected);
  const std::vector<uint8_t> bytes = EncodeJpeg(expected);
  EXPECT_EQ(ReadText(folder_ / "seen/green.jpg"), std::string(bytes.begin(), bytes.end()));
}

TEST_F(Detect, DrawsOverNothing) {
  WritePng(folder_, "more/red.jpg", Coloured(4, 4, 0, 0, 255));
  const Finished twice = Run({"--draw=seen", "red.png", "more"});
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_TRUE(twice.Says("more/red.jpg: error: would be drawn as seen/red.jpg, and so would red.png")) << twice.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "seen"));
  ASSERT_EQ(Run({"--draw=seen", "red.png"}).exit_code, 0);
  const Finished again = Run({"--draw=seen", "photos", "red.png"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_TRUE(again.Says("seen/red.jpg: error: is there already")) << again.err;
  EXPECT_EQ(again.out, "");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "seen/blue.jpg"));
}

TEST_F(Detect, WritesJsonLines) {
  folder_.Write("bad.png", "not an image");
  const Finished run = Run({"--format=json", "--labels=map.prototxt", "bad.png", "red.png", "photos/blue.png"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::istringstream lines(run.out);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_FALSE(ParseJson(line)["error"].string.empty()) << line;
  ASSERT_TRUE(std::getline(lines, line));
  const Json red = ParseJson(line);
  EXPECT_EQ(red["image"].string, "red.png");
  ASSERT_EQ(red["objects"].items.size(), 1u);
  const Json& object = red["objects"].items[0];
  EXPECT_EQ(object["class"].number, 2);
  EXPECT_EQ(object["label"].string, "red");
  EXPECT_NEAR(object["score"].number, 0.9375, 1e-6);
  ASSERT_EQ(object["box"].items.size(), 4u);
  EXPECT_EQ(object["box"].items[2].number, 3);
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(ParseJson(line)["objects"].items.size(), 0u);
  EXPECT_TRUE(run.Says("bad.png: warning: ")) << run.err;
}

TEST_F(Detect, WritesCsv) {
  folder_.Write("names.txt", "none\ngreen\nred\n");
  const Finished run = Run({"--format=csv", "--labels=names.txt", "red.png"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("image,class,label,score,xmin,ymin,xmax,ymax\nred.png,2,red,0.9375")) << run.out;
  EXPECT_TRUE(run.out.ends_with(",0,1,3,3\n")) << run.out;
}

TEST_F(Detect, DoesNotDependOnTheBatch) {
  for (int i = 0; i < 7; ++i) {
    WritePng(folder_, "many/" + std::to_string(i) + ".png", Coloured(4 + i, 4, 0, 100, 255 - i * 30));
  }
  const Finished one = Run({"--batch=1", "--threshold=0.1", "many"}),
                 three = Run({"--batch=3", "--threshold=0.1", "many"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(Count(one.out, "\n"), 14);
  EXPECT_EQ(one.out, three.out);
}

// A net of a test of training measures what it finds, so that nothing of it is an output.
TEST_F(Detect, FindsObjectsThatAnotherLayerReads) {
  folder_.Write("deploy.prototxt",
                std::string(kDetectedNet) + "layer { name: \"none\" type: \"Silence\" bottom: \"found\" }\n");
  const Finished run = Run({"red.png"});
  EXPECT_EQ(run.out, "red.png  2  0.9375  0.0 1.0 3.0 3.0\n") << run.err;
}

TEST_F(Detect, SaysMistakes) {
  EXPECT_TRUE(Run({"rde.png"}).Says("rde.png: error: there is no such image or folder"));
  EXPECT_TRUE(Run({}).Says("IMAGE"));
  EXPECT_TRUE(Run({"--format=xml", "red.png"}).Says("text, json or csv"));
  EXPECT_TRUE(Run({"--blob=offset", "red.png"}).Says("no layer makes objects in \"offset\", but in \"found\""));
  folder_.Write("one.txt", "red\n");
  EXPECT_TRUE(Run({"--labels=one.txt", "red.png"}).Says("one.txt: error: names 1 classes, but \"found\""));
  folder_.Write("map.prototxt", "item { name: \"a\" label: -1 }");
  EXPECT_TRUE(Run({"--labels=map.prototxt", "red.png"}).Says("label -1 of \"a\" is no number of a class"));
  std::string text = kDetectedNet;
  text.insert(text.find("scale:"), "crop_size: 4 ");
  folder_.Write("deploy.prototxt", text);
  EXPECT_TRUE(Run({"red.png"}).Says("crop_size cuts images"));
  folder_.Write("deploy.prototxt",
                std::string(kDetectedNet).substr(0, std::string(kDetectedNet).find("layer { name: \"found\"")));
  EXPECT_TRUE(Run({"red.png"}).Says("the net has no DetectionOutput layer"));
  folder_.Write(
      "deploy.prototxt",
      "layer { name: \"data\" type: \"AnnotatedData\" top: \"data\" top: \"label\" include { phase: TEST } }\n" +
          std::string(kDetectedNet).substr(std::string(kDetectedNet).find("layer { name: \"mean\"")));
  EXPECT_TRUE(
      Run({"red.png"}).Says("is measured by crema test, and crema detect shows what it finds with its deploy net"));
}

}  // namespace
}  // namespace crema::testing_tools
