// Steps that are decided on from outside, on a GPU.
#include "device/gpu.h"
#include "errors.h"
#include "solver/training_steps_test.h"

namespace crema {
namespace {

class StepsOnAGpu : public Steps {
 protected:
  void SetUp() override {
    Steps::SetUp();
    try {
      gpu_ = &OpenGpu(0);
    } catch (const EnvironmentError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  std::vector<Device*> Devices(int) override { return {gpu_}; }

  Gpu* gpu_ = nullptr;
};

TEST_F(StepsOnAGpu, AreThoseOfASolver) {
  for (const std::string settings :
       {"momentum: 0.9 weight_decay: 0.01", "type: \"Adam\" base_lr: 0.01 momentum: 0.9 delta: 0.001",
        "momentum: 0.9 iter_size: 2 clip_gradients: 0.2"}) {
    for (const bool exchanges : {false, true}) ExpectTrainsAsAlone(settings, exchanges, 1e-5);
  }
}

TEST_F(StepsOnAGpu, GradientsAndUpdateAreAStep) {
  for (const std::string settings :
       {"momentum: 0.9 weight_decay: 0.01", "type: \"Adam\" base_lr: 0.01 momentum: 0.9 delta: 0.001",
        "momentum: 0.9 iter_size: 2 clip_gradients: 0.2"}) {
    ExpectUpdatesAsAlone(settings, 1e-5);
  }
}

// Adam's second moments lie behind those of a parameter of three numbers.
TEST_F(StepsOnAGpu, ForgetTheirHistory) {
  const auto worker = MakeAs(Role::kWorker, "type: \"Adam\" base_lr: 0.01 momentum: 0.9 delta: 0.001");
  TrainingSteps steps(*worker);
  steps.ReadBatches(0, 1, 1);
  steps.Train(0, 0);
  const Floats history = HistoryOf(steps);
  EXPECT_TRUE(std::any_of(history.begin(), history.end(), [](float number) { return number != 0; }));
  steps.ClearHistory();
  EXPECT_EQ(HistoryOf(steps), Floats(history.size()));
}

TEST_F(StepsOnAGpu, TrainInHalfPrecision) {
  for (const std::string settings :
       {"precision: FP16 momentum: 0.9", "precision: FP16 iter_size: 2 clip_gradients: 0.2"}) {
    ExpectTrainsAsAlone(settings, false, 1e-5);
    // The loss scale leaves nothing in gradients but their rounding.
    ExpectUpdatesAsAlone(settings, 1e-4);
  }
}

TEST_F(StepsOnAGpu, ComputeABatchOnceMoreWhoseGradientsOverflow) {
  const auto gradients = [&](const std::string& settings) {
    const auto worker = MakeAs(Role::kWorker, settings, true);
    TrainingSteps steps(*worker);
    steps.ReadBatches(0, 1, 1);
    Floats all;
    for (int i = 0; i < 3; ++i) {
      for (const float g : GradientsOf(steps, i, i)) all.push_back(g);
    }
    return all;
  };
  std::string net = kSmallNet;
  const std::string top = "bottom: \"label\" top: \"loss\"";
  net.insert(net.find(top) + top.size(), " loss_weight: 1e6");
  folder_.Write("net.prototxt", net);
  for (const std::string settings : {"", "iter_size: 2"}) {
    const Floats expected = gradients(settings), found = gradients(settings + " precision: FP16");
    EXPECT_GT(recorder_.overflowed.size(), 10u);
    for (const GradientsOverflowed& overflowed : recorder_.overflowed) {
      EXPECT_EQ(overflowed.iteration, 0);
      EXPECT_FALSE(overflowed.left_out);
    }
    const float largest = *std::max_element(expected.begin(), expected.end());
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-2 * largest) << i;
  }
}

TEST_F(StepsOnAGpu, ClippingOfTheLastUpdateIsToldWhenValuesAreRead) {
  const auto worker = MakeAs(Role::kWorker, "clip_gradients: 1e-6");
  TrainingSteps steps(*worker);
  steps.ReadBatches(0, 1, 1);
  steps.Train(6, 0);
  EXPECT_TRUE(recorder_.clipped.empty());
  for (int again = 0; again < 2; ++again) {
    ValuesOf(steps);
    ASSERT_EQ(recorder_.clipped.size(), 1u);
    EXPECT_EQ(recorder_.clipped[0].iteration, 6);
  }
  // Iterations may leap.
  steps.Train(9, 1);
  steps.Train(10, 2);
  ValuesOf(steps);
  ASSERT_EQ(recorder_.clipped.size(), 3u);
  EXPECT_EQ(recorder_.clipped[1].iteration, 9);
  EXPECT_EQ(recorder_.clipped[2].iteration, 10);
}

// An update by a coordinator does not depend on what was computed on the GPU before.
TEST_F(StepsOnAGpu, ACoordinatorUpdatesAfterATestWithoutAFiniteLoss) {
  const auto coordinator =
      MakeAs(Role::kCoordinator, "clip_gradients: 1 test_iter: 1 test_interval: 1 test_compute_loss: true", true);
  TrainingSteps steps(*coordinator);
  const Floats good = ValuesOf(steps);
  Floats bad = good;
  bad[3] = INFINITY;
  steps.WriteValues(bad.data());
  EXPECT_TRUE(steps.Test());
  ASSERT_EQ(recorder_.tests.size(), 1u);
  EXPECT_FALSE(std::isfinite(*recorder_.tests[0].loss));
  steps.WriteValues(good.data());
  Floats gradients(static_cast<size_t>(steps.trained_count()), 0.01f);
  steps.Update(0, gradients.data());
  const Floats moved = ValuesOf(steps);
  EXPECT_NE(moved, good);
  gradients[5] = NAN;
  EXPECT_NE(ThrownBy<NotFinite>([&] { steps.Update(1, gradients.data()); }), "");
  EXPECT_EQ(ValuesOf(steps), moved);
}

}  // namespace
}  // namespace crema
