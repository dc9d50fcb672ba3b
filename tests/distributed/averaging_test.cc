#include "distributed/averaging/averaging.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "distributed/contributions.h"

namespace crema {
namespace {

TEST(Averaging, WeighsByExamples) {
  DistributedParameter settings;
  Averaging math(settings, Trained(2), PayloadOf({0, 0}), {});
  EXPECT_EQ(Floats(math.Reduce({}, {Of(0, 1, {1, 8}), Of(1, 3, {5, 0})})), (std::vector<float>{4, 2}));
  settings.set_weight_by_examples(false);
  Averaging plain(settings, Trained(2), PayloadOf({0, 0}), {});
  EXPECT_EQ(Floats(plain.Reduce({}, {Of(0, 1, {1, 8}), Of(1, 3, {5, 0})})), (std::vector<float>{3, 4}));
}

TEST(Averaging, OneWorkerKeepsItsBits) {
  const size_t count = 5000;
  Averaging math({}, Trained(count), PayloadOf(RandomFloats(1, count)), {});
  const std::vector<float> mine = RandomFloats(2, count);
  EXPECT_EQ(Floats(math.Reduce({}, {Of(0, 7, mine)})), mine);
}

// V = m V + l G; W - V, or with Nesterov W - (l G + m V): over three rounds, against doubles.
TEST(Averaging, OuterUpdates) {
  const size_t count = 3000;
  for (const bool nesterov : {false, true}) {
    for (const double momentum : {0.0, 0.6}) {
      for (const double rate : {1.0, 0.7}) {
        if (nesterov && momentum == 0) continue;
        SCOPED_TRACE(testing::Message() << nesterov << " " << momentum << " " << rate);
        DistributedParameter settings;
        settings.set_outer_lr(static_cast<float>(rate));
        settings.set_outer_momentum(static_cast<float>(momentum));
        settings.set_outer_nesterov(nesterov);
        const std::vector<float> start = RandomFloats(3, count);
        std::vector<double> w(start.begin(), start.end()), v(count, 0.0);
        Averaging math(settings, Trained(count), PayloadOf(start), {});
        for (uint32_t round = 0; round < 3; ++round) {
          const auto a = RandomFloats(10 + round, count), b = RandomFloats(20 + round, count);
          const Payload next = math.Reduce({}, {Of(0, 2, a), Of(1, 1, b)});
          math.Accept();
          const std::vector<float> got = Floats(next);
          for (size_t i = 0; i < count; ++i) {
            const double g = w[i] - (2.0 * a[i] + b[i]) / 3;
            v[i] = momentum * v[i] + rate * g;
            w[i] -= nesterov ? rate * g + momentum * v[i] : v[i];
            ASSERT_NEAR(got[i], w[i], 2e-6) << i;
          }
        }
        EXPECT_EQ(math.velocity().empty(), momentum == 0);
      }
    }
  }
}

TEST(Averaging, MomentumByTheNumberOfWorkers) {
  DistributedParameter settings;
  settings.set_outer_momentum_by_workers(true);
  Averaging math(settings, Trained(1), PayloadOf({0}), {1.0f});
  // V = 3/4 * 1 + (0 - 2)
  const Payload next = math.Reduce({}, {Of(0, 1, {2}), Of(1, 1, {2}), Of(2, 1, {2}), Of(3, 1, {2})});
  EXPECT_FLOAT_EQ(Floats(next)[0], 1.25f);
}

TEST(Averaging, NothingCountsBeforeItIsAccepted) {
  DistributedParameter settings;
  settings.set_outer_momentum(0.5f);
  Averaging math(settings, Trained(1), PayloadOf({0}), {});
  const auto first = Floats(math.Reduce({}, {Of(0, 1, {4})}));
  // The journal could not be written, and one more worker came.
  EXPECT_EQ(Floats(math.Reduce({}, {Of(0, 1, {4})})), first);
  EXPECT_EQ(Floats(math.Reduce({}, {Of(0, 1, {4}), Of(1, 1, {0})}))[0], 2);
  math.Accept();
  EXPECT_FLOAT_EQ(math.velocity()[0], -2);
}

// Means and variances of two groups of numbers, pooled, are those of all the numbers.
TEST(Averaging, PoolsStatisticsOfBatchNorm) {
  StateLayout layout;
  layout.trained = 1;
  layout.values = 1 + 2 + 2 + 1;
  layout.batch_norms = {{1, 3, 5, 2}};
  const std::vector<std::vector<double>> groups = {{1, 2, 6}, {-3, 5, 5, 5, 8}};
  std::vector<Contribution> contributions;
  double sum = 0, squares = 0, count = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    double mean = 0, square = 0;
    for (const double x : groups[g]) {
      mean += x / groups[g].size();
      square += x * x / groups[g].size();
      sum += x, squares += x * x, ++count;
    }
    const double factor = g == 0 ? 2 : 0.5;  // as different numbers of passes leave it
    const float m = static_cast<float>(mean * factor), v = static_cast<float>((square - mean * mean) * factor);
    contributions.push_back(
        Of(static_cast<uint32_t>(g), groups[g].size(), {0, m, 2 * m, v, 4 * v, static_cast<float>(factor)}));
  }
  const double mean = sum / count, variance = squares / count - mean * mean;
  Averaging math({}, layout, PayloadOf(std::vector<float>(6)), {});
  const auto pooled = Floats(math.Reduce({}, contributions));
  EXPECT_NEAR(pooled[1] / pooled[5], mean, 1e-5);
  EXPECT_NEAR(pooled[2] / pooled[5], 2 * mean, 1e-5);
  EXPECT_NEAR(pooled[3] / pooled[5], variance, 1e-5);
  EXPECT_NEAR(pooled[4] / pooled[5], 4 * variance, 1e-4);
  EXPECT_GT(pooled[5], 0.5f);

