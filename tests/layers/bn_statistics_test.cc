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

LayerParameter Norm(const std::string& type) {
  LayerParameter param;
  param.set_name("norm");
  param.set_type(type);
  param.add_bottom("x");
  param.add_top("y");
  return param;
}

// Blobs of two channels of two numbers each, after training with these batches.
std::vector<std::vector<float>> Train(const LayerParameter& param, std::vector<std::vector<float>> values,
                                      const std::vector<std::vector<float>>& batches, bool replay = false) {
  const TensorSpec spec = {Shape{1, 2, 2}};
  const auto layer = FindLayerType(param.type())->create();
  LayerSetup setup(param, TRAIN, {spec}, [](std::string_view) { return Location{}; });
  layer->Setup(setup);
  Context context;
  context.device = &CpuDevice();
  LayerPlan plan(context, {spec}, setup.top_specs(), {false}, std::vector<bool>(setup.params().size()));
  layer->Plan(plan);
  std::vector<std::byte> workspace(plan.forward_workspace() + 64);
  auto* aligned = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64);
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
  return values;
}

// Running means and variances of a BN.
std::vector<float> StatisticsAfter(const std::vector<std::vector<float>>& batches, bool replay, bool frozen) {
  LayerParameter param = Norm("BN");
  param.mutable_bn_param()->set_momentum(0.75f);
  param.mutable_bn_param()->set_frozen(frozen);
  const auto values = Train(param, {{1, 1}, {0, 0}, {1, 2}, {4, 8}}, batches, replay);
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

// As NVIDIA's fork has them: the first batch's own, then averages that move, of weight 1.
TEST(BatchNormStatistics, AreAveragesWhereTheLayerScalesByItself) {
  LayerParameter param = Norm("BatchNorm");
  param.mutable_batch_norm_param()->set_moving_average_fraction(0.75f);
  param.mutable_batch_norm_param()->set_scale_bias(true);
  // Means 4 and -2, unbiased variances 8 and 2; then 0 and 1, 2 and 0.
  const std::vector<float> first = {2, 6, -1, -3}, second = {-1, 1, 1, 1};
  const std::vector<std::vector<float>> fresh = {{0, 0}, {0, 0}, {0}, {1, 1}, {0, 0}};
  EXPECT_EQ(Train(param, fresh, {first}), (std::vector<std::vector<float>>{{4, -2}, {8, 2}, {1}, {1, 1}, {0, 0}}));
  EXPECT_EQ(Train(param, fresh, {first, second}),
            (std::vector<std::vector<float>>{{3, -1.25f}, {6.5f, 1.5f}, {1}, {1, 1}, {0, 0}}));
  EXPECT_EQ(Train(param, fresh, {first}, true), fresh);
  // Sums of another weight become averages.
  EXPECT_EQ(Train(param, {{16, -8}, {32, 8}, {4}, {1, 1}, {0, 0}}, {second})[0], (std::vector<float>{3, -1.25f}));
}

}  // namespace
}  // namespace crema
