// A solver's update on plain numbers, against the one of its net.
#include "solver/rules/plain_update.h"

#include <cmath>

#include "errors.h"
#include "solver/training_steps_test.h"

namespace crema {
namespace {

// By workers, whose nets may keep weights in other forms, and by a coordinator.
TEST_F(Steps, PlainUpdatesAreTheNetsToTheBit) {
  folder_.Write("net.prototxt", kManyKinds);
  for (const std::string settings :
       {"momentum: 0.9 weight_decay: 0.01 clip_gradients: 0.4",
        "type: \"Nesterov\" momentum: 0.9 weight_decay: 0.01 regularization_type: \"L1\" iter_size: 3",
        "type: \"AdaGrad\" delta: 0.001", "type: \"RMSProp\" rms_decay: 0.9 delta: 0.001",
        "type: \"AdaDelta\" momentum: 0.9 delta: 0.001",
        "type: \"Adam\" base_lr: 0.01 momentum: 0.9 delta: 0.001 clip_gradients: 0.3 lr_policy: \"step\" gamma: 0.5 "
        "stepsize: 2",
        "momentum: 0.1 momentum_policy: \"poly\" max_momentum: 0.9",
        "momentum: 0.9 larc: true larc_policy: \"clip\" larc_eta: 0.02 clip_gradients: 0.4",
        "type: \"AdamW\" base_lr: 0.01 momentum: 0.9 weight_decay: 0.1 lr_policy: \"cosine\" warmup_iter: 2 "
        "warmup_start_lr: 0.001 min_lr: 0.002"}) {
    SCOPED_TRACE(settings);
    const auto worker = MakeAs(Role::kWorker, settings, true), coordinator = MakeAs(Role::kCoordinator, settings, true);
    TrainingSteps computes(*worker), updates(*coordinator);
    const auto plain = computes.MakePlainUpdate();
    ASSERT_EQ(plain->trained_count(), updates.trained_count());
    ASSERT_EQ(plain->history_count(), updates.history_count());
    Floats values = ValuesOf(updates), history = HistoryOf(updates);
    computes.ReadBatches(0, 1, 1);
    for (int i = 0; i < 5; ++i) {
      computes.WriteValues(values.data());
      const Floats gradients = GradientsOf(computes, i, static_cast<uint64_t>(i));
      const Floats before = values;
      plain->Apply(i, gradients.data(), values.data(), history.data());
      EXPECT_NE(values, before);
      updates.Update(i, gradients.data());
      ASSERT_EQ(values, ValuesOf(updates)) << i;
      ASSERT_EQ(history, HistoryOf(updates)) << i;
    }
  }
}

TEST_F(Steps, PlainUpdatesByANormThatIsNotFiniteChangeNothing) {
  const auto coordinator = MakeAs(Role::kCoordinator, "momentum: 0.9 clip_gradients: 1", true);
  TrainingSteps steps(*coordinator);
  const auto plain = steps.MakePlainUpdate();
  const Floats values = ValuesOf(steps);
  Floats now = values, history(static_cast<size_t>(plain->history_count()), 0.5f);
  Floats gradients(static_cast<size_t>(plain->trained_count()), 0.1f);
  gradients[5] = NAN;
  const std::string message =
      ThrownBy<NotFinite>([&] { plain->Apply(4, gradients.data(), now.data(), history.data()); });
  EXPECT_NE(message.find("iteration 4: the norm of the workers' gradients is not finite"), std::string::npos)
      << message;
  EXPECT_EQ(now, values);
  EXPECT_EQ(history, Floats(history.size(), 0.5f));
}

}  // namespace
}  // namespace crema
