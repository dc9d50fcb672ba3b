// Gradients of parameters that live no longer than from the layer that makes them to the update that uses them.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "crema/net.h"
#include "graph/program.h"

namespace crema {
namespace {

// "twin" is one layer's weights used twice, the second time above a fork.
const char* const kPassingNet = R"(
name: "twins"
layer { name: "in" type: "Input" top: "data" top: "label"
  input_param { shape { dim: 4 dim: 3 dim: 8 dim: 8 } shape { dim: 4 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "twin1" type: "InnerProduct" bottom: "conv" top: "twin1" param { name: "w" } param { name: "b" }
  inner_product_param { num_output: 1024 weight_filler { type: "xavier" } } }
layer { name: "tanh" type: "TanH" bottom: "twin1" top: "twin1" }
layer { name: "twin2" type: "InnerProduct" bottom: "twin1" top: "twin2" param { name: "w" } param { name: "b" }
  inner_product_param { num_output: 1024 weight_filler { type: "xavier" } } }
layer { name: "frozen" type: "InnerProduct" bottom: "twin2" top: "frozen" param { lr_mult: 0 } param { lr_mult: 0 }
  inner_product_param { num_output: 64 weight_filler { type: "xavier" } } }
layer { name: "ip" type: "InnerProduct" bottom: "frozen" top: "ip"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

void RunOnce(Net& net, GradientReader* reader) {
  const Tensor data = net.blob("data"), label = net.blob("label");
  for (int64_t i = 0; i < data.count(); ++i) data.f32()[i] = std::sin(0.37f * static_cast<float>(i));
  for (int64_t i = 0; i < label.count(); ++i) label.f32()[i] = static_cast<float>(i % 5);
  net.Forward();
  net.Backward(reader);
}

// Keeps what it is told and then spoils the parameter, which nothing may read any more.
class SpoilingReader : public GradientReader {
 public:
  explicit SpoilingReader(Net& net) : net_(net) {}
  void OnGradient(int parameter, const Tensor& gradient) override {
    EXPECT_EQ(gradients.count(parameter), 0u) << "told twice";
    gradients[parameter].assign(gradient.f32(), gradient.f32() + gradient.count());
    const Tensor& data = std::as_const(net_).parameters()[parameter].data;
    std::fill(data.f32(), data.f32() + data.count(), std::nanf(""));
  }
  std::map<int, std::vector<float>> gradients;

 private:
  Net& net_;
};

TEST(PassingGradients, AreThoseThatAreKept) {
  const NetFile file = ParseNet(kPassingNet, "twins.prototxt");
  Net keeping(file, {}), passing(file, {.keep_gradients = false});
  SpoilingReader reader(passing);
  RunOnce(keeping, nullptr);
  RunOnce(passing, &reader);
  int trained = 0;
  const auto parameters = std::as_const(keeping).parameters();
  for (size_t p = 0; p < parameters.size(); ++p) {
    const Tensor& grad = parameters[p].grad;
    EXPECT_EQ(parameters[p].trained, grad.defined());
    EXPECT_FALSE(std::as_const(passing).parameters()[p].grad.defined());
    if (!grad.defined()) continue;
    ++trained;
    EXPECT_EQ(reader.gradients[static_cast<int>(p)], std::vector<float>(grad.f32(), grad.f32() + grad.count()))
        << parameters[p].name();
  }
  EXPECT_EQ(trained, 6);
  EXPECT_EQ(reader.gradients.size(), 6u);
}

TEST(PassingGradients, ShareTheMemoryOfThePass) {
  std::string text = kPassingNet;
  const std::string names = " param { name: \"w\" } param { name: \"b\" }";
  while (text.find(names) != std::string::npos) text.erase(text.find(names), names.size());
  const NetFile file = ParseNet(text, "two.prototxt");
  Net keeping(file, {}), passing(file, {.keep_gradients = false});
  const size_t gradients = keeping.gradient_block().size_bytes();
  EXPECT_GT(gradients, 8u << 20);
  EXPECT_EQ(passing.gradient_block().size(), 0u);
  // The gradients of two large layers, one after the other.
  EXPECT_LT(passing.compiled().program.arena_bytes, keeping.compiled().program.arena_bytes + gradients * 6 / 10);
}

}  // namespace
}  // namespace crema
