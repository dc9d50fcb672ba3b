// The gradients of inputs, with force_backward.
#include <gtest/gtest.h>

#include "crema/net.h"

namespace crema {
namespace {

// x has three readers: the gradient of 3 x + x^2 + sum of w x, w being an input, too.
TEST(ForcedGradients, OfInputsHoldTheSumOverTheirReaders) {
  const NetFile file = ParseNet(R"(
force_backward: true
layer { name: "in" type: "Input" top: "x" top: "w" top: "unread" input_param { shape { dim: 3 dim: 5 } } }
layer { name: "triple" type: "Power" bottom: "x" top: "triple" power_param { scale: 3 } }
layer { name: "sum" type: "Reduction" bottom: "triple" top: "sum" loss_weight: 1 }
layer { name: "squares" type: "Reduction" bottom: "x" top: "squares" loss_weight: 1
  reduction_param { operation: SUMSQ } }
layer { name: "product" type: "Eltwise" bottom: "x" bottom: "w" top: "product"
  eltwise_param { operation: PROD } }
layer { name: "weighed" type: "Reduction" bottom: "product" top: "weighed" loss_weight: 1 }
)",
                                "net.prototxt");
  Net planned(file, {}), separate(file, {.keep_all = true});
  for (Net* net : {&planned, &separate}) {
    const Tensor x = net->blob("x"), w = net->blob("w");
    for (int64_t i = 0; i < x.count(); ++i) {
      x.f32()[i] = static_cast<float>(i) / 8;
      w.f32()[i] = static_cast<float>(i % 4);
    }
    net->Forward();
    net->Backward();
    const Tensor of_x = net->blob_grad("x"), of_w = net->blob_grad("w");
    ASSERT_TRUE(of_x.defined() && of_w.defined());
    for (int64_t i = 0; i < x.count(); ++i) {
      EXPECT_EQ(of_x.value(i), 3 + 2 * x.value(i) + w.value(i)) << i;
      EXPECT_EQ(of_w.value(i), x.value(i)) << i;
    }
    EXPECT_FALSE(net->blob_grad("unread").defined());
  }
}

}  // namespace
}  // namespace crema
