#include "distributed/training/solver_layout.h"

#include <gtest/gtest.h>

#include "crema/error.h"
#include "distributed/contributions.h"
#include "solver/data_parallel_test.h"
#include "solver/training_steps.h"

namespace crema {
namespace {

class SolverLayout : public DataParallel {
 protected:
  SolverLayout() { settings_.set_outer_momentum(0.5f); }

  // With statistics, and a history of one number for each trained value.
  void SetUp() override {
    std::string net = SharedNet(6);
    const std::string before = "layer { name: \"relu1\"";
    net.insert(net.find(before), "layer { name: \"bn1\" type: \"BatchNorm\" bottom: \"ip1\" top: \"ip1\" }\n");
    folder_.Write("net.prototxt", net);
    SolverOptions options;
    options.role = SolverOptions::Role::kWorker;
    solver_ = Make(SolverText("momentum: 0.9", 100), std::move(options));
    steps_ = std::make_unique<TrainingSteps>(*solver_);
    steps_->ReadBatches(0, 2, 2);
    steps_->Train(0, 0);
    steps_->Train(1, 1);
  }

  DistributedParameter settings_;
  std::unique_ptr<Solver> solver_;
  std::unique_ptr<TrainingSteps> steps_;
};

TEST_F(SolverLayout, StatesOfOtherSizesAreRefused) {
  settings_.set_history(DistributedParameter::MEAN);
  const StateLayout layout = LayoutOf(*steps_, settings_);
  ASSERT_GT(layout.history, 0);
  for (const bool with_history : {false, true}) {
    EXPECT_NO_THROW(ExpectState(layout, std::make_shared<Bytes>(layout.state_bytes(with_history))));
  }
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{4}, uint64_t{6}, layout.state_bytes(false) + 4}) {
    EXPECT_THROW(ExpectState(layout, std::make_shared<Bytes>(bytes)), EnvironmentError) << bytes;
  }
}

TEST_F(SolverLayout, StatesHaveTheMomentumWhereWorkersNeedIt) {
  EXPECT_EQ(LayoutOf(*steps_, settings_).velocity, 0);
  settings_.set_topology(DistributedParameter::TREE);
  const StateLayout layout = LayoutOf(*steps_, settings_);
  ASSERT_GT(layout.trained, 0);
  EXPECT_EQ(layout.velocity, layout.trained);
  EXPECT_EQ(layout.history, layout.trained);
  EXPECT_EQ(layout.batch_norms.size(), 1u);
  settings_.clear_outer_momentum();
  EXPECT_EQ(LayoutOf(*steps_, settings_).velocity, 0);
  settings_.set_outer_momentum_by_workers(true);
  EXPECT_EQ(LayoutOf(*steps_, settings_).velocity, layout.trained);
  settings_.set_mode(DistributedParameter::GRADIENT);
  EXPECT_EQ(LayoutOf(*steps_, settings_).velocity, 0);
}

TEST_F(SolverLayout, StatesGoOutAndIn) {
  settings_.set_topology(DistributedParameter::SHARDED);
  const StateLayout layout = LayoutOf(*steps_, settings_);
  const std::vector<float> velocity = RandomFloats(3, static_cast<size_t>(layout.trained));
  std::vector<float> values(static_cast<size_t>(layout.values)), history(static_cast<size_t>(layout.history));
  steps_->ReadValues(values.data());
  steps_->ReadHistory(history.data());
  for (const bool with_history : {false, true}) {
    std::vector<float> expected = values;
    expected.insert(expected.end(), velocity.begin(), velocity.end());
    if (with_history) expected.insert(expected.end(), history.begin(), history.end());
    const Payload state = StateOf(*steps_, layout, with_history, velocity);
    EXPECT_EQ(Floats(state), expected);
    const auto inside = VelocityIn(layout, state);
    EXPECT_EQ(std::vector<float>(inside.begin(), inside.end()), velocity);
    EXPECT_EQ(Floats(Averaging(settings_, layout, state, {}).Whole(state)), expected);

    steps_->WriteValues(std::vector<float>(values.size(), 7.0f).data());
    steps_->WriteHistory(std::vector<float>(history.size(), 7.0f).data());
    EXPECT_EQ(SetState(*steps_, layout, state), with_history);
    std::vector<float> values_now(values.size()), history_now(history.size());
    steps_->ReadValues(values_now.data());
    steps_->ReadHistory(history_now.data());
    EXPECT_EQ(values_now, values);
    EXPECT_EQ(history_now, with_history ? history : std::vector<float>(history.size(), 7.0f));
    steps_->WriteHistory(history.data());
  }
  // Zeros at first.
  const Payload first = StateOf(*steps_, layout, true);
  const auto none = VelocityIn(layout, first);
  EXPECT_EQ(std::vector<float>(none.begin(), none.end()), std::vector<float>(velocity.size()));
}

TEST_F(SolverLayout, StatesOfOtherNetsAreRefused) {
  settings_.set_topology(DistributedParameter::SHARDED);
  const StateLayout layout = LayoutOf(*steps_, settings_);
  EXPECT_THROW(StateOf(*steps_, layout, false, std::vector<float>(3)), EnvironmentError);
  // Without the momentum.
  EXPECT_THROW(SetState(*steps_, layout, NewPayload(layout.bytes(false))), EnvironmentError);
  EXPECT_THROW(SetState(*steps_, layout, NewPayload(layout.state_bytes(true) + 4)), EnvironmentError);
}

}  // namespace
}  // namespace crema
