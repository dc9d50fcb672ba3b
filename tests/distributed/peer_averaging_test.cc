// Rounds whose values workers exchange among themselves, against the coordinator's arithmetic.
#include "distributed/averaging/peer_averaging.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "distributed/averaged_rounds.h"

namespace crema {
namespace {

constexpr double kUnit = 0x1p-24;  // the relative error of one rounding to a float

// What workers with these values come to where each combines a piece.
Payload Sharded(const ExchangeMath& math, const ExchangePlan& plan, const std::vector<Payload>& values) {
  const std::vector<uint64_t> cuts = math.Cuts(values[0]->size(), plan.size());
  std::vector<Payload> combined;
  for (int piece = 0; piece < plan.size(); ++piece) {
    std::vector<Payload> pieces;
    for (const Payload& mine : values) pieces.push_back(PieceOf(mine, cuts[piece], cuts[piece + 1]));
    combined.push_back(math.Combine(plan, cuts[piece], cuts[piece + 1], pieces));
    EXPECT_TRUE(combined.back()) << piece;
    if (!combined.back()) return nullptr;
  }
  return Joined(combined);
}

std::vector<Payload> TermsOf(const ExchangeMath& math, ExchangePlan plan, const std::vector<Payload>& values) {
  std::vector<Payload> terms;
  for (plan.rank = 0; plan.rank < plan.size(); ++plan.rank) {
    terms.push_back(math.Term(plan, values[plan.rank]));
    EXPECT_EQ(terms.back()->size(), values[plan.rank]->size());
  }
  return terms;
}

// A sum that goes around, beginning elsewhere for each piece.
Payload Ring(const ExchangeMath& math, const ExchangePlan& plan, const std::vector<Payload>& values) {
  const std::vector<Payload> terms = TermsOf(math, plan, values);
  const std::vector<uint64_t> cuts = math.Cuts(values[0]->size(), plan.size());
  std::vector<Payload> sums;
  for (int piece = 0; piece < plan.size(); ++piece) {
    Payload sum = PieceOf(terms[piece], cuts[piece], cuts[piece + 1]);
    for (int i = 1; i < plan.size(); ++i) {
      sum = math.Add(sum, PieceOf(terms[(piece + i) % plan.size()], cuts[piece], cuts[piece + 1]));
    }
    sums.push_back(sum);
  }
  return math.Finish(plan, sums);
}

// Pairs, then pairs of pairs: half of the values at a time, cut as for twice as many.
Payload Pairs(const ExchangeMath& math, const ExchangePlan& plan, const std::vector<Payload>& values) {
  const std::vector<Payload> terms = TermsOf(math, plan, values);
  const std::vector<uint64_t> cuts = math.Cuts(values[0]->size(), 2 * plan.size());
  const auto sum_of = [&](uint64_t begin, uint64_t end) {
    std::vector<Payload> left;
    for (const Payload& term : terms) left.push_back(PieceOf(term, begin, end));
    while (left.size() > 1) {
      std::vector<Payload> next;
      for (size_t i = 0; i + 1 < left.size(); i += 2) next.push_back(math.Add(left[i], left[i + 1]));
      if (left.size() % 2 == 1) next.push_back(left.back());
      left = next;
    }
    return left[0];
  };
  const std::vector<Payload> sums = {sum_of(0, cuts[plan.size()]), sum_of(cuts[plan.size()], cuts.back())};
  return math.Finish(plan, sums);
}

struct Way {
  std::string name;
  std::function<void(DistributedParameter&)> set;
};

std::vector<Way> OuterWays() {
  return {{"plain", [](DistributedParameter&) {}},
          {"rate", [](DistributedParameter& s) { s.set_outer_lr(0.7f); }},
          {"momentum", [](DistributedParameter& s) { s.set_outer_momentum(0.5f); }},
          {"nesterov",
           [](DistributedParameter& s) {
             s.set_outer_lr(0.7f);
             s.set_outer_momentum(0.9f);
             s.set_outer_nesterov(true);
           }},
          {"by_workers", [](DistributedParameter& s) { s.set_outer_momentum_by_workers(true); }}};
}

// Everything that changes what a round is.
void ForAllSettings(
    const std::function<void(const DistributedParameter& settings, bool statistics, bool history)>& run) {
  for (const Way& way : OuterWays()) {
    for (const bool weighed : {true, false}) {
      for (const bool history : {false, true}) {
        for (const auto statistics : {-1, int{DistributedParameter::POOL}, int{DistributedParameter::FIRST}}) {
          SCOPED_TRACE(testing::Message() << way.name << (weighed ? ", weighed" : "") << (history ? ", history" : "")
                                          << ", statistics " << statistics);
          DistributedParameter settings;
          settings.set_topology(DistributedParameter::SHARDED);
          settings.set_weight_by_examples(weighed);
          way.set(settings);
          if (statistics >= 0) settings.set_batch_norm(static_cast<DistributedParameter::Statistics>(statistics));
          run(settings, statistics >= 0, history);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

// Where every worker combines a piece, workers have the coordinator's bits: round after round, with momentum and
// history.
TEST(PeerAveraging, ShardsHaveTheCoordinatorsBits) {
  ForAllSettings([](const DistributedParameter& settings, bool statistics, bool history) {
    for (const int workers : {1, 2, 5}) {
      const StateLayout layout = LayoutWith(settings, 1001, statistics, history);
      Payload state = PayloadOf(RandomFloats(7, layout.state_bytes(false) / sizeof(float)));
      Averaging coordinator(settings, layout, state, {});
      LocalMoves worker(settings, layout);
      ASSERT_TRUE(worker.exchange());
      for (uint32_t r = 0; r < 4; ++r) {
        const bool with_history = history && r % 2 == 1;
        const RoundOfWorkers now = WorkersWith(layout, workers, 10 + r, with_history);
        Round round;
        round.with_history = with_history;
        const Payload expected = coordinator.Reduce(round, now.contributions);
        const Payload exchanged = Sharded(*worker.exchange(), now.plan, now.values);
        ASSERT_TRUE(exchanged);
        const Payload got = worker.Conclude(now.plan, exchanged, with_history, state);
        ASSERT_TRUE(got);
        ASSERT_EQ(got->size(), layout.state_bytes(with_history));
        ASSERT_TRUE(*got == *expected) << workers << " workers, round " << r;
        if (r == 1) {
          // This one went past the coordinator.
          coordinator.Restore(got);
        } else {
          coordinator.Accept();
        }
        state = got;
      }
    }
  });
}

// What workers carry in states is what a coordinator alone remembers.
TEST(PeerAveraging, MomentumInStatesIsTheCoordinators) {
  for (const Way& way : OuterWays()) {
    SCOPED_TRACE(way.name);
    DistributedParameter star, peers;
    way.set(star);
    way.set(peers);
    peers.set_topology(DistributedParameter::RING);
    const StateLayout alone = LayoutWith(star, 500, true, true), shared = LayoutWith(peers, 500, true, true);
    EXPECT_EQ(alone.velocity, 0);
    EXPECT_EQ(shared.velocity, HasOuterMomentum(peers) ? 500 : 0);
    const std::vector<float> start = RandomFloats(3, static_cast<size_t>(alone.values));
    std::vector<float> start_with_velocity = start;
    start_with_velocity.resize(shared.state_bytes(false) / sizeof(float));
    Averaging a(star, alone, PayloadOf(start), {}), b(peers, shared, PayloadOf(start_with_velocity), {});
    for (uint32_t r = 0; r < 3; ++r) {
      const RoundOfWorkers now = WorkersWith(alone, 3, r, true);
      Round round;
      round.with_history = true;
      const std::vector<float> in_a = Floats(a.Reduce(round, now.contributions));
      const std::vector<float> in_b = Floats(b.Reduce(round, now.contributions));
      a.Accept();
      b.Accept();
      const auto history = in_b.begin() + shared.history_in_state();
      EXPECT_TRUE(std::equal(in_b.begin(), in_b.begin() + shared.values, in_a.begin()));
      EXPECT_TRUE(std::equal(history, in_b.end(), in_a.begin() + alone.history_in_state(), in_a.end()));
      EXPECT_EQ(a.velocity(), b.velocity());
      EXPECT_EQ(a.velocity().empty(), !HasOuterMomentum(peers));
    }
  }
}

// Means that are thousands of times their deviations, as of batch normalisation over distances in metres: about zero,
// floats would have no room for the variance.
TEST(PeerAveraging, SumsKeepTheVarianceBesideLargeMeans) {
  DistributedParameter settings;
  settings.set_topology(DistributedParameter::RING);
  const StateLayout layout = LayoutWith(settings, 100, true, false);
  const auto moved = [&](const std::vector<float>& values) {
    std::vector<float> far = values;
    for (const BatchNormPlaces& layer : layout.batch_norms) {
      for (int64_t i = 0; i < layer.channels; ++i) far[layer.mean + i] += 3000 * far[layer.factor];
    }
    return PayloadOf(far);
  };
  RoundOfWorkers now = WorkersWith(layout, 3, 5, false);
  for (Payload& values : now.values) values = moved(Floats(values));
  now.plan.from = moved(ValuesOf(layout, 9, false));
  const PeerAveraging math(settings, layout);
  const std::vector<float> exact = Floats(Sharded(math, now.plan, now.values));
  for (const std::vector<float>& summed :
       {Floats(Ring(math, now.plan, now.values)), Floats(Pairs(math, now.plan, now.values))}) {
    for (const BatchNormPlaces& layer : layout.batch_norms) {
      for (int64_t i = 0; i < layer.channels; ++i) {
        EXPECT_NEAR(summed[layer.mean + i] / exact[layer.mean + i], 1, 1e-6);
        EXPECT_NEAR(summed[layer.variance + i] / exact[layer.variance + i], 1, 1e-5);
      }
    }
  }
}

// With terms t_i = p_i x_i of N workers, p_i the shares: rounding them and adding them in any order is off by at most
// N u sum |t_i| (u of one rounding), to first order, and the coordinator's mean by one rounding more. Of pooled
// statistics the stored mean is mean * factor and the stored variance (square - mean^2) * factor, of three such sums:
// with S the sum of p (v + m^2), which is above mean^2, square is off by N u S, and mean^2 by 2 |mean| N u sum p |m|,
// at most 2 N u S.
TEST(PeerAveraging, SumsAreTheMeanUpToRounding) {
  ForAllSettings([](const DistributedParameter& settings, bool statistics, bool history) {
    for (const int workers : {2, 3, 4, 7}) {
      const StateLayout layout = LayoutWith(settings, 701, statistics, history);
      const PeerAveraging math(settings, layout);
      const RoundOfWorkers now = WorkersWith(layout, workers, 5, history);
      const std::vector<float> exact = Floats(Sharded(math, now.plan, now.values));
      double total = 0;
      std::vector<double> shares;
      for (const uint64_t examples : now.plan.examples) {
        shares.push_back(settings.weight_by_examples() ? static_cast<double>(examples) : 1);
        total += shares.back();
      }
      for (double& share : shares) share /= total;
      const double u = 1.01 * kUnit;  // what is not of first order
      std::vector<double> tolerance(exact.size());
      const auto sum = [&](const std::function<double(const float* values)>& of) {
        double result = 0;
        for (size_t i = 0; i < now.values.size(); ++i) result += shares[i] * of(FloatsOf(now.values[i]).data());
        return result;
      };
      for (size_t at = 0; at < exact.size(); ++at) {
        tolerance[at] = (workers + 1) * u * sum([&](const float* x) { return std::fabs(x[at]); });
      }
      const bool pooled = settings.batch_norm() == DistributedParameter::POOL;
      for (const BatchNormPlaces& layer : layout.batch_norms) {
        const double factor = sum([&](const float* x) { return x[layer.factor]; });
        for (int64_t i = 0; i < layer.channels; ++i) {
          const auto m = [&](const float* x) { return double{x[layer.mean + i]} / double{x[layer.factor]}; };
          const auto v = [&](const float* x) { return double{x[layer.variance + i]} / double{x[layer.factor]}; };
          const double mean = sum([&](const float* x) { return std::fabs(m(x)); });
          const double square = sum([&](const float* x) { return v(x) + m(x) * m(x); });
          // Both factors are off, and then come two roundings.
          tolerance[layer.mean + i] = (2 * workers + 2) * u * mean * factor;
          tolerance[layer.variance + i] = (3 * workers + workers + 2) * u * square * factor;
        }
      }
      for (int64_t at = layout.trained; at < layout.values; ++at) {
        // Those of the first alone are copied, as is a statistic of no layer.
        if (!pooled || at == layout.values - 1) tolerance[at] = 0;
      }
      for (const bool ring : {true, false}) {
        const Payload finished = ring ? Ring(math, now.plan, now.values) : Pairs(math, now.plan, now.values);
        ASSERT_TRUE(finished);
        const std::vector<float> got = Floats(finished);
        ASSERT_EQ(got.size(), exact.size());
        for (size_t at = 0; at < got.size(); ++at) {
          ASSERT_LE(std::fabs(double{got[at]} - double{exact[at]}), tolerance[at])
              << at << " of " << workers << ", " << ring << ": " << got[at] << " " << exact[at];
        }
      }
      // It is a mean like any other.
      const Payload state = PayloadOf(RandomFloats(9, layout.state_bytes(false) / sizeof(float)));
      const Payload next = math.Conclude(now.plan, Ring(math, now.plan, now.values), history, state);
      ASSERT_TRUE(next);
      const std::vector<float> got = Floats(next),
                               expected = Floats(math.Conclude(now.plan, PayloadOf(exact), history, state));
      // (1 + momentum) rate <= 2 of what the mean is off by; numbers below 4, rounded on both sides.
      for (int64_t at = 0; at < layout.trained; ++at) {
        ASSERT_LE(std::fabs(double{got[at]} - double{expected[at]}), 2 * tolerance[at] + 2 * 4 * u) << at;
      }
    }
  });
}

TEST(PeerAveraging, OneWorkerKeepsItsBits) {
  DistributedParameter settings;
  settings.set_topology(DistributedParameter::RING);
  const StateLayout layout = LayoutWith(settings, 300, true, true);
  const PeerAveraging math(settings, layout);
  const RoundOfWorkers now = WorkersWith(layout, 1, 5, true);
  EXPECT_EQ(Floats(Ring(math, now.plan, now.values)), Floats(now.values[0]));
  EXPECT_EQ(Floats(Sharded(math, now.plan, now.values)), Floats(now.values[0]));
}

// The variance of numbers far from zero comes from a difference.
TEST(PeerAveraging, PooledVariancesAreNeverNegative) {
  DistributedParameter settings;
  settings.set_topology(DistributedParameter::TREE);
  StateLayout layout = Trained(0);
  layout.values = 3;
  layout.batch_norms = {{0, 1, 2, 1}};
  const PeerAveraging math(settings, layout);
  const ExchangePlan plan{.examples = {1, 1, 1}};
  const std::vector<Payload> same(3, PayloadOf({1000.1f, 0.0f, 1.0f}));
  for (const Payload& result : {Ring(math, plan, same), Pairs(math, plan, same), Sharded(math, plan, same)}) {
    ASSERT_TRUE(result);
    EXPECT_NEAR(Floats(result)[0], 1000.1f, 1e-3);
    EXPECT_GE(Floats(result)[1], 0);
    EXPECT_LE(Floats(result)[1], 12 * kUnit * 1000.1 * 1000.1);
  }
}

TEST(PeerAveraging, CutsKeepStatisticsTogether) {
  DistributedParameter settings;
  settings.set_topology(DistributedParameter::SHARDED);
  for (const int64_t trained : {0, 1, 100, 5000}) {
    for (const bool history : {false, true}) {
      const StateLayout layout = LayoutWith(settings, trained, true, history);
      const PeerAveraging math(settings, layout);
      for (const uint64_t bytes : {layout.bytes(false), layout.bytes(true)}) {
        for (const int pieces : {1, 2, 3, 8, 64}) {
          const std::vector<uint64_t> cuts = math.Cuts(bytes, pieces);
          ASSERT_EQ(cuts.size(), static_cast<size_t>(pieces) + 1);
          EXPECT_EQ(cuts.front(), 0u);
          EXPECT_EQ(cuts.back(), bytes);
          const uint64_t statistics = static_cast<uint64_t>(trained) * 4, behind = layout.bytes(false);
          for (int i = 0; i < pieces; ++i) {
            ASSERT_LE(cuts[i], cuts[i + 1]);
            EXPECT_TRUE(cuts[i] % 64 == 0 || cuts[i] == statistics);
            EXPECT_TRUE(cuts[i] <= statistics || cuts[i] >= behind);
            EXPECT_LE(cuts[i + 1] - cuts[i], bytes / pieces + 2 * 64 + behind - statistics);
          }
        }
      }
    }
  }
}

TEST(PeerAveraging, ThreadsDoNotChangeBits) {
  DistributedParameter settings;
  settings.set_topology(DistributedParameter::SHARDED);
  settings.set_outer_momentum(0.9f);
  const StateLayout layout = LayoutWith(settings, 300'001, true, false);
  const PeerAveraging math(settings, layout);
  const RoundOfWorkers now = WorkersWith(layout, 3, 5, false);
  const Payload state = PayloadOf(RandomFloats(9, layout.state_bytes(false) / sizeof(float)));
  const int threads = omp_get_max_threads();
  std::vector<Payload> results;
  for (const int count : {1, 3}) {
    omp_set_num_threads(count);
    results.push_back(math.Conclude(now.plan, Sharded(math, now.plan, now.values), false, state));
    results.push_back(math.Conclude(now.plan, Ring(math, now.plan, now.values), false, state));
  }
  omp_set_num_threads(threads);
  EXPECT_TRUE(*results[0] == *results[2]);
  EXPECT_TRUE(*results[1] == *results[3]);
  // However they are cut.
  const Payload whole = math.Combine(now.plan, 0, layout.bytes(false), now.values);
  EXPECT_TRUE(*Sharded(math, now.plan, now.values) == *whole);
}

}  // namespace
}  // namespace crema
