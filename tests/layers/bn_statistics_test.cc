// What BN remembers of the batches it has seen.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "crema/layer.h"
#include "device/device.h"
#include "ops/operations.h"

namespace crema {
namespace {

// Two channels of two numbers each, in training. Returns the running means and variances.
std::vector<float> StatisticsAfter(const std::vector<std::vector<float>>& batches, bool replay, bool frozen) {
  LayerParameter param;
  param.set_name("norm");
  param.set_type("BN");
  param.add_bottom("x");
  param.add_top("y");
  param.mutable_bn_param()->set_momentum(0.75f);
  param.mutable_bn_param()->set_frozen(frozen);
  const TensorSpec spec = {Shape{1, 2, 2}};
  const auto layer = FindLayerType("BN")->create();
  LayerSetup setup(param, TRAIN, {spec}, [](std::string_view) { return Location{}; });
  layer->Setup(setup);
  Context context;
  context.device = &CpuDevice();
  LayerPlan plan(context, {spec}, setup.top_specs(), {false}, std::vector<bool>(setup.params().size()));
  layer->Plan(plan);
  std::vector<std::byte> workspace(plan.forward_workspace() + 64);
  auto* aligned = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64);
  std::vector<std::vector<float>> values = {{1, 1}, {0, 0}, {1, 2}, {4, 8}};
  std::vector<Tensor> params;
  for (size_t i = 0; i < values.size(); ++i) params.emplace_back(values[i].data(), TensorSpec{setup.params()[i].shape});
  std::vector<float> output(4);
  const std::vector<Tensor> tops = {Tensor(output.data(), spec)};
  for (std::vector<float> batch : batches) {
    const std::vector<Tensor> bottoms = {Tensor(batch.data(), spec)};
    LayerRun run;
    run.context = &context;
    run.ops = &OperationsOf(*context.device);
    run.replay = replay;
    run.bottoms = bottoms;
    run.tops = tops;
    run.params = params;
    run.workspace = aligned;
    layer->Forward(run);
  }
  return {values[2][0], values[2][1], values[3][0], values[3][1]};
}

TEST(BnStatistics, MoveByTheirMomentum) {
  // Means 4 and -2, variances 4 and 1.
  const std::vector<float> batch = {2, 6, -1, -3};
  EXPECT_EQ(StatisticsAfter({batch}, false, false), (std::vector<float>{1.75f, 1, 4, 6.25f}));
  EXPECT_EQ(StatisticsAfter({batch, batch}, false, false), (std::vector<float>{2.3125f, 0.25f, 4, 4.9375f}));
}

TEST(BnStatistics, StayInAReplayAndWhereTheyAreFrozen) {
  const std::vector<float> batch = {2, 6, -1, -3}, old = {1, 2, 4, 8};
  EXPECT_EQ(StatisticsAfter({batch}, true, false), old);
  EXPECT_EQ(StatisticsAfter({batch}, false, true), old);
}

}  // namespace
}  // namespace crema
