// A net in the manner of DeepLab: images smaller than their crop, dilated convolutions, shrunk labels, and the mean
// intersection by union.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/random.h"
#include "image/codec.h"
#include "solver/training_test.h"

namespace crema {
namespace {

constexpr char kSegmentationNet[] = R"(
name: "deeplab"
layer { name: "data" type: "ImageSegData" top: "data" top: "label" include { phase: TRAIN }
        image_data_param { source: "train.txt" root_folder: "images" batch_size: 6 shuffle: true label_type: PIXEL }
        transform_param { mirror: true crop_size: 33 mean_value: 60 mean_value: 60 mean_value: 60 scale: 0.02 } }
layer { name: "data" type: "ImageSegData" top: "data" top: "label" top: "data_dim" include { phase: TEST }
        image_data_param { source: "val.txt" root_folder: "images" batch_size: 4 label_type: PIXEL }
        transform_param { crop_size: 33 mean_value: 60 mean_value: 60 mean_value: 60 scale: 0.02 } }
layer { name: "silence" type: "Silence" bottom: "data_dim" include { phase: TEST } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
        convolution_param { num_output: 8 kernel_size: 3 pad: 1 stride: 2 weight_filler { type: "msra" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
        pooling_param { pool: MAX kernel_size: 3 stride: 2 pad: 1 } }
layer { name: "fc6" type: "Convolution" bottom: "pool1" top: "fc6"
        convolution_param { num_output: 12 kernel_size: 3 pad: 2 dilation: 2 weight_filler { type: "msra" } } }
layer { name: "relu6" type: "ReLU" bottom: "fc6" top: "fc6" }
layer { name: "drop6" type: "Dropout" bottom: "fc6" top: "fc6" dropout_param { dropout_ratio: 0.1 } }
layer { name: "fc8" type: "Convolution" bottom: "fc6" top: "fc8" param { lr_mult: 1 } param { lr_mult: 2 }
        convolution_param { num_output: 3 kernel_size: 1 weight_filler { type: "gaussian" std: 0.01 } } }
layer { name: "label_shrink" type: "Interp" bottom: "label" top: "label_shrink" include { phase: TRAIN }
        interp_param { shrink_factor: 4 pad_beg: 0 pad_end: 0 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc8" bottom: "label_shrink" top: "loss" include { phase: TRAIN }
        loss_param { ignore_label: 255 } }
layer { name: "accuracy" type: "SegAccuracy" bottom: "fc8" bottom: "label_shrink" top: "accuracy"
        include { phase: TRAIN } seg_accuracy_param { ignore_label: 255 } }
layer { name: "interp" type: "Interp" bottom: "fc8" top: "interp" include { phase: TEST }
        interp_param { zoom_factor: 4 pad_beg: 0 pad_end: -1 } }
layer { name: "label_part" type: "Interp" bottom: "label" top: "label_part" include { phase: TEST }
        interp_param { shrink_factor: 1 pad_beg: 0 pad_end: -4 } }
layer { name: "accuracy" type: "SegAccuracy" bottom: "interp" bottom: "label_part" top: "accuracy"
        include { phase: TEST } seg_accuracy_param { ignore_label: 255 reset: false } }
layer { name: "means" type: "Slice" bottom: "accuracy" top: "pixel_accuracy" top: "mean_recall" top: "mean_iu"
        include { phase: TEST } slice_param { axis: 3 } }
)";

class Segmentation : public SmallTraining {
 protected:
  // Blue and red rectangles, of classes 1 and 2, on dark ground.
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "images");
    std::string list;
    for (int i = 0; i < 10; ++i) {
      const RandomStream random(3, static_cast<uint64_t>(i));
      uint64_t drawn = 0;
      const auto below = [&](int n) { return static_cast<int>(random.Below(drawn++, static_cast<uint64_t>(n))); };
      const int height = 24 + below(20), width = 24 + below(20);
      Image image, labels;
      image.Resize(height, width, 3);
      labels.Resize(height, width, 1);
      for (uint8_t& pixel : image.pixels) pixel = static_cast<uint8_t>(below(60));
      std::fill(labels.pixels.begin(), labels.pixels.end(), uint8_t{0});
      for (const int of_class : {1, 2}) {
        const int top = below(height - 14), left = below(width - 14);
        for (int y = top; y < top + 14; ++y) {
          for (int x = left; x < left + 14; ++x) {
            for (int c = 0; c < 3; ++c) {
              image.row(y)[3 * x + c] = static_cast<uint8_t>(below(60) + (c == 2 * (of_class - 1) ? 180 : 0));
            }
            labels.row(y)[x] = static_cast<uint8_t>(of_class);
          }
        }
      }
      const std::string name = std::to_string(i) + ".png";
      Write("images/" + name, EncodePng(image));
      Write("images/label" + name, EncodePng(labels));
      list += "/" + name + " /label" + name + "\n";
    }
    for (const char* file : {"train.txt", "val.txt"}) folder_.Write(file, list);
    std::string net = kSegmentationNet;
    for (size_t at = 0; (at = net.find("\"images\"", at)) != std::string::npos; ++at) {
      net.replace(at, 8, "\"" + folder_ / "images" + "\"");
    }
    folder_.Write("net.prototxt", net);
  }

  void Write(const std::string& name, const std::vector<uint8_t>& bytes) const {
    folder_.Write(name, {bytes.begin(), bytes.end()});
  }
};

TEST_F(Segmentation, LearnsTheClassesOfPixels) {
  Train("test_iter: 5 test_interval: 30 display: 30 momentum: 0.9 base_lr: 0.05 best { output: \"mean_iu\" }", 60);
  ASSERT_EQ(recorder_.tests.size(), 3u);
  const auto measure = [&](size_t test, const std::string& name) {
    for (const OutputValue& output : recorder_.tests[test].outputs) {
      if (output.name == name) return output.value;
    }
    ADD_FAILURE() << name;
    return 0.0f;
  };
  EXPECT_LT(measure(0, "mean_iu"), 0.35f);
  EXPECT_GT(measure(2, "mean_iu"), 0.6f);
  EXPECT_GT(measure(2, "pixel_accuracy"), measure(2, "mean_iu"));
  EXPECT_GE(recorder_.bests.size(), 2u);
  ASSERT_EQ(recorder_.displays.at(1).outputs.size(), 4u) << "accuracy has three values, loss one";
}

}  // namespace
}  // namespace crema
