// Nets for volumes and videos: 3-D convolutions and poolings together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "crema/net.h"
#include "graph/program.h"
#include "runtime/two_passes.h"

namespace crema {
namespace {

// As C3D and 3D U-Net have them: the first pooling leaves the frames alone, the last one is of all.
const std::string kVolumeData = R"(
layer { name: "in" type: "Input" top: "data" top: "label"
        input_param { shape { dim: 3 dim: 3 dim: 8 dim: 12 dim: 10 } shape { dim: 3 } } })";
const std::string kVolumeHead = R"(
layer { name: "ip" type: "InnerProduct" bottom: "g" top: "ip"
        inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })";

const std::string kVolumeNet = kVolumeData + R"(
layer { name: "c1" type: "Convolution" bottom: "data" top: "c1"
        convolution_param { num_output: 20 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "r1" type: "ReLU" bottom: "c1" top: "c1" }
layer { name: "p1" type: "Pooling" bottom: "c1" top: "p1" pooling_param { kernel_size: [1, 2, 2] stride: [1, 2, 2] } }
layer { name: "c2" type: "Convolution" bottom: "p1" top: "c2"
        convolution_param { num_output: 24 kernel_size: [3, 1, 3] pad: [1, 0, 1] weight_filler { type: "xavier" } } }
layer { name: "r2" type: "ReLU" bottom: "c2" top: "c2" }
layer { name: "p2" type: "Pooling" bottom: "c2" top: "p2" pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "p3" type: "Pooling" bottom: "p2" top: "p3"
        pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 } }
layer { name: "g" type: "Pooling" bottom: "p3" top: "g" pooling_param { pool: AVE global_pooling: true } })" +
                               kVolumeHead;

const std::string kVolumeNetOfC3d = kVolumeData + R"(
layer { name: "c1" type: "Convolution3D" bottom: "data" top: "c1"
        convolution3d_param { num_output: 20 kernel_size: 3 kernel_depth: 3 pad: 1 temporal_pad: 1
                              weight_filler { type: "xavier" } } }
layer { name: "r1" type: "ReLU" bottom: "c1" top: "c1" }
layer { name: "p1" type: "Pooling3D" bottom: "c1" top: "p1"
        pooling3d_param { kernel_size: 2 kernel_depth: 1 stride: 2 temporal_stride: 1 } }
layer { name: "c2" type: "NdConvolution" bottom: "p1" top: "c2"
        convolution_param { num_output: 24 kernel_shape { dim: 3 dim: 1 dim: 3 } pad_shape { dim: 1 dim: 0 dim: 1 }
                            weight_filler { type: "xavier" } } }
layer { name: "r2" type: "ReLU" bottom: "c2" top: "c2" }
layer { name: "p2" type: "NdPooling" bottom: "c2" top: "p2"
        pooling_param { kernel_shape { dim: 2 dim: 2 dim: 2 } stride_shape { dim: 2 dim: 2 dim: 2 } } }
layer { name: "p3" type: "NdPooling" bottom: "p2" top: "p3"
        pooling_param { pool: AVE kernel_shape { dim: 3 dim: 3 dim: 3 } stride_shape { dim: 2 dim: 2 dim: 2 }
                        pad_shape { dim: 1 dim: 1 dim: 1 } } }
layer { name: "g" type: "Pooling" bottom: "p3" top: "g" pooling_param { pool: AVE global_pooling: true } })" +
                                    kVolumeHead;

Outcome RunVolumeNet(const std::string& text, const NetOptions& options) { return RunTwoPasses(text, 7, options); }

void ExpectVolumesNearby(const Outcome& a, const Outcome& b, float tolerance) {
  EXPECT_NEAR(a.loss, b.loss, tolerance * std::abs(b.loss));
  ASSERT_EQ(a.gradients.size(), b.gradients.size());
  for (size_t p = 0; p < a.gradients.size(); ++p) {
    float largest = 0, error = 0;
    for (size_t i = 0; i < a.gradients[p].size(); ++i) {
      largest = std::max(largest, std::abs(b.gradients[p][i]));
      error = std::max(error, std::abs(a.gradients[p][i] - b.gradients[p][i]));
    }
    EXPECT_GT(largest, 0.0f) << "parameter " << p;
    EXPECT_LE(error, tolerance * largest) << "parameter " << p;
  }
}

const std::vector<std::string> kAllOptional = {"fuse_layers", "choose_layouts", "lay_out_weights", "split_batch"};

TEST(VolumeNet, OptionalPassesDoNotChangeIt) {
  const Outcome plain = RunVolumeNet(kVolumeNet, {.skip_passes = kAllOptional});
  EXPECT_GT(plain.loss, 0.1f);
  ExpectVolumesNearby(RunVolumeNet(kVolumeNet, {}), plain, 1e-4f);
  ExpectVolumesNearby(RunVolumeNet(kVolumeNet, {.phase = TEST}),
                      RunVolumeNet(kVolumeNet, {.phase = TEST, .skip_passes = kAllOptional}), 1e-5f);
}

TEST(VolumeNet, SpellingsOfForksAreTheSame) {
  const Outcome today = RunVolumeNet(kVolumeNet, {}), theirs = RunVolumeNet(kVolumeNetOfC3d, {});
  EXPECT_EQ(today.loss, theirs.loss);
  EXPECT_EQ(today.gradients, theirs.gradients);
}

// Shapes of tops and what their windows read, which `summary` and `time` count.
TEST(VolumeNet, PoolsThreeAxes) {
  Net net(ParseNet(kVolumeNet, "volumes.prototxt"), {});
  EXPECT_EQ(net.blob("p1").shape(), (Shape{3, 20, 8, 6, 5}));
  EXPECT_EQ(net.blob("p2").shape(), (Shape{3, 24, 4, 3, 3}));
  EXPECT_EQ(net.blob("p3").shape(), (Shape{3, 24, 3, 2, 2}));
  EXPECT_EQ(net.blob("g").shape(), (Shape{3, 24, 1, 1, 1}));
}

// C3D's weights keep a bias as five axes, whether or not they say so with the first version's shapes.
TEST(VolumeNet, TakesWeightsPaddedToFiveAxes) {
  Net from(ParseNet(kVolumeNet, "volumes.prototxt"), {}), to(ParseNet(kVolumeNet, "volumes.prototxt"), {});
  for (const bool legacy : {false, true}) {
    LayerWeights weights{"c1", "Convolution3D", {}};
    for (const Parameter& p : std::as_const(from).parameters()) {
      if (p.layer != "c1") continue;
      std::vector<int64_t> dims(5 - p.shape.axes(), 1);
      dims.insert(dims.end(), p.shape.dims().begin(), p.shape.dims().end());
      std::vector<float> values(p.shape.count());
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) + (legacy ? 1.0f : 2.0f);
      weights.blobs.push_back({Shape(dims), values, legacy});
    }
    EXPECT_EQ(to.LoadWeights({weights}).copied, std::vector<std::string>{"c1"});
    for (const Parameter& p : std::as_const(to).parameters()) {
      if (p.layer != "c1") continue;
      std::vector<float> values(p.shape.count());
      p.CopyDataTo(values.data());
      EXPECT_EQ(values, weights.blobs[p.index].data);
    }
    weights.blobs[1].shape = Shape{1, 1, 1, 4, 5};
    EXPECT_THROW(to.LoadWeights({weights}), UserError);
  }
}

}  // namespace
}  // namespace crema
