// Nets that must look at several frames: the direction of a moving bar, which no single frame tells, in the form of C3D
// and in that of Temporal Segment Networks.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "data/video_testing.h"
#include "solver/training_test.h"

namespace crema {
namespace {

constexpr int kSide = 12, kFrames = 24;

// Up and down, left and right convolved together, and what was found anywhere.
constexpr char kVolumeNet[] = R"(
name: "volumes"
layer { name: "data" type: "VideoData" top: "data" top: "label" include { phase: TRAIN }
        video_data_param { source: "train.txt" root_folder: "ROOT" batch_size: 8 shuffle: true
                           use_image: true use_temporal_jitter: true new_length: 4 }
        transform_param { mean_value: 40 scale: 0.01 crop_size: 10 } }
layer { name: "data" type: "VideoData" top: "data" top: "label" include { phase: TEST }
        video_data_param { source: "test.txt" root_folder: "ROOT" batch_size: 8
                           use_image: true use_temporal_jitter: true new_length: 4 }
        transform_param { mean_value: 40 scale: 0.01 crop_size: 10 } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        convolution_param { num_output: 8 kernel_size: [2, 1, 3] weight_filler { type: "msra" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "mean" type: "Reduction" bottom: "conv" top: "mean" reduction_param { operation: MEAN axis: 2 } }
layer { name: "scores" type: "InnerProduct" bottom: "mean" top: "scores"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "scores" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "scores" bottom: "label" top: "loss" }
)";

// Each segment by itself, then the mean of their scores, as nets of TSN do it.
constexpr char kSegmentsNet[] = R"(
name: "segments"
layer { name: "data" type: "VideoData" top: "data" top: "label" include { phase: TRAIN }
        video_data_param { source: "train.txt" root_folder: "ROOT" batch_size: 8 shuffle: true
                           new_length: 2 num_segments: 3 modality: RGB name_pattern: "%06d.jpg" }
        transform_param { mean_value: [40, 40, 40] scale: 0.01 crop_size: 10 fix_crop: true more_fix_crop: true
                          multi_scale: true max_distort: 1 scale_ratios: [1, .875] is_flow: false } }
layer { name: "data" type: "VideoData" top: "data" top: "label" include { phase: TEST }
        video_data_param { source: "test.txt" root_folder: "ROOT" batch_size: 8
                           new_length: 2 num_segments: 3 modality: RGB name_pattern: "%06d.jpg" }
        transform_param { mean_value: [40, 40, 40] scale: 0.01 crop_size: 10 } }
layer { name: "reshape_data" type: "Reshape" bottom: "data" top: "reshape_data"
        reshape_param { shape { dim: [-1, 6, 10, 10] } } }
layer { name: "conv" type: "Convolution" bottom: "reshape_data" top: "conv"
        convolution_param { num_output: 8 kernel_h: 1 kernel_w: 3 weight_filler { type: "msra" } } }
layer { name: "conv_bn" type: "BN" bottom: "conv" top: "conv_bn"
        bn_param { engine: CAFFE frozen: true slope_filler { type: "constant" value: 1 }
                   bias_filler { type: "constant" value: 0 } } }
layer { name: "relu" type: "ReLU" bottom: "conv_bn" top: "conv_bn" }
layer { name: "global_pool" type: "Pooling" bottom: "conv_bn" top: "global_pool"
        pooling_param { pool: AVE kernel_h: 10 kernel_w: 8 } }
layer { name: "fc" type: "InnerProduct" bottom: "global_pool" top: "fc"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "reshape_fc" type: "Reshape" bottom: "fc" top: "reshape_fc"
        reshape_param { shape { dim: [-1, 1, 3, 2] } } }
layer { name: "segment_consensus" type: "Pooling" bottom: "reshape_fc" top: "pool_fusion"
        pooling_param { pool: AVE kernel_h: 3 kernel_w: 1 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "pool_fusion" bottom: "label" top: "loss"
        softmax_param { axis: 3 } }
layer { name: "accuracy" type: "Accuracy" bottom: "pool_fusion" bottom: "label" top: "accuracy"
        accuracy_param { axis: 3 } include { phase: TEST } }
)";

class Videos : public SmallTraining {
 protected:
  // A bar that moves by a column a frame, to the right in videos of class 0, to the left in those of class 1, and comes
  // in again on the other side: each class has each frame as often.
  void SetUp() override {
    for (int video = 0; video < 24; ++video) {
      const int direction = video % 2 == 0 ? 1 : -1, begin = video / 2;
      testing::WriteVideo(folder_ / ("videos/" + std::to_string(video)), "%06d.jpg", kFrames, [&](int frame) {
        Image image;
        image.Resize(kSide, kSide, 3);
        std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{20});
        const int column = (begin + direction * frame + 10 * kSide) % kSide;
        for (int y = 0; y < kSide; ++y) std::fill_n(image.row(y) + 3 * column, 3, uint8_t{220});
        return image;
      });
    }
    for (const bool test : {false, true}) {
      std::string list;
      for (int video = test ? 16 : 0; video < (test ? 24 : 16); ++video) {
        list += std::to_string(video) + " " + std::to_string(kFrames) + " " + std::to_string(video % 2) + "\n";
      }
      folder_.Write(test ? "test.txt" : "train.txt", list);
    }
  }

  float AccuracyAfter(std::string net, const std::string& solver, int iterations) {
    for (size_t at = 0; (at = net.find("ROOT", at)) != std::string::npos;) net.replace(at, 4, folder_ / "videos");
    folder_.Write("net.prototxt", net);
    Train("test_iter: 1 test_interval: " + std::to_string(iterations) + " momentum: 0.9 " + solver, iterations);
    EXPECT_EQ(recorder_.tests.size(), 2u);
    for (const OutputValue& output : recorder_.tests.back().outputs) {
      if (output.name == "accuracy") return output.value;
    }
    return -1;
  }
};

TEST_F(Videos, VolumesShowWhichWayABarMoves) { EXPECT_EQ(AccuracyAfter(kVolumeNet, "base_lr: 0.2", 200), 1); }

TEST_F(Videos, SegmentsShowWhichWayABarMoves) { EXPECT_EQ(AccuracyAfter(kSegmentsNet, "base_lr: 0.1", 200), 1); }

}  // namespace
}  // namespace crema
