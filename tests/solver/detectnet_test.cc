// A small DetectNet, with the structure of DIGITS' files, learns to find rectangles.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/random.h"
#include "data/convert/convert_kitti.h"
#include "files.h"
#include "image/codec.h"
#include "solver/training_test.h"

namespace crema {
namespace {

constexpr int kHeight = 48, kWidth = 64;

std::string LayerText(const std::string& head, const std::string& more = "") {
  return "layer { " + head + " " + more + " }\n";
}

// Images and objects are drawn in the same order.
std::string DataText(const std::string& name, const std::string& top, const std::string& source,
                     const std::string& when) {
  return LayerText("name: \"" + name + "\" type: \"Data\" top: \"" + top + "\" data_param { backend: LMDB source: \"" +
                   source + "\" batch_size: 8 shuffle: " + (when == "phase: TRAIN" ? "true" : "false") +
                   " } include: { " + when + " }");
}

std::string TransformText(const std::string& name, const std::string& classes, const std::string& more) {
  return LayerText(
      "name: \"" + name +
          "\" type: \"DetectNetTransformation\" bottom: \"raw_data\" bottom: \"raw_label\" "
          "top: \"data\" top: \"label\" detectnet_groundtruth_param: { stride: 8 scale_cvg: 0.8 gridbox_type: "
          "GRIDBOX_MIN coverage_type: RECTANGULAR min_cvg_len: 8 obj_norm: true image_size_x: 64 image_size_y: 48 " +
          classes + " } transform_param: { mean_value: 60 }",
      more);
}

// What DIGITS' nets have besides the convolutions. `classes`: 1 or 2.
std::string DetectNetText(int classes) {
  const std::string mapping = classes == 2 ? "object_class { src: 1 dst: 0 } object_class { src: 8 dst: 1 }" : "";
  const std::string count = std::to_string(classes);
  const std::string when = "include { phase: TRAIN } include { phase: TEST stage: \"val\" }";
  const auto eltwise = [&](const std::string& name, const std::string& a, const std::string& b,
                           const std::string& top) {
    return LayerText("name: \"" + name + "\" type: \"Eltwise\" bottom: \"" + a + "\" bottom: \"" + b + "\" top: \"" +
                         top + "\" eltwise_param { operation: PROD }",
                     when);
  };
  const auto block = [&](const std::string& name, const std::string& bottom, int times) {
    std::string bottoms;
    for (int i = 0; i < times; ++i) bottoms += "bottom: \"" + bottom + "\" ";
    return LayerText(
        "name: \"" + name + "\" type: \"Concat\" " + bottoms + "top: \"" + name + "\" concat_param { concat_dim: 1 }",
        when);
  };
  const auto convolution = [](const std::string& name, const std::string& bottom, const std::string& top,
                              const std::string& param) {
    return LayerText("name: \"" + name + "\" type: \"Convolution\" bottom: \"" + bottom + "\" top: \"" + top +
                     "\" convolution_param { weight_filler { type: \"xavier\" } " + param + " }");
  };
  std::string net = "name: \"DetectNet\"\n";
  net += DataText("train_raw_data", "raw_data", "train_db/features", "phase: TRAIN");
  net += DataText("train_raw_label", "raw_label", "train_db/labels", "phase: TRAIN");
  net += DataText("val_raw_data", "raw_data", "val_db/features", "phase: TEST stage: \"val\"");
  net += DataText("val_raw_label", "raw_label", "val_db/labels", "phase: TEST stage: \"val\"");
  net += LayerText(
      "name: \"deploy_data\" type: \"Input\" top: \"raw_data\" input_param { shape { dim: 1 dim: 3 dim: 48 dim: 64 } } "
      "include: { phase: TEST not_stage: \"val\" }");
  net += TransformText(
      "train_transform", mapping,
      "detectnet_augmentation_param: { crop_prob: 1 shift_x: 8 shift_y: 8 flip_prob: 0.5 rotation_prob: 0 "
      "scale_prob: 0.4 scale_min: 0.9 scale_max: 1.1 hue_rotation_prob: 0.3 hue_rotation: 10 "
      "desaturation_prob: 0.3 desaturation_max: 0.3 } include: { phase: TRAIN }");
  net += TransformText("val_transform", mapping, "include: { phase: TEST stage: \"val\" }");
  net += LayerText(
      "name: \"deploy_transform\" type: \"Power\" bottom: \"raw_data\" top: \"data\" power_param { shift: -60 } "
      "include: { phase: TEST not_stage: \"val\" }");
  net += LayerText(
      "name: \"slice-label\" type: \"Slice\" bottom: \"label\" top: \"foreground-label\" top: \"bbox-label\" "
      "top: \"size-label\" top: \"obj-label\" top: \"coverage-label\" slice_param { slice_dim: 1 slice_point: 1 "
      "slice_point: 5 slice_point: 7 slice_point: 8 }",
      when);
  net += block("coverage-block", "foreground-label", 4) + block("size-block", "size-label", 2) +
         block("obj-block", "obj-label", 4);
  net += eltwise("bb-label-norm", "bbox-label", "size-block", "bbox-label-norm") +
         eltwise("bb-obj-norm", "bbox-label-norm", "obj-block", "bbox-obj-label-norm");
  net += LayerText("name: \"scale\" type: \"Power\" bottom: \"data\" top: \"scaled\" power_param { scale: 0.01 }");
  std::string bottom = "scaled";
  for (const char* name : {"conv1", "conv2", "conv3", "conv4"}) {
    const bool last = std::string(name) == "conv4";
    net += convolution(
        name, bottom, name,
        std::string("num_output: 24 ") + (last ? "kernel_size: 5 pad: 2" : "kernel_size: 3 pad: 1 stride: 2"));
    net += LayerText(std::string("name: \"relu_") + name + "\" type: \"ReLU\" bottom: \"" + name + "\" top: \"" + name +
                     "\"");
    bottom = name;
  }
  net += convolution("cvg/classifier", bottom, "cvg/classifier", "kernel_size: 1 num_output: " + count);
  net += LayerText("name: \"coverage/sig\" type: \"Sigmoid\" bottom: \"cvg/classifier\" top: \"coverage\"");
  net += convolution("bbox/regressor", bottom, "bboxes", "kernel_size: 1 num_output: 4");
  net += eltwise("bbox_mask", "bboxes", "coverage-block", "bboxes-masked") +
         eltwise("bbox-norm", "bboxes-masked", "size-block", "bboxes-masked-norm") +
         eltwise("bbox-obj-norm", "bboxes-masked-norm", "obj-block", "bboxes-obj-masked-norm");
  net += LayerText(
      "name: \"bbox_loss\" type: \"L1Loss\" bottom: \"bboxes-obj-masked-norm\" bottom: \"bbox-obj-label-norm\" "
      "top: \"loss_bbox\" loss_weight: 2",
      when);
  net += LayerText(
      "name: \"coverage_loss\" type: \"EuclideanLoss\" bottom: \"coverage\" bottom: \"coverage-label\" "
      "top: \"loss_coverage\"",
      when);
  const auto python = [](const std::string& name, const std::string& blobs, const std::string& module,
                         const std::string& layer, const std::string& param, const std::string& state) {
    return LayerText("type: 'Python' name: '" + name + "' " + blobs +
                     " python_param { module: 'caffe.layers.detectnet." + module + "' layer: '" + layer + "' " +
                     (param.empty() ? "" : "param_str : '" + param + "'") + " } include: { phase: TEST " + state +
                     " }");
  };
  const std::string more = classes == 2 ? ", 2" : "", val = "stage: \"val\"";
  const auto tops = [&](const std::string& name) {
    std::string text;
    for (int i = 0; i < classes; ++i) text += " top: '" + name + std::to_string(i) + "'";
    return text;
  };
  net += python("cluster", "bottom: 'coverage' bottom: 'bboxes'" + tops("bbox-list"), "clustering", "ClusterDetections",
                "64, 48, 8, 0.5, 1, 0.2, 8" + more, "");
  net += python("cluster_gt", "bottom: 'coverage-label' bottom: 'bbox-label'" + tops("bbox-list-label"), "clustering",
                "ClusterGroundtruth", "64, 48, 8" + more, val);
  for (int i = 0; i < classes; ++i) {
    const std::string c = std::to_string(i);
    net += python("score" + c, "bottom: 'bbox-list-label" + c + "' bottom: 'bbox-list" + c + "' top: 'scored" + c + "'",
                  "mean_ap", "ScoreDetections", "", val);
    net += python("mAP" + c,
                  "bottom: 'scored" + c + "' top: 'mAP" + c + "' top: 'precision" + c + "' top: 'recall" + c + "'",
                  "mean_ap", "mAP", "64, 48, 8", val);
  }
  return net;
}

class DetectNetTraining : public ::testing::Test {
 protected:
  // Dark images with one or two bright rectangles, cars: light ones are red, and with `classes` 2 green ones
  // pedestrians.
  void WriteData(const std::string& name, int images, uint64_t seed, int classes) {
    std::filesystem::create_directories(folder_ / (name + "_images"));
    std::filesystem::create_directories(folder_ / (name + "_labels"));
    for (int i = 0; i < images; ++i) {
      const RandomStream random(seed, static_cast<uint64_t>(i));
      Image image;
      image.Resize(kHeight, kWidth, 3);
      for (size_t k = 0; k < image.size(); ++k) image.pixels[k] = static_cast<uint8_t>(random.Below(1000 + k, 80));
      std::string labels;
      for (uint64_t k = 0; k < 1 + random.Below(0, 2); ++k) {
        const auto draw = [&](uint64_t which, int least, int most) {
          return least + static_cast<int>(random.Below(10 + 10 * k + which, static_cast<uint64_t>(most - least + 1)));
        };
        // Each in its half of the image.
        const int width = draw(0, 16, 26), height = draw(1, 16, 34);
        const int left = 32 * static_cast<int>(k) + draw(2, 0, 31 - width), top = draw(3, 0, kHeight - height - 1);
        const bool person = classes == 2 && draw(4, 0, 1) == 1;
        for (int y = top; y <= top + height; ++y) {
          for (int x = left; x <= left + width; ++x) image.row(y)[x * 3 + (person ? 1 : 2)] = 220;
        }
        labels += std::string(person ? "Pedestrian" : "Car") + " 0 0 0 " + std::to_string(left) + " " +
                  std::to_string(top) + " " + std::to_string(left + width) + " " + std::to_string(top + height) +
                  " 1 1 1 0 0 " + std::to_string(10 + k) + " 0\n";
      }
      const std::vector<uint8_t> file = EncodePng(image);
      folder_.Write(name + "_images/" + std::to_string(i) + ".png", {file.begin(), file.end()});
      folder_.Write(name + "_labels/" + std::to_string(i) + ".txt", labels);
    }
    KittiConversion conversion;
    conversion.images = folder_ / (name + "_images");
    conversion.labels = folder_ / (name + "_labels");
    ProgressLine progress("images", {[](const std::string&) {}, [] { return 80; }, [] { return 0.0; }, false});
    ConvertKitti(conversion, {.database = folder_ / (name + "_db")}, &progress);
  }

