// What recurrent layers remember from pass to pass.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "crema/layer.h"
#include "device/device.h"
#include "ops/operations.h"

namespace crema {
namespace {

constexpr int64_t kBatch = 2, kInputs = 3, kHidden = 4;

float Number(int64_t i) { return std::sin(static_cast<float>(i) * 1.7f + 0.3f); }

// A layer over `steps` steps, with weights that depend on nothing else.
class Recurrence {
 public:
  Recurrence(const std::string& type, int64_t steps) : steps_(steps), output_(steps * kBatch * kHidden) {
    LayerParameter& param = param_;
    param.set_name("layer");
    param.set_type(type);
    param.add_bottom("x");
    param.add_bottom("continues");
    param.add_top("y");
    param.mutable_recurrent_param()->set_num_output(kHidden);
    const std::vector<TensorSpec> bottoms = {{Shape{steps, kBatch, kInputs}}, {Shape{steps, kBatch}}};
    layer_ = FindLayerType(type)->create();
    LayerSetup setup(param, TEST, bottoms, [](std::string_view) { return Location{}; });
    layer_->Setup(setup);
    context_.device = &CpuDevice();
    LayerPlan plan(context_, bottoms, setup.top_specs(), {false, false}, std::vector<bool>(setup.params().size()));
    layer_->Plan(plan);
    workspace_.resize(plan.forward_workspace());
    for (const ParamRequest& request : setup.params()) {
      std::vector<float> values(request.shape.count());
      for (size_t i = 0; i < values.size(); ++i) values[i] = Number(static_cast<int64_t>(i + 100 * params_.size()));
      params_.push_back(std::move(values));
      param_specs_.push_back({request.shape});
    }
  }

  // Steps [first, first + steps) of a fixed input.
  std::vector<float> Forward(int64_t first, bool replay = false, float continues = 1) {
    std::vector<float> x(steps_ * kBatch * kInputs), continuation(steps_ * kBatch, continues);
    for (size_t i = 0; i < x.size(); ++i) x[i] = Number(first * kBatch * kInputs + static_cast<int64_t>(i));
    std::vector<Tensor> params;
    for (size_t i = 0; i < params_.size(); ++i) params.emplace_back(params_[i].data(), param_specs_[i]);
    const std::vector<Tensor> bottoms = {Tensor(x.data(), {Shape{steps_, kBatch, kInputs}}),
                                         Tensor(continuation.data(), {Shape{steps_, kBatch}})};
    const std::vector<Tensor> tops = {Tensor(output_.data(), {Shape{steps_, kBatch, kHidden}})};
    LayerRun run;
    run.context = &context_;
    run.ops = &OperationsOf(*context_.device);
    run.replay = replay;
    run.bottoms = bottoms;
    run.tops = tops;
    run.params = params;
    run.workspace = workspace_.data();
    layer_->Forward(run);
    return output_;
  }

 private:
  int64_t steps_;
  LayerParameter param_;
  Context context_;
  std::unique_ptr<Layer> layer_;
  std::vector<std::vector<float>> params_;
  std::vector<TensorSpec> param_specs_;
  std::vector<float> output_;
  std::vector<std::byte> workspace_;
};

class RecurrentState : public ::testing::TestWithParam<std::string> {};

TEST_P(RecurrentState, GoesOnFromPassToPass) {
  const std::vector<float> whole = Recurrence(GetParam(), 6).Forward(0);
  Recurrence parts(GetParam(), 3);
  std::vector<float> joined = parts.Forward(0);
  const std::vector<float> second = parts.Forward(3);
  joined.insert(joined.end(), second.begin(), second.end());
  ASSERT_EQ(joined.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(joined[i], whole[i], 1e-6f) << i;
  EXPECT_NE(Recurrence(GetParam(), 3).Forward(3), second);
}

TEST_P(RecurrentState, IsDroppedWhereTheContinuationIsZero) {
  Recurrence parts(GetParam(), 3);
  parts.Forward(0);
  EXPECT_EQ(parts.Forward(3, false, 0), Recurrence(GetParam(), 3).Forward(3, false, 0));
}

TEST_P(RecurrentState, IsNotAdvancedByAReplay) {
  Recurrence once(GetParam(), 3), replayed(GetParam(), 3);
  once.Forward(0);
  replayed.Forward(0);
  const std::vector<float> second = once.Forward(3);
  EXPECT_EQ(replayed.Forward(3), second);
  EXPECT_EQ(replayed.Forward(3, true), second);
  EXPECT_EQ(replayed.Forward(3, true), second);
  EXPECT_EQ(replayed.Forward(6), once.Forward(6));
}

INSTANTIATE_TEST_SUITE_P(Layers, RecurrentState, ::testing::Values("GRU", "LSTM", "RNN"),
                         [](const auto& type) { return type.param; });

}  // namespace
}  // namespace crema
