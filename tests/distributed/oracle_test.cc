// When averaging in every step equals one machine with batches as large as those of all workers together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "distributed/averaging.h"
#include "distributed/solver_layout.h"
#include "solver/data_parallel_test.h"
#include "solver/training_steps.h"

namespace crema {
namespace {

constexpr int kWorkers = 3, kRounds = 12;

class Oracle : public DataParallel {
 protected:
  std::unique_ptr<Solver> MakeWorker(const std::string& settings) {
    SolverOptions options;
    options.role = SolverOptions::Role::kWorker;
    return Make(SolverText(settings, 100), std::move(options));
  }

  // What kRounds rounds of one step make of kWorkers workers, without sockets.
  std::vector<float> Averaged(const std::string& solver, const DistributedParameter& settings, int local_steps = 1) {
    std::vector<std::unique_ptr<Solver>> solvers;
    std::vector<std::unique_ptr<TrainingSteps>> workers;
    for (int i = 0; i < kWorkers; ++i) {
      solvers.push_back(MakeWorker(solver));
      workers.push_back(std::make_unique<TrainingSteps>(*solvers.back()));
    }
    const StateLayout layout = LayoutOf(*workers[0], settings);
    const bool with_history = settings.history() == DistributedParameter::MEAN;
    Payload state = StateOf(*workers[0], layout, with_history);
    Averaging math(settings, layout, state, {});
    Round round;
    round.with_history = with_history;
    uint64_t step = 0;
    for (int r = 0; r < kRounds; ++r) {
      std::vector<Contribution> contributions;
      for (int i = 0; i < kWorkers; ++i) {
        SetState(*workers[i], layout, state);
        if (settings.history() == DistributedParameter::RESET) workers[i]->ClearHistory();
        workers[i]->ReadBatches(step, local_steps, kWorkers * local_steps);
        for (int h = 0; h < local_steps; ++h) workers[i]->Train(r * local_steps + h, step++);
        Contribution& mine = contributions.emplace_back();
        mine.slot = static_cast<uint32_t>(i);
        mine.push.set_examples(6 * local_steps);
        mine.push.set_with_history(with_history);
        mine.values = StateOf(*workers[i], layout, with_history);
        EXPECT_EQ(math.Check(mine), "");
      }
      state = math.Reduce(round, contributions);
      math.Accept();
    }
    const auto values = FloatsOf(state).first(static_cast<size_t>(layout.values));
    return {values.begin(), values.end()};
  }

  // One solver with batches of all workers.
  std::vector<float> Large(const std::string& settings) {
    folder_.Write("net.prototxt", SharedNet(6 * kWorkers));
    const auto solver = MakeWorker(settings);
    TrainingSteps steps(*solver);
    for (int r = 0; r < kRounds; ++r) {
      steps.ReadBatches(r, 1, 1);
      steps.Train(r, r);
    }
    folder_.Write("net.prototxt", SharedNet(6));
    std::vector<float> values(static_cast<size_t>(steps.value_count()));
    steps.ReadValues(values.data());
    return values;
  }

  static double Distance(const std::vector<float>& a, const std::vector<float>& b) {
    EXPECT_EQ(a.size(), b.size());
    double most = 0;
    for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::fabs(static_cast<double>(a[i]) - b[i]));
    return most;
  }

  static DistributedParameter With(DistributedParameter::History history) {
    DistributedParameter settings;
    settings.set_history(history);
    return settings;
  }
};

// Twelve steps in f32: the exact equality holds but for the rounding of sums in another order.
constexpr double kRounding = 3e-6;
// Not the same algorithm: farther off than rounding could take it.
constexpr double kOther = 1e-3;

TEST_F(Oracle, LinearRulesEqualOneLargeBatch) {
  for (const std::string rule : {"momentum: 0.9 weight_decay: 0.01", "type: \"Nesterov\" momentum: 0.9", ""}) {
    SCOPED_TRACE(rule);
    const std::vector<float> large = Large(rule);
    EXPECT_LT(Distance(Averaged(rule, With(DistributedParameter::LOCAL)), large), kRounding);
    EXPECT_LT(Distance(Averaged(rule, With(DistributedParameter::MEAN)), large), kRounding);
  }
}

TEST_F(Oracle, ForgettingHistoryDoesNot) {
  const std::string rule = "momentum: 0.9";
  EXPECT_GT(Distance(Averaged(rule, With(DistributedParameter::RESET)), Large(rule)), kOther);
}

TEST_F(Oracle, AdamDoesNot) {
  const std::string rule = "type: \"Adam\" base_lr: 0.01 momentum: 0.9 delta: 0.001";
  EXPECT_GT(Distance(Averaged(rule, With(DistributedParameter::MEAN)), Large(rule)), kOther);
}

TEST_F(Oracle, MoreLocalStepsComeNear) {
  const std::string rule = "momentum: 0.5";
  const double distance = Distance(Averaged(rule, With(DistributedParameter::LOCAL), 4), Large(rule));
  EXPECT_GT(distance, kRounding);
}

TEST_F(Oracle, RepeatsItsBits) {
  const std::string rule = "momentum: 0.9";
  EXPECT_EQ(Averaged(rule, With(DistributedParameter::LOCAL)), Averaged(rule, With(DistributedParameter::LOCAL)));
}

}  // namespace
}  // namespace crema
