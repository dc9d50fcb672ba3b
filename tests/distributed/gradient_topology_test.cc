// Gradients that workers exchange among themselves, each of whom then updates: against a coordinator that does it for
// all, and against one machine with batches as large as all of theirs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "crema/error.h"
#include "distributed/contributions.h"
#include "distributed/training/solver_layout.h"
#include "files.h"
#include "solver/data_parallel_test.h"
#include "solver/training_steps.h"

namespace crema {
namespace {

constexpr int kRounds = 12;
constexpr DistributedParameter::Topology kAmongWorkers[] = {DistributedParameter::SHARDED, DistributedParameter::RING,
                                                            DistributedParameter::TREE, DistributedParameter::HALVING};

DistributedParameter Gradients(DistributedParameter::Topology topology) {
  DistributedParameter settings;
  settings.set_mode(DistributedParameter::GRADIENT);
  settings.set_topology(topology);
  return settings;
}

class GradientTopology : public DataParallel {
 protected:
  struct Result {
    std::vector<float> values, history;
  };

  std::unique_ptr<Solver> MakeAs(SolverOptions::Role role, const std::string& rule, bool exchanges) {
    SolverOptions options;
    options.role = role;
    options.exchanges_gradients = exchanges;
    return Make(SolverText(rule, 100), std::move(options));
  }

  static std::vector<float> HistoryOf(const TrainingSteps& steps) {
    std::vector<float> history(static_cast<size_t>(steps.history_count()));
    steps.ReadHistory(history.data());
    return history;
  }

  // What so many workers come to, as protocol and programs have them do it, but for sockets. All have the same bits.
  Result Train(const std::string& rule, DistributedParameter::Topology topology, int count) {
    const DistributedParameter settings = Gradients(topology);
    const bool star = topology == DistributedParameter::STAR;
    std::vector<std::unique_ptr<Solver>> solvers;
    std::vector<std::unique_ptr<TrainingSteps>> workers;
    std::vector<std::unique_ptr<LocalMoves>> moves;
    for (int i = 0; i < count; ++i) {
      solvers.push_back(MakeAs(SolverOptions::Role::kWorker, rule, true));
      workers.push_back(std::make_unique<TrainingSteps>(*solvers.back()));
      moves.push_back(std::make_unique<LocalMoves>(settings, LayoutOf(*workers[0], settings), 0, nullptr,
                                                   star ? GradientUpdate() : SharedUpdate(*workers.back())));
    }
    const StateLayout layout = LayoutOf(*workers[0], settings);
    const auto center = MakeAs(SolverOptions::Role::kCoordinator, rule, true);
    TrainingSteps updates(*center);
    GradientMean::Update update;
    if (star) {
      update.apply = [&](uint64_t iteration, const float* gradient, float* values, float* history) {
        EXPECT_EQ(history, nullptr);
        std::vector<float> all(values, values + layout.values);
        updates.WriteValues(all.data());
        updates.Update(static_cast<int>(iteration), gradient);
        updates.ReadValues(all.data());
        std::copy_n(all.begin(), layout.trained, values);
      };
    } else {
      update.apply = SharedUpdate(updates);
    }
    Payload state = StateOf(*workers[0], layout, false);
    GradientMean math(settings, layout, state, update);
    ExchangePlan plan{.topology = topology, .examples = std::vector<uint64_t>(count, 6)};
    for (int r = 0; r < kRounds; ++r) {
      plan.iteration = static_cast<uint64_t>(r);
      std::vector<Contribution> contributions;
      std::vector<Payload> offers;
      std::vector<const ExchangeMath*> maths;
      for (int i = 0; i < count; ++i) {
        SetValues(*workers[i], layout, state);
        const uint64_t step = static_cast<uint64_t>(r * count + i);
        workers[i]->ReadBatches(step, 1, count);
        std::vector<float> mine(static_cast<size_t>(layout.values)), now(mine);
        workers[i]->Gradients(r, step, mine.data());
        workers[i]->ReadValues(now.data());
        std::copy(now.begin() + layout.trained, now.end(), mine.begin() + layout.trained);
        contributions.push_back(Of(static_cast<uint32_t>(i), 6, mine));
        EXPECT_EQ(math.Check(contributions.back()), "");
        if (!star) maths.push_back(moves[i]->exchange());
        offers.push_back(moves[i]->Offer(contributions.back().values, false));
      }
      // Every fourth round goes through the coordinator, as where workers cannot reach each other.
      if (star || (r % 4 == 3 && topology == DistributedParameter::SHARDED)) {
        Round round;
        round.iteration = plan.iteration;
        math.Restore(state);
        state = math.Reduce(round, contributions);
        math.Accept();
        continue;
      }
      const std::vector<Payload> exchanged = ExchangeAll(plan, offers, maths);
      std::vector<Payload> next;
      for (int i = 0; i < count; ++i) {
        const Payload before = std::make_shared<Bytes>(*state);
        // A round that begins again does it twice.
        for (int again = 0; again < 2; ++again) {
          next.push_back(moves[i]->Conclude(plan, exchanged[i], false, state));
          if (!next.back()) {
            ADD_FAILURE() << "no state";
            return {};
          }
          EXPECT_TRUE(*next.back() == *next[0]) << i;
        }
        EXPECT_TRUE(*before == *state);
      }
      state = next[0];
    }
    SetState(updates, layout, state);
    Result result{std::vector<float>(static_cast<size_t>(layout.values)), HistoryOf(updates)};
    updates.ReadValues(result.values.data());
    return result;
  }

