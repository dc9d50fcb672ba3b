// A test net that works in the memory of its train net.
#include <gtest/gtest.h>

#include <cmath>

#include "crema/net.h"
#include "graph/program.h"

namespace crema {
namespace {

const char* const kSharingNet = R"(
layer { type: "Input" name: "in" top: "data" top: "label"
        input_param { shape { dim: 8 dim: 3 dim: 12 dim: 12 } shape { dim: 8 } } }
layer { type: "Convolution" name: "c1" bottom: "data" top: "c1"
        convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { type: "ReLU" name: "r1" bottom: "c1" top: "c1" }
layer { type: "InnerProduct" name: "ip" bottom: "c1" top: "ip"
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { type: "SoftmaxWithLoss" name: "loss" bottom: "ip" bottom: "label" top: "loss" })";

void Fill(Net& net, float phase) {
  const Tensor data = net.blob("data"), label = net.blob("label");
  for (int64_t i = 0; i < data.count(); ++i) data.f32()[i] = std::sin(phase + 0.37f * static_cast<float>(i));
  for (int64_t i = 0; i < label.count(); ++i) label.f32()[i] = static_cast<float>(i % 5);
}

TEST(SharedMemory, NeitherNetDisturbsTheOther) {
  const NetFile file = ParseNet(kSharingNet, "net.prototxt");
  NetOptions train;
  train.context.seed = 3;
  Net net(file, train), alone(file, train);
  NetOptions borrowing{.phase = TEST, .backward = false, .share_with = &net, .share_memory = true};
  Net tested(file, borrowing);
  Net separate(file, {.phase = TEST, .backward = false, .share_with = &alone});
  Fill(net, 0);
  Fill(alone, 0);
  Fill(tested, 1);
  Fill(separate, 1);
  for (int pass = 0; pass < 3; ++pass) {
    EXPECT_EQ(net.Forward(), alone.Forward()) << "the inputs of the train net were overwritten";
    net.Backward();
    alone.Backward();
    EXPECT_EQ(tested.Forward(), separate.Forward()) << "the inputs of the test net were overwritten";
  }
  const std::byte* begin = static_cast<const std::byte*>(net.blob("data").raw());
  const std::byte* inside = static_cast<const std::byte*>(tested.blob("loss").raw());
  EXPECT_GE(inside, begin);
  EXPECT_LT(inside, begin + net.compiled().program.arena_bytes) << "the test net has memory of its own";
}

}  // namespace
}  // namespace crema
