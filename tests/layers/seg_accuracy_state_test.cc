// What SegAccuracy remembers from pass to pass.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "crema/layer.h"
#include "device/device.h"
#include "ops/operations.h"

namespace crema {
namespace {

// Of two classes and two pixels a pass.
class Counting {
 public:
  explicit Counting(bool reset) : layer_(FindLayerType("SegAccuracy")->create()) {
    param_.add_bottom("scores");
    param_.add_bottom("labels");
    param_.add_top("measures");
    param_.mutable_seg_accuracy_param()->set_reset(reset);
    const std::vector<TensorSpec> bottoms = {{Shape{1, 2, 1, 2}}, {Shape{1, 1, 1, 2}}};
    LayerSetup setup(param_, TEST, bottoms, [](std::string_view) { return Location{}; });
    layer_->Setup(setup);
    context_.device = &CpuDevice();
    LayerPlan plan(context_, bottoms, setup.top_specs(), {false, false}, {});
    layer_->Plan(plan);
    workspace_.resize(plan.forward_workspace() / sizeof(uint64_t) + 1);
  }

  // The share of right pixels, where 0 and then 1 are told.
  float Forward(std::vector<float> labels, bool replay = false) {
    std::vector<float> scores = {1, 0, 0, 1}, measures(3);
    const std::vector<Tensor> bottoms = {Tensor(scores.data(), {Shape{1, 2, 1, 2}}),
                                         Tensor(labels.data(), {Shape{1, 1, 1, 2}})};
    const std::vector<Tensor> tops = {Tensor(measures.data(), {Shape{1, 1, 1, 3}})};
    LayerRun run;
    run.context = &context_;
    run.ops = &OperationsOf(*context_.device);
    run.replay = replay;
    run.bottoms = bottoms;
    run.tops = tops;
    run.workspace = reinterpret_cast<std::byte*>(workspace_.data());
    layer_->Forward(run);
    return measures[0];
  }

  Tensor state() const { return layer_->recurrent_state(); }

 private:
  LayerParameter param_;
  Context context_;
  std::unique_ptr<Layer> layer_;
  std::vector<uint64_t> workspace_;
};

TEST(SegAccuracyState, GoesOnFromPassToPassAndIsNotMovedByAReplay) {
  Counting counting(false);
  EXPECT_EQ(counting.Forward({0, 1}), 1);
  EXPECT_EQ(counting.Forward({1, 0}), 0.5f);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(counting.Forward({1, 0}, true), 0.5f);
  EXPECT_EQ(counting.Forward({0, 1}), 4 / 6.0f);
  ASSERT_TRUE(counting.state().defined());
  EXPECT_EQ(counting.state().count(), 2 * 6);
  // As Net::ClearRecurrentStates.
  OperationsOf(CpuDevice()).Fill(0, counting.state());
  EXPECT_EQ(counting.Forward({1, 1}), 0.5f);
}

TEST(SegAccuracyState, IsNotThereWhereEachPassCountsAnew) {
  Counting counting(true);
  EXPECT_EQ(counting.Forward({0, 1}), 1);
  EXPECT_EQ(counting.Forward({1, 0}), 0);
  EXPECT_FALSE(counting.state().defined());
}

}  // namespace
}  // namespace crema