  // One solver alone with batches of `count` workers.
  Result Alone(const std::string& rule, int count) {
    const std::string net = ReadFile(folder_ / "net.prototxt");
    folder_.Write("net.prototxt", SharedNet(6 * count));
    const auto solver = MakeAs(SolverOptions::Role::kWorker, rule, false);
    folder_.Write("net.prototxt", net);
    TrainingSteps steps(*solver);
    for (int r = 0; r < kRounds; ++r) {
      steps.ReadBatches(r, 1, 1);
      steps.Train(r, r);
    }
    Result result{std::vector<float>(static_cast<size_t>(steps.value_count())), HistoryOf(steps)};
    steps.ReadValues(result.values.data());
    return result;
  }

  static double Distance(const std::vector<float>& a, const std::vector<float>& b) {
    EXPECT_EQ(a.size(), b.size());
    double most = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      most = std::max(most, std::fabs(static_cast<double>(a[i]) - b[i]));
    }
    return most;
  }
};

const std::string kRules[] = {
    "momentum: 0.9 weight_decay: 0.01 lr_policy: \"step\" gamma: 0.5 stepsize: 5",
    "type: \"Nesterov\" momentum: 0.9 weight_decay: 0.01 regularization_type: \"L1\"",
    "type: \"AdaGrad\" delta: 0.001",
    "type: \"RMSProp\" rms_decay: 0.9 delta: 0.001",
    "type: \"AdaDelta\" momentum: 0.9 delta: 0.001",
    "type: \"Adam\" base_lr: 0.01 momentum: 0.9 delta: 0.001",
    "momentum: 0.9 clip_gradients: 0.3",
    "type: \"Adam\" base_lr: 0.01 momentum: 0.9 delta: 0.001 clip_gradients: 0.2 iter_size: 3"};

TEST_F(GradientTopology, ShardsAreTheCoordinatorsBits) {
  for (const std::string& rule : kRules) {
    SCOPED_TRACE(rule);
    const Result star = Train(rule, DistributedParameter::STAR, 3);
    const Result sharded = Train(rule, DistributedParameter::SHARDED, 3);
    EXPECT_EQ(sharded.values, star.values);
    EXPECT_EQ(sharded.history, star.history);
    EXPECT_GT(Distance(star.history, std::vector<float>(star.history.size())), 0);
  }
}

// Twelve steps in f32: rules that divide by small numbers make more of how sums are rounded.
TEST_F(GradientTopology, AreOneLargeBatch) {
  for (const std::string& rule : kRules) {
    if (rule.find("iter_size") != std::string::npos) continue;  // the steps of one worker are not those of another
    SCOPED_TRACE(rule);
    const Result alone = Alone(rule, 3);
    const bool divides = rule.find("Ada") != std::string::npos || rule.find("RMS") != std::string::npos;
    for (const auto topology : kAmongWorkers) {
      SCOPED_TRACE(DistributedParameter::Topology_Name(topology));
      const Result got = Train(rule, topology, 3);
      EXPECT_LT(Distance(got.values, alone.values), divides ? 1e-4 : 3e-6);
      EXPECT_LT(Distance(got.history, alone.history), divides ? 1e-4 : 3e-6);
    }
  }
}

TEST_F(GradientTopology, OneWorkerIsASolverAloneToTheBit) {
  for (const std::string& rule : kRules) {
    SCOPED_TRACE(rule);
    if (rule.find("iter_size") != std::string::npos) continue;  // divides by it, and multiplies again
    const Result alone = Alone(rule, 1);
    for (const auto topology : kAmongWorkers) {
      const Result got = Train(rule, topology, 1);
      EXPECT_EQ(got.values, alone.values);
      EXPECT_EQ(got.history, alone.history);
    }
  }
}

TEST_F(GradientTopology, StatesHaveTheHistoryThatAllShare) {
  const auto solver = MakeAs(SolverOptions::Role::kWorker, "type: \"Adam\" momentum: 0.9", true);
  TrainingSteps steps(*solver);
  EXPECT_EQ(LayoutOf(steps, Gradients(DistributedParameter::STAR)).shared_history, 0);
  const StateLayout layout = LayoutOf(steps, Gradients(DistributedParameter::RING));
  EXPECT_EQ(layout.shared_history, 2 * layout.trained);
  EXPECT_EQ(layout.history + layout.velocity, 0);
  EXPECT_EQ(layout.state_bytes(false), layout.state_bytes(true));
  EXPECT_EQ(layout.state_bytes(false), (layout.values + 2 * layout.trained) * sizeof(float));
  std::vector<float> expected(static_cast<size_t>(layout.values));
  steps.ReadValues(expected.data());
  const std::vector<float> history = RandomFloats(3, static_cast<size_t>(layout.shared_history));
  steps.WriteHistory(history.data());
  expected.insert(expected.end(), history.begin(), history.end());
  const Payload state = StateOf(steps, layout, false);
  EXPECT_EQ(Floats(state), expected);
  steps.ClearHistory();
  SetValues(steps, layout, state);
  EXPECT_EQ(HistoryOf(steps), std::vector<float>(history.size())) << "workers do not need it in the net";
  SetState(steps, layout, state);
  EXPECT_EQ(HistoryOf(steps), history);
  EXPECT_THROW(SetState(steps, layout, NewPayload(layout.bytes(false))), EnvironmentError);
  EXPECT_THROW(SetValues(steps, layout, NewPayload(layout.bytes(false) - 4)), EnvironmentError);
}

// Updates that cannot be: nothing comes of the round, and what was before stays.
TEST(GradientAmongWorkers, UpdatesThatFailMakeNoState) {
  StateLayout layout = Trained(2);
  layout.shared_history = 2;
  float value = 1;
  bool fails = false;
  const PeerAveraging math(Gradients(DistributedParameter::TREE), layout,
                           [&](uint64_t iteration, const float* gradient, float* values, float* history) {
                             EXPECT_EQ(iteration, 7u);
                             if (fails) throw EnvironmentError("the norm is not finite");
                             for (int i = 0; i < 2; ++i) values[i] -= history[i] += value * gradient[i];
                           });
  const ExchangePlan plan{.topology = DistributedParameter::TREE, .examples = {1, 1}, .iteration = 7};
  const Payload state = PayloadOf({10, 20, 1, 2}), mean = PayloadOf({0.5f, 0.25f});
  EXPECT_EQ(Floats(math.Conclude(plan, mean, false, state)), (std::vector<float>{8.5f, 17.75f, 1.5f, 2.25f}));
  EXPECT_EQ(Floats(state), (std::vector<float>{10, 20, 1, 2}));
  EXPECT_EQ(math.Conclude(plan, PayloadOf({1}), false, state), nullptr);
  EXPECT_EQ(math.Conclude(plan, mean, false, PayloadOf({10, 20})), nullptr) << "without a history";
  fails = true;
  EXPECT_EQ(math.Conclude(plan, mean, false, state), nullptr);
  fails = false;
  value = std::numeric_limits<float>::infinity();
  EXPECT_EQ(math.Conclude(plan, mean, false, state), nullptr);
}

}  // namespace
}  // namespace crema
