// Which layers a net cannot be used without weights for.
#include "runtime/missing_weights.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "crema/net.h"

namespace crema {
namespace {

std::vector<std::string> Needed(const std::string& layers) {
  const Net net(ParseNet("layer { name: \"in\" type: \"Input\" top: \"a\"\n"
                         "  input_param { shape { dim: [2, 3, 4, 4] } } }\n" +
                             layers,
                         "net.prototxt"),
                {.phase = TEST, .backward = false});
  std::vector<std::string> fresh;
  for (const Parameter& p : net.parameters()) fresh.push_back(p.layer);
  return NeededWeights(net, fresh);
}

std::string OneLayer(const std::string& type, const std::string& settings) {
  return "layer { name: \"x\" type: \"" + type + "\" bottom: \"a\" top: \"b\" " + settings + " }\n";
}

const std::vector<std::string> kNone, kNeeded = {"x"};

TEST(MissingWeights, AreThoseThatTrainingFinds) {
  EXPECT_EQ(Needed(OneLayer("InnerProduct", "inner_product_param { num_output: 2 }")), kNeeded);
  EXPECT_EQ(Needed(OneLayer("Convolution",
                            "convolution_param { num_output: 2 kernel_size: 1\n"
                            "  weight_filler { type: \"xavier\" } }")),
            kNeeded);
  EXPECT_EQ(Needed(OneLayer("PReLU", "")), kNeeded);
  EXPECT_EQ(Needed(OneLayer("Scale", "")), kNeeded);
  EXPECT_EQ(Needed(OneLayer("BatchNorm", "")), kNeeded) << "its running statistics";
  EXPECT_EQ(Needed(OneLayer("BN", "bn_param { frozen: true }")), kNeeded);
}

TEST(MissingWeights, OfFrozenLayersAreNumbersOfNobody) {
  const std::string frozen = "param { lr_mult: 0 } param { lr_mult: 0 } ";
  EXPECT_EQ(Needed(OneLayer("InnerProduct", frozen + "inner_product_param { num_output: 2 }")), kNeeded);
  EXPECT_EQ(Needed(OneLayer("InnerProduct", frozen + "inner_product_param { num_output: 2\n"
                                                     "  weight_filler { type: \"gaussian\" } }")),
            kNeeded);
}

TEST(MissingWeights, AreNotWhatFillersAreToMake) {
  EXPECT_EQ(Needed(OneLayer("Deconvolution",
                            "convolution_param { num_output: 3 group: 3 kernel_size: 4 stride: 2\n"
                            "  bias_term: false weight_filler { type: \"bilinear\" } }")),
            kNone);
  EXPECT_EQ(Needed(OneLayer("Scale", "scale_param { filler { type: \"values\" values: [1, 2, 3] } }")), kNone);
  EXPECT_EQ(Needed(OneLayer("Scale", "param { lr_mult: 0 } scale_param { filler { value: 0.5 } }")), kNone);
  EXPECT_EQ(Needed(OneLayer("BatchNorm", "batch_norm_param { use_global_stats: false }")), kNone) << "it reads none";
  EXPECT_EQ(Needed(OneLayer("ReLU", "")), kNone);
}

TEST(MissingWeights, AreNotThoseOfOtherLayers) {
  const Net net(ParseNet("layer { name: \"in\" type: \"Input\" top: \"a\" input_param { shape { dim: [2, 3] } } }\n" +
                             OneLayer("InnerProduct", "inner_product_param { num_output: 2 }"),
                         "net.prototxt"),
                {.phase = TEST, .backward = false});
  EXPECT_EQ(NeededWeights(net, {"other"}), kNone);
}

}  // namespace
}  // namespace crema
