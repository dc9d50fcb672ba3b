// A net with layers of most kinds, for tests that vary what is done with it.
#ifndef CREMA_TESTS_RUNTIME_SMALL_NET_H_
#define CREMA_TESTS_RUNTIME_SMALL_NET_H_

#include <cmath>
#include <string>

#include "crema/net.h"

namespace crema {

inline constexpr char kSmallNet[] = R"(
name: "small"
layer { name: "in" type: "Input" top: "data" top: "label"
  input_param { shape { dim: 4 dim: 2 dim: 8 dim: 8 } shape { dim: 4 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 6 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "drop" type: "Dropout" bottom: "pool" top: "pool" }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

inline NetFile File(const std::string& text) { return ParseNet(text, "net.prototxt"); }

inline void FillAllInputs(Net& net) {
  const Tensor data = net.blob("data"), label = net.blob("label");
  for (int64_t i = 0; i < data.count(); ++i) data.f32()[i] = std::sin(0.37f * static_cast<float>(i));
  for (int64_t i = 0; i < label.count(); ++i) label.f32()[i] = static_cast<float>(i % 5);
}

}  // namespace crema

#endif  // CREMA_TESTS_RUNTIME_SMALL_NET_H_