  std::unique_ptr<Solver> Make(int classes, const std::string& more, const std::string& snapshot = "") {
    folder_.Write("net.prototxt", DetectNetText(classes));
    SolverOptions options;
    options.path = folder_ / "solver.prototxt";
    options.observers = {&recorder_};
    options.snapshot = snapshot;
    return std::make_unique<Solver>(
        ParseSolver("net: \"net.prototxt\" test_state { stage: \"val\" } type: \"Adam\" base_lr: 0.0005 lr_policy: "
                    "\"fixed\" momentum: 0.9 momentum2: 0.999 random_seed: 3 test_iter: 4 snapshot_prefix: \"" +
                        (folder_ / "snap") + "\" " + more,
                    "solver.prototxt"),
        std::move(options));
  }

  static float ValueOf(const TestResult& test, const std::string& name) {
    for (const OutputValue& value : test.outputs) {
      if (value.name == name) return value.value;
    }
    ADD_FAILURE() << "no " << name;
    return 0;
  }

  WritableFolder folder_;
  Recorder recorder_;
};

TEST_F(DetectNetTraining, FindsRectangles) {
  WriteData("train", 120, 1, 1);
  WriteData("val", 32, 2, 1);
  Make(1, "max_iter: 400 test_interval: 400")->Train();
  ASSERT_EQ(recorder_.tests.size(), 2u);
  const TestResult &before = recorder_.tests.front(), &after = recorder_.tests.back();
  ASSERT_EQ(after.outputs.size(), 5u);
  EXPECT_LT(ValueOf(before, "mAP0"), 10);
  EXPECT_GT(ValueOf(after, "mAP0"), 60);
  EXPECT_GT(ValueOf(after, "precision0"), 75);
  EXPECT_GT(ValueOf(after, "recall0"), 75);
  EXPECT_LT(ValueOf(after, "loss_bbox"), 0.5 * ValueOf(before, "loss_bbox"));
  EXPECT_LT(ValueOf(after, "loss_coverage"), 0.5 * ValueOf(before, "loss_coverage"));
}

TEST_F(DetectNetTraining, TwoClassesAreToldApart) {
  WriteData("train", 160, 1, 2);
  WriteData("val", 32, 2, 2);
  Make(2, "max_iter: 500 test_interval: 500")->Train();
  const TestResult& after = recorder_.tests.back();
  ASSERT_EQ(after.outputs.size(), 8u);
  EXPECT_GT(ValueOf(after, "mAP0"), 60);
  EXPECT_GT(ValueOf(after, "mAP1"), 60);
}

TEST_F(DetectNetTraining, GoesOnFromASnapshotToTheSameBits) {
  WriteData("train", 20, 1, 1);
  WriteData("val", 32, 2, 1);
  Make(1, "max_iter: 6 test_interval: 100")->Train();
  const std::string expected = ReadFile(folder_ / "snap_iter_6.caffemodel");
  std::filesystem::remove(folder_ / "snap_iter_6.caffemodel");
  std::filesystem::remove(folder_ / "snap_iter_6.solverstate");
  Make(1, "max_iter: 3 test_interval: 100")->Train();
  Make(1, "max_iter: 6 test_interval: 100", folder_ / "snap_iter_3.solverstate")->Train();
  EXPECT_TRUE(ReadFile(folder_ / "snap_iter_6.caffemodel") == expected) << "models differ";
}

TEST_F(DetectNetTraining, DeployNetsCompile) {
  for (const int classes : {1, 2}) {
    NetOptions options;
    options.phase = TEST;
    const Net net(ParseNet(DetectNetText(classes), "net.prototxt"), options);
    ASSERT_EQ(net.outputs().size(), static_cast<size_t>(classes));
    EXPECT_EQ(net.outputs()[0].value.shape(), (Shape{1, 50, 5}));
  }
}

}  // namespace
}  // namespace crema
