// Training on a GPU: the losses, tests, snapshots and errors of training on the CPU.
#include "solver/gpu_training_test.h"

namespace crema {
namespace {

TEST_F(GpuTraining, IsThatOfTheCpu) {
  Compare("momentum: 0.9 weight_decay: 0.01 display: 2 test_iter: 3 test_interval: 3 test_initialization: true", 7,
          1e-4);
}

TEST_F(GpuTraining, ByEveryRule) {
  for (const std::string rule : {"type: \"Nesterov\" momentum: 0.9", "type: \"AdaGrad\" base_lr: 0.01 delta: 0.001",
                                 "type: \"RMSProp\" base_lr: 0.001 rms_decay: 0.9 delta: 0.01",
                                 "type: \"AdaDelta\" base_lr: 1 momentum: 0.9 delta: 0.001",
                                 "type: \"Adam\" base_lr: 0.001 momentum: 0.9 delta: 0.001",
                                 "momentum: 0.9 weight_decay: 0.01 larc: true larc_eta: 0.05 clip_gradients: 0.5",
                                 "type: \"Nesterov\" momentum: 0.1 momentum_policy: \"poly\"",
                                 "type: \"Nesterov\" momentum: 0.9 larc: true larc_policy: \"clip\" larc_eta: 0.01",
                                 "type: \"AdamW\" base_lr: 0.001 momentum: 0.9 delta: 0.001 weight_decay: 20",
                                 "momentum: 0.9 weight_decay: 0.01 regularization_type: \"L1\""}) {
    SCOPED_TRACE(rule);
    // The sign of a bias that rounding alone moves (below batch normalisation) decides where L1 pulls it.
    Compare(rule, 4, rule.find("L1") != std::string::npos ? 1e-2 : 1e-3);
  }
}

TEST_F(GpuTraining, MixesTheImagesOfTheCpu) {
  folder_.Write("net.prototxt", MixUpNet("alpha: 0.6 cutmix_alpha: 1"));
  Compare("momentum: 0.9 iter_size: 2 test_iter: 3 test_interval: 4", 8, 1e-4);
}

TEST_F(GpuTraining, TestsAMovingAverage) {
  Compare("momentum: 0.9 ema { decay: 0.7 } test_iter: 3 test_interval: 3 test_initialization: true", 7, 1e-4);
}

TEST_F(GpuTraining, CountsPixelsOverAllBatchesOfATest) {
  folder_.Write("net.prototxt", PixelsNet(false));
  Compare("momentum: 0.9 display: 1 test_iter: 9 test_interval: 2", 4, 1e-4);
  EXPECT_EQ(recorder_.tests.size(), 3u);
}

TEST_F(GpuTraining, SumsOverSeveralBatches) { Compare("momentum: 0.9 iter_size: 3", 4, 1e-4); }

TEST_F(GpuTraining, ClipsGradients) {
  Compare("momentum: 0.9 clip_gradients: 0.5", 5, 1e-4);
  // Each is told with the next iteration, but the last one.
  EXPECT_EQ(recorder_.clipped.size(), 4u);
  for (const GradientsClipped& clipped : recorder_.clipped) EXPECT_GT(clipped.norm, 0.5f);
}

TEST_F(GpuTraining, ClipsSumsOverSeveralBatches) { Compare("momentum: 0.9 clip_gradients: 0.5 iter_size: 2", 4, 1e-4); }

TEST_F(GpuTraining, GivesTheSameBitsAgain) {
  const auto train = [&] {
    const auto solver = On(gpu_, "momentum: 0.9 precision: BF16", 5);
    solver->Train();
    return Values(solver->net());
  };
  EXPECT_EQ(train(), train());
}

TEST_F(GpuTraining, ResumesWithTheSameBits) {
  for (const std::string rule :
       {"type: \"Adam\" base_lr: 0.01", "type: \"AdamW\" base_lr: 0.01 weight_decay: 0.1",
        "lr_policy: \"plateau\" base_lr: 0.1 gamma: 0.5 plateau_winsize: 1 plateau_winsize: 1 plateau_winsize: 1"}) {
    const std::string settings = rule + " snapshot: 3";
    const auto whole = On(gpu_, settings, 6);
    whole->Train();
    SolverOptions options;
    options.snapshot = folder_ / "snap_iter_3.solverstate";
    const auto resumed = On(gpu_, settings, 6, options);
    resumed->Train();
    EXPECT_EQ(recorder_.iterations.size(), 3u);
    EXPECT_EQ(Values(resumed->net()), Values(whole->net())) << rule;
    EXPECT_EQ(resumed->learning_rate(), whole->learning_rate()) << rule;
  }
}

TEST_F(GpuTraining, LeavesParametersAloneWhereTheLossIsNotFinite) {
  const auto solver = On(gpu_, "base_lr: 1e30", 5);
  try {
    solver->Train();
    ADD_FAILURE() << "trained on";
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("the loss is"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("The first values that are not finite"), std::string::npos)
        << error.what();
  }
}

TEST_F(GpuTraining, ShowsTheSizesOfTheCpu) {
  // Parameters move little, since a GPU's are those behind the update.
  const std::string text = "debug_info: true display: 2 base_lr: 1e-6";
  On(nullptr, text, 3)->Train();
  const std::vector<MeanSizes> expected = recorder_.sizes;
  On(gpu_, text, 3)->Train();
  ASSERT_EQ(recorder_.sizes.size(), 2u);
  for (size_t i = 0; i < expected.size(); ++i) {
    for (const auto rows : {&MeanSizes::tops, &MeanSizes::parameters}) {
      const auto &got = recorder_.sizes[i].*rows, &wanted = expected[i].*rows;
      ASSERT_EQ(got.size(), wanted.size());
      for (size_t k = 0; k < wanted.size(); ++k) {
        SCOPED_TRACE(wanted[k].layer + " " + wanted[k].name);
        EXPECT_NEAR(got[k].value, wanted[k].value, 1e-4 * wanted[k].value + 1e-6);
        ASSERT_EQ(got[k].gradient.has_value(), wanted[k].gradient.has_value());
        const double gradient = wanted[k].gradient.value_or(0);
        EXPECT_NEAR(got[k].gradient.value_or(0), gradient, 1e-3 * gradient + 1e-7);
      }
    }
  }
}

TEST_F(GpuTraining, NamesTheRecordOfABadLabel) {
  std::string few = kImagesNet, mixed = MixUpNet("");
  few.replace(few.find("num_output: 3"), 13, "num_output: 2");
  mixed.replace(mixed.find("num_output: 3"), 13, "num_output: 2");
  mixed.replace(mixed.find("num_classes: 3"), 14, "num_classes: 2");
  for (const std::string& net : {few, mixed}) {
    folder_.Write("net.prototxt", net);
    const auto solver = On(gpu_, "", 5);
    const auto before = Values(solver->net(), false);
    try {
      solver->Train();
      ADD_FAILURE() << "accepted";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("label 2 is outside the 2 classes"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("record"), std::string::npos) << error.what();
    }
    EXPECT_EQ(Values(solver->net(), false), before);
  }
}

}  // namespace
}  // namespace crema
