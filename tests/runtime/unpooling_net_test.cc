// Upsample with the indices of a Pooling layer, as in SegNet.
#include <gtest/gtest.h>

#include <cmath>

#include "crema/net.h"
#include "device/device.h"

namespace crema {
namespace {

constexpr char kUnpoolingNet[] = R"(
layer { name: "in" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 7 dim: 9 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        convolution_param { num_output: 18 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" top: "mask"
        pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "up" type: "Upsample" bottom: "pool" bottom: "mask" top: "up"
        upsample_param { scale: 2 pad_out_h: true pad_out_w: true } }
layer { name: "sum" type: "Reduction" bottom: "up" top: "sum" loss_weight: 1 }
)";

TEST(UnpoolingNet, PutsMaximaWhereTheyWere) {
  NetOptions options;
  options.context.device = &CpuDevice();
  options.keep_all = true;
  Net net(ParseNet(kUnpoolingNet, "segnet.prototxt"), options);
  const Tensor data = net.blob("data");
  for (int64_t i = 0; i < data.count(); ++i) data.f32()[i] = std::sin(0.37f * static_cast<float>(i));
  net.Forward();
  net.Backward();
  const Tensor all = net.blob("conv"), up = net.blob("up"), pooled = net.blob("pool");
  ASSERT_EQ(up.shape(), all.shape());
  int64_t kept = 0;
  for (int64_t i = 0; i < up.count(); ++i) {
    if (up.f32()[i] == 0) continue;
    EXPECT_EQ(up.f32()[i], all.f32()[i]) << i;
    ++kept;
  }
  EXPECT_EQ(kept, pooled.count());
  // One for each maximum is what reaches the biases.
  for (const Parameter& p : net.parameters()) {
    if (p.index != 1) continue;
    for (int64_t i = 0; i < p.shape.count(); ++i) EXPECT_FLOAT_EQ(p.grad.f32()[i], 2 * 4 * 5);
  }
}

}  // namespace
}  // namespace crema
