// What tests of steps that are decided on from outside share.
#ifndef CREMA_SOLVER_TRAINING_STEPS_TEST_H_
#define CREMA_SOLVER_TRAINING_STEPS_TEST_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "solver/data_parallel_test.h"
#include "solver/training_steps.h"

namespace crema {

using Role = SolverOptions::Role;
using Floats = std::vector<float>;

inline Floats ValuesOf(const TrainingSteps& steps) {
  Floats values(static_cast<size_t>(steps.value_count()));
  steps.ReadValues(values.data());
  return values;
}

inline Floats HistoryOf(const TrainingSteps& steps) {
  Floats history(static_cast<size_t>(steps.history_count()));
  steps.ReadHistory(history.data());
  return history;
}

inline Floats GradientsOf(TrainingSteps& steps, int iteration, uint64_t step) {
  Floats gradients(static_cast<size_t>(steps.trained_count()));
  steps.Gradients(iteration, step, gradients.data());
  return gradients;
}

// Convolutions whose weights kernels keep in forms of their own, statistics, a fixed parameter, and two shared ones.
constexpr char kManyKinds[] = R"(
name: "kinds"
layer { name: "data" type: "Data" top: "data" top: "label" transform_param { scale: 0.00390625 }
        data_param { source: "train_lmdb" batch_size: 7 backend: LMDB } }
layer { name: "c1" type: "Convolution" bottom: "data" top: "c1"
        convolution_param { num_output: 20 kernel_size: 3 bias_term: false weight_filler { type: "msra" } } }
layer { name: "n1" type: "BatchNorm" bottom: "c1" top: "c1" }
layer { name: "s1" type: "Scale" bottom: "c1" top: "c1" scale_param { bias_term: true } }
layer { name: "r1" type: "ReLU" bottom: "c1" top: "c1" }
layer { name: "c2" type: "Convolution" bottom: "c1" top: "c2" param { lr_mult: 0 } param { name: "shared" }
        convolution_param { num_output: 18 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
layer { name: "n2" type: "BatchNorm" bottom: "c2" top: "c2" batch_norm_param { use_global_stats: true } }
layer { name: "c3" type: "Convolution" bottom: "c2" top: "c3" param { lr_mult: 1 } param { name: "shared" }
        convolution_param { num_output: 18 kernel_size: 1 weight_filler { type: "msra" } } }
layer { name: "n3" type: "BatchNorm" bottom: "c3" top: "c3" batch_norm_param { scale_bias: true } }
layer { name: "drop" type: "Dropout" bottom: "c3" top: "c3" }
layer { name: "ip" type: "InnerProduct" bottom: "c3" top: "ip"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

class Steps : public DataParallel {
 protected:
  void SetUp() override { folder_.Write("net.prototxt", kSmallNet); }

  std::unique_ptr<Solver> MakeAlone(const std::string& more) { return MakeAs(Role::kAlone, more); }

  std::unique_ptr<Solver> MakeAs(Role role, const std::string& more, bool exchanges = false, int max_iter = 20,
                                 std::string snapshot = {}) {
    SolverOptions options;
    options.devices = Devices(1);
    options.role = role;
    options.exchanges_gradients = exchanges;
    options.snapshot = std::move(snapshot);
    return Make(SolverText(more, max_iter), std::move(options));
  }

  // Training by a worker against a solver alone.
  void ExpectTrainsAsAlone(const std::string& settings, bool exchanges, double tolerance = 0) {
    SCOPED_TRACE(settings + (exchanges ? ", exchanging gradients" : ""));
    const auto alone = MakeAlone(settings), worker = MakeAs(Role::kWorker, settings, exchanges);
    TrainingSteps steps(*worker), seen(*alone);
    steps.ReadBatches(0, 4, 4);
    for (int i = 0; i < 6; ++i) {
      alone->Step(1);
      if (i == 4) steps.ReadBatches(4, 4, 4);
      const TrainingSteps::StepResult result = steps.Train(i, i);
      ASSERT_EQ(result.outputs.size(), 1u);
      ExpectSame({static_cast<float>(result.loss), result.outputs[0]},
                 {alone->smoothed_loss(), alone->net().blob("loss").f32()[0]}, tolerance);
    }
    ExpectSame(ValuesOf(steps), ValuesOf(seen), tolerance);
    ExpectSame(HistoryOf(steps), HistoryOf(seen), tolerance);
    EXPECT_NE(HistoryOf(steps), Floats(HistoryOf(steps).size()));
  }

  // Gradients of a worker that a coordinator updates by, against a solver alone. 0: the same bits.
  void ExpectUpdatesAsAlone(const std::string& settings, double tolerance) {
    SCOPED_TRACE(settings);
    const auto alone = MakeAlone(settings), worker = MakeAs(Role::kWorker, settings, true);
    TrainingSteps computes(*worker), seen(*alone);
    alone->Step(5);
    ValuesOf(seen);  // a GPU's last clipping is told
    const Recorder told = recorder_;
    const auto coordinator = MakeAs(Role::kCoordinator, settings, true);
    TrainingSteps updates(*coordinator);
    EXPECT_EQ(ValuesOf(updates), ValuesOf(computes));
    computes.ReadBatches(0, 1, 1);
    for (int i = 0; i < 5; ++i) {
      computes.WriteValues(ValuesOf(updates).data());
      updates.Update(i, GradientsOf(computes, i, i).data());
    }
    // Those of BatchNorm only change where there are passes.
    const auto trained = [](const TrainingSteps& steps) {
      Floats values = ValuesOf(steps);
      values.resize(static_cast<size_t>(steps.trained_count()));
      return values;
    };
    ExpectSame(trained(updates), trained(seen), tolerance);
    ExpectSame(HistoryOf(updates), HistoryOf(seen), tolerance);
    ASSERT_EQ(recorder_.clipped.size(), told.clipped.size());
    for (size_t i = 0; i < told.clipped.size(); ++i) {
      EXPECT_EQ(recorder_.clipped[i].iteration, told.clipped[i].iteration);
      EXPECT_NEAR(recorder_.clipped[i].norm, told.clipped[i].norm, 1e-5 * told.clipped[i].norm);
    }
    EXPECT_EQ(told.clipped.empty(), settings.find("clip") == std::string::npos);
  }
};

}  // namespace crema

#endif  // CREMA_SOLVER_TRAINING_STEPS_TEST_H_
