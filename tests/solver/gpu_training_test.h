// A net of images on a GPU, and the same training on the CPU.
#ifndef CREMA_SOLVER_GPU_TRAINING_TEST_H_
#define CREMA_SOLVER_GPU_TRAINING_TEST_H_

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/gpu.h"
#include "solver/training_test.h"

namespace crema {

constexpr char kImagesNet[] = R"(
name: "images"
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN }
        transform_param { scale: 0.00390625 } data_param { source: "train_lmdb" batch_size: 7 backend: LMDB } }
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TEST }
        transform_param { scale: 0.00390625 } data_param { source: "test_lmdb" batch_size: 4 backend: LMDB } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
        convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "norm1" type: "BatchNorm" bottom: "conv1" top: "conv1" }
layer { name: "scale1" type: "Scale" bottom: "conv1" top: "conv1" scale_param { bias_term: true } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
        convolution_param { num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "norm2" type: "BatchNorm" bottom: "conv2" top: "conv2"
        batch_norm_param { scale_bias: true moving_average_fraction: 0.9 } }
layer { name: "sum" type: "Eltwise" bottom: "pool1" bottom: "conv2" top: "sum" }
layer { name: "relu2" type: "ReLU" bottom: "sum" top: "sum" }
layer { name: "ip1" type: "InnerProduct" bottom: "sum" top: "ip1" param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
        inner_product_param { num_output: 16 weight_filler { type: "xavier" } } }
layer { name: "relu3" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "drop1" type: "Dropout" bottom: "ip1" top: "ip1" dropout_param { dropout_ratio: 0.4 } }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)";

class GpuTraining : public SmallTraining {
 protected:
  void SetUp() override {
    try {
      gpu_ = &OpenGpu(0);
    } catch (const EnvironmentError& error) {
      GTEST_SKIP() << error.what();
    }
    folder_.Write("net.prototxt", kImagesNet);
  }

  std::unique_ptr<Solver> On(Device* device, const std::string& more, int max_iter, SolverOptions options = {}) {
    options.device = device;
    return Make(SolverText(more, max_iter), std::move(options));
  }

  static std::vector<float> Values(const Net& net, bool running_statistics = true) {
    std::vector<float> all;
    for (const Parameter& p : net.parameters()) {
      if (!p.trained && !running_statistics) continue;
      std::vector<float> values(static_cast<size_t>(p.shape.count()));
      p.CopyDataTo(values.data());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  // Trains on the CPU and on the GPU; losses and parameters must agree.
  void Compare(const std::string& more, int iterations, double tolerance) {
    const auto on_cpu = On(nullptr, more, iterations);
    on_cpu->Train();
    const Recorder expected = recorder_;
    const auto on_gpu = On(gpu_, more, iterations);
    on_gpu->Train();
    EXPECT_EQ(recorder_.order, expected.order);
    ASSERT_EQ(recorder_.iterations.size(), expected.iterations.size());
    for (size_t i = 0; i < expected.iterations.size(); ++i) {
      EXPECT_NEAR(recorder_.iterations[i].loss, expected.iterations[i].loss, tolerance) << "iteration " << i;
    }
    ASSERT_EQ(recorder_.tests.size(), expected.tests.size());
    for (size_t i = 0; i < expected.tests.size(); ++i) {
      for (size_t o = 0; o < expected.tests[i].outputs.size(); ++o) {
        EXPECT_NEAR(recorder_.tests[i].outputs[o].value, expected.tests[i].outputs[o].value, tolerance);
      }
    }
    const auto wanted = Values(on_cpu->net()), got = Values(on_gpu->net());
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_NEAR(got[i], wanted[i], tolerance * std::max(1.0f, std::fabs(wanted[i]))) << "value " << i;
    }
  }

  Gpu* gpu_ = nullptr;
};

}  // namespace crema

#endif  // CREMA_SOLVER_GPU_TRAINING_TEST_H_
