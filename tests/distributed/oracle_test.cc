// When averaging in every step equals one machine with batches as large as those of all workers together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "distributed/averaging/averaging.h"
#include "distributed/training/solver_layout.h"
#include "solver/data_parallel_test.h"
#include "solver/training_steps.h"

namespace crema {
namespace {

constexpr int kWorkers = 3, kOracleRounds = 12;

class Oracle : public DataParallel {
 protected:
  std::unique_ptr<Solver> MakeWorker(const std::string& settings) {
    SolverOptions options;
    options.role = SolverOptions::Role::kWorker;
    return Make(SolverText(settings, 100), std::move(options));
  }

  // What kOracleRounds rounds of one step make of kWorkers workers, without sockets.
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
    for (int r = 0; r < kOracleRounds; ++r) {
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

  struct ElasticResult {
    std::vector<float> center;
    std::vector<std::vector<float>> workers;
  };

  // Elastic averaging, kept in doubles between rounds; `by_hand` or as coordinator and workers do it.
  ElasticResult Elastic(const std::string& solver, double rate, int local_steps, bool by_hand) {
    DistributedParameter settings;
    settings.set_mode(DistributedParameter::ELASTIC);
    settings.set_elastic_rate(static_cast<float>(rate));
    std::vector<std::unique_ptr<Solver>> solvers;
    std::vector<std::unique_ptr<TrainingSteps>> workers;
    for (int i = 0; i < kWorkers; ++i) {
      solvers.push_back(MakeWorker(solver));
      workers.push_back(std::make_unique<TrainingSteps>(*solvers.back()));
    }
    const StateLayout layout = LayoutOf(*workers[0], settings);
    Payload state = StateOf(*workers[0], layout, false);
    Averaging math(settings, layout, state, {});
    LocalMoves moves(settings, layout);
    std::vector<Payload> own(kWorkers);
    const auto floats = FloatsOf(state);
    std::vector<double> center(floats.begin(), floats.end());
    std::vector<std::vector<double>> w(kWorkers, center);
    const size_t count = center.size();
    std::vector<float> values(count);
    uint64_t step = 0;
    for (int r = 0; r < kOracleRounds; ++r) {
      std::vector<Contribution> contributions;
      const std::vector<double> before = center;
      for (int i = 0; i < kWorkers; ++i) {
        if (by_hand) {
          std::copy(w[i].begin(), w[i].end(), values.begin());
          workers[i]->WriteValues(values.data());
        } else if (own[i]) {
          SetValues(*workers[i], layout, own[i]);
        } else {
          SetState(*workers[i], layout, state);
        }
        workers[i]->ReadBatches(step, local_steps, kWorkers * local_steps);
        for (int h = 0; h < local_steps; ++h) workers[i]->Train(r * local_steps + h, step++);
        Contribution& mine = contributions.emplace_back();
        mine.slot = static_cast<uint32_t>(i);
        mine.push.set_examples(6 * local_steps);
        mine.values = StateOf(*workers[i], layout, false);
        const auto trained = FloatsOf(mine.values);
        for (size_t k = 0; k < count; ++k) {
          const double apart = static_cast<double>(trained[k]) - before[k];
          w[i][k] = static_cast<double>(trained[k]) - rate * apart;
          center[k] += rate * apart;
        }
      }
      const Payload next = math.Reduce({}, contributions);
      math.Accept();
      for (int i = 0; i < kWorkers; ++i) own[i] = moves.Own(contributions[i].values, state);
      state = next;
    }
    ElasticResult result;
    if (by_hand) {
      result.center.assign(center.begin(), center.end());
      for (const auto& one : w) result.workers.emplace_back(one.begin(), one.end());
    } else {
      result.center.assign(FloatsOf(state).begin(), FloatsOf(state).end());
      for (const auto& one : own) result.workers.emplace_back(FloatsOf(one).begin(), FloatsOf(one).end());
    }
    return result;
  }

  // One solver with batches of all workers.
  std::vector<float> Large(const std::string& settings) {
    folder_.Write("net.prototxt", SharedNet(6 * kWorkers));
    const auto solver = MakeWorker(settings);
    TrainingSteps steps(*solver);
    for (int r = 0; r < kOracleRounds; ++r) {
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

TEST_F(Oracle, ElasticAveragingFollowsItsFormula) {
  for (const std::string rule : {"momentum: 0.9 weight_decay: 0.01", "type: \"Adam\" base_lr: 0.01 momentum: 0.9"}) {
    for (const double rate : {0.125, 0.3}) {
      SCOPED_TRACE(rule + " " + std::to_string(rate));
      const ElasticResult hand = Elastic(rule, rate, 3, true), got = Elastic(rule, rate, 3, false);
      // 36 steps in f32, from parameters that were rounded in other places.
      const double rounding = rule.find("Adam") == std::string::npos ? kRounding : 1e-4;
      EXPECT_LT(Distance(got.center, hand.center), rounding);
      for (int i = 0; i < kWorkers; ++i) EXPECT_LT(Distance(got.workers[i], hand.workers[i]), rounding) << i;
      EXPECT_GT(Distance(got.workers[0], got.workers[1]), kOther) << "each has its own";
    }
  }
}

TEST_F(Oracle, RepeatsItsBits) {
  const std::string rule = "momentum: 0.9";
  EXPECT_EQ(Averaged(rule, With(DistributedParameter::LOCAL)), Averaged(rule, With(DistributedParameter::LOCAL)));
}

}  // namespace
}  // namespace crema