  DistributedParameter settings;
  settings.set_batch_norm(DistributedParameter::FIRST);
  Averaging first(settings, layout, PayloadOf(std::vector<float>(6)), {});
  const auto kept = Floats(first.Reduce({}, contributions)), own = Floats(contributions[0].values);
  EXPECT_TRUE(std::equal(kept.begin() + 1, kept.end(), own.begin() + 1));
}

TEST(Averaging, HistoryIsTheMeanOfThoseThatHaveOne) {
  Averaging math({}, Trained(1, 2), PayloadOf({0}), {});
  Round round;
  round.with_history = true;
  // The second is of a round without.
  const auto next =
      Floats(math.Reduce(round, {Of(0, 1, {1, 10, 20}, true), Of(1, 1, {3}), Of(2, 1, {5, 30, 40}, true)}));
  EXPECT_EQ(next, (std::vector<float>{3, 20, 30}));
  round.with_history = false;
  EXPECT_EQ(Floats(math.Reduce(round, {Of(0, 1, {1}), Of(1, 1, {3})})), (std::vector<float>{2}));
}

std::string Wrong(Averaging& math, Contribution contribution) { return math.Check(contribution); }

TEST(Averaging, RefusesWhatCannotBeAveraged) {
  Averaging math({}, Trained(3, 2), PayloadOf({0, 0, 0}), {});
  EXPECT_EQ(Wrong(math, Of(0, 1, {1, 2, 3})), "");
  EXPECT_EQ(Wrong(math, Of(0, 1, {1, 2, 3, 4, 5}, true)), "");
  EXPECT_NE(Wrong(math, Of(0, 1, {1, 2})), "");
  EXPECT_NE(Wrong(math, Of(0, 1, {1, 2, 3}, true)), "");
  EXPECT_NE(Wrong(math, Of(0, 1, {1, 2, 3, 4, 5})), "");
  EXPECT_NE(Wrong(math, Of(0, 0, {1, 2, 3})), "");
  for (const float bad : {NAN, -NAN, INFINITY, -INFINITY}) EXPECT_NE(Wrong(math, Of(0, 1, {1, bad, 3})), "") << bad;
  EXPECT_EQ(Wrong(math, Of(0, 1, {std::numeric_limits<float>::max(), 1e-45f, -0.0f})), "");
}

TEST(GradientMean, AppliesTheMeanOnce) {
  std::vector<float> applied;
  int undone = 0;
  GradientMean::Update update;
  update.apply = [&](uint64_t iteration, const float* gradient, float* values, float*) {
    EXPECT_EQ(iteration, 5u);
    applied.push_back(gradient[0]);
    values[0] -= gradient[0];
  };
  update.undo = [&] { ++undone; };
  StateLayout layout;
  layout.trained = 1;
  layout.values = 1;
  GradientMean math({}, layout, PayloadOf({10}), update);
  Round round;
  round.iteration = 5;
  EXPECT_EQ(Floats(math.Reduce(round, {Of(0, 1, {1}), Of(1, 1, {3})}))[0], 8);
  // Again, since the journal could not be written.
  EXPECT_EQ(Floats(math.Reduce(round, {Of(0, 1, {1}), Of(1, 1, {3})}))[0], 8);
  EXPECT_EQ(undone, 1);
  math.Accept();
  EXPECT_EQ(Floats(math.Reduce(round, {Of(0, 1, {4})}))[0], 4);
  EXPECT_EQ(undone, 1);
  // The end, before the round came into the journal.
  math.Abandon();
  math.Abandon();
  EXPECT_EQ(undone, 2);
}

TEST(LocalMoves, KeepWhatWasLearned) {
  StateLayout layout = Trained(2, 1);
  layout.values = 3;  // one statistic
  LocalMoves moves({}, layout);
  const auto moved = Floats(moves.Rebase(PayloadOf({5, 6, 7, 9}), true, PayloadOf({1, 1, 1}), PayloadOf({10, 20, 30})));
  EXPECT_EQ(moved, (std::vector<float>{14, 25, 7, 9}));
  DistributedParameter settings;
  settings.set_mode(DistributedParameter::GRADIENT);
  LocalMoves gradients(settings, layout);
  EXPECT_EQ(Floats(gradients.Rebase(PayloadOf({5, 6, 7}), false, PayloadOf({1, 1, 1}), PayloadOf({10, 20, 30}))),
            (std::vector<float>{5, 6, 7}));
}

// Workers that send and get codes end up with the coordinator's parameters, bit for bit.
TEST(Averaging, CompressesBothWays) {
  StateLayout layout;
  layout.buckets = {{3000, false}, {10, true}};
  layout.trained = layout.values = 3010;
  for (const auto mode : {DistributedParameter::AVERAGE, DistributedParameter::GRADIENT}) {
    DistributedParameter settings;
    settings.set_mode(mode);
    settings.set_codec(DistributedParameter::TOPK);
    settings.set_topk_ratio(0.05f);
    settings.set_down_codec(DistributedParameter::INT8);
    settings.set_codec_warmup_rounds(1);
    const Payload start = PayloadOf(RandomFloats(1, 3010));
    GradientMean::Update update;
    update.apply = [](uint64_t, const float* gradient, float* values, float*) {
      for (int i = 0; i < 3010; ++i) values[i] -= gradient[i];
    };
    update.undo = [] {};
    std::unique_ptr<Averaging> math;
    if (mode == DistributedParameter::GRADIENT) {
      math = std::make_unique<GradientMean>(settings, layout, start, update);
    } else {
      math = std::make_unique<Averaging>(settings, layout, start, std::vector<float>());
    }
    std::vector<std::unique_ptr<LocalMoves>> workers;
    for (int i = 0; i < 2; ++i) workers.push_back(std::make_unique<LocalMoves>(settings, layout));
    std::vector<Payload> states = {start, start};
    std::vector<double> exact(FloatsOf(start).begin(), FloatsOf(start).end());
    Payload now = start;
    uint64_t bytes = 0;
    for (uint64_t version = 0; version < 30; ++version) {
      std::vector<Contribution> contributions;
      for (uint32_t i = 0; i < 2; ++i) {
        auto values = RandomFloats(100 + i, 3010);  // the same in each round: what is left out must come in the end
        for (size_t k = 0; k < values.size(); ++k) {
          values[k] *= 0.01f;
          exact[k] -= values[k] / 2;
          if (mode == DistributedParameter::AVERAGE) values[k] = FloatsOf(states[i])[k] - values[k];
        }
        Contribution& mine = contributions.emplace_back(Of(i, 1, values));
        mine.values = workers[i]->Encode(mine.values, states[i], version);
        bytes += mine.values->size();
        ASSERT_LE(mine.values->size(), math->most_push_bytes());
        ASSERT_EQ(math->Check(mine), "");
      }
      Round round;
      round.version = version;
      now = math->Reduce(round, contributions);
      math->Accept();
      for (uint32_t i = 0; i < 2; ++i) {
        workers[i]->Settle(WorkerMath::Outcome::kCommitted);
        states[i] = workers[i]->Decode(Work::DIFFERENCE, math->Difference(), states[i]);
        ASSERT_TRUE(states[i]);
        ASSERT_EQ(*states[i], *now) << version;
      }
    }
    double most = 0;
    for (size_t k = 0; k < exact.size(); ++k) most = std::max(most, std::fabs(exact[k] - FloatsOf(now)[k]));
    // One value in twenty goes each round: what is still on its way is about twenty rounds of the smallest.
    EXPECT_LT(most, 0.25);
    EXPECT_LT(bytes, 60u * 3010 * 4 / 3);
  }
}

TEST(LocalMoves, TakesApartWhatJoinersGet) {
  const StateLayout layout = Trained(2);
  Payload fixed;
  LocalMoves moves({}, layout, 2 * sizeof(float), [&](Payload payload) { fixed = std::move(payload); });
  Averaging math({}, layout, PayloadOf({1, 2}), {});
  math.set_fixed(PayloadOf({8, 9}));
  EXPECT_EQ(Floats(moves.Decode(Work::WHOLE, math.Whole(PayloadOf({3, 4})), nullptr)), (std::vector<float>{3, 4}));
  EXPECT_EQ(Floats(fixed), (std::vector<float>{8, 9}));
  EXPECT_EQ(moves.Decode(Work::WHOLE, PayloadOf({1}), nullptr), nullptr);
  EXPECT_EQ(moves.Decode(Work::DIFFERENCE, PayloadOf({1}), PayloadOf({1, 2})), nullptr);
}

}  // namespace
}  // namespace crema
