#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "compiler/compiler.h"
#include "compiler/minimum_cut.h"
#include "device/device.h"

namespace crema {
namespace {

TEST(MinimumCut, IsTheCheapestOfAll) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const int nodes = 2 + static_cast<int>(random() % 7);
    MinimumCut cut;
    for (int i = 2; i < nodes; ++i) cut.AddNode();
    struct Edge {
      int from, to;
      int64_t cost;
    };
    std::vector<Edge> edges;
    for (int i = 0; i < 3 * nodes; ++i) {
      const Edge edge{static_cast<int>(random() % nodes), static_cast<int>(random() % nodes),
                      static_cast<int64_t>(random() % 6)};
      edges.push_back(edge);
      cut.AddEdge(edge.from, edge.to, edge.cost);
    }
    const auto cost_of = [&](const std::vector<bool>& first) {
      int64_t cost = 0;
      for (const Edge& edge : edges) cost += first[edge.from] && !first[edge.to] ? edge.cost : 0;
      return cost;
    };
    int64_t cheapest = MinimumCut::kNever;
    int64_t most = 0;  // nodes on the first side
    for (int sides = 0; sides < 1 << (nodes - 2); ++sides) {
      std::vector<bool> first(static_cast<size_t>(nodes));
      first[MinimumCut::kFirst] = true;
      for (int i = 2; i < nodes; ++i) first[i] = (sides >> (i - 2) & 1) != 0;
      const int64_t cost = cost_of(first), count = std::count(first.begin(), first.end(), true);
      if (cost < cheapest || (cost == cheapest && count > most)) {
        cheapest = cost;
        most = count;
      }
    }
    const std::vector<bool> found = cut.Solve();
    EXPECT_TRUE(found[MinimumCut::kFirst]);
    EXPECT_FALSE(found[MinimumCut::kSecond]);
    EXPECT_EQ(cost_of(found), cheapest) << trial;
    EXPECT_EQ(std::count(found.begin(), found.end(), true), most) << trial;
  }
}

std::vector<std::string> ReordersOf(const std::string& text) {
  NetOptions options;
  options.context.device = &CpuDevice();
  const auto net = Compile(ParseNet(text, "net.prototxt"), options);
  std::vector<std::string> reorders;
  for (const auto* steps : {&net->program.forward, &net->program.backward}) {
    for (const Step& step : *steps) {
      if (step.kind == StepKind::kReorder) reorders.push_back(net->program.tensors[step.bottoms[0]].name);
    }
  }
  return reorders;
}

constexpr char kConvolution[] = R"(
layer { name: "image" type: "Input" top: "image" input_param { shape { dim: 8 dim: 3 dim: 8 dim: 8 } } }
layer { name: "conv" type: "Convolution" bottom: "image" top: "conv" convolution_param { num_output: 8 kernel_size: 3 } }
layer { name: "sum" type: "Reduction" bottom: "conv" top: "sum" loss_weight: 1 }
)";

// Each of its layers alone costs as much either way; together they cost nothing.
TEST(ChooseLayouts, ABranchBetweenPlainLayersStaysPlain) {
  constexpr char kBranch[] = R"(
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 8 dim: 16 dim: 10 } } }
layer { name: "scale" type: "Scale" bottom: "data" top: "scale" }
layer { name: "tanh" type: "TanH" bottom: "scale" top: "tanh" }
layer { name: "shuffle" type: "ShuffleChannel" bottom: "tanh" top: "shuffle" shuffle_channel_param { group: 4 } }
layer { name: "loss" type: "Reduction" bottom: "shuffle" top: "loss" loss_weight: 1 }
)";
  EXPECT_TRUE(ReordersOf(kBranch).empty());
  EXPECT_EQ(ReordersOf(std::string(kConvolution) + kBranch), ReordersOf(kConvolution));
}

}  // namespace
}  // namespace crema
