// What becomes of results that come one by one.
#include <gtest/gtest.h>

#include <limits>

#include "distributed/averaging/averaging.h"
#include "distributed/contributions.h"

namespace crema {
namespace {

DistributedParameter Stale() {
  DistributedParameter settings;
  settings.set_mode(DistributedParameter::STALE);
  return settings;
}

Contribution With(double share, Contribution contribution) {
  contribution.share = share;
  return contribution;
}

Round RoundOf(int workers) {
  Round round;
  round.workers = workers;
  return round;
}

TEST(StaleAveraging, AddsDifferencesByTheirShares) {
  DistributedParameter settings = Stale();
  settings.set_outer_lr(0.5f);
  Averaging math(settings, Trained(2), PayloadOf({10, 20}), {});
  EXPECT_EQ(Floats(math.Reduce(RoundOf(4), {With(0.25, Of(0, 8, {4, -8}))})), (std::vector<float>{10.5f, 19}));
  // Not accepted.
  EXPECT_EQ(Floats(math.Reduce(RoundOf(4), {With(0.5, Of(0, 8, {4, -8})), With(0.25, Of(2, 4, {8, 0}))})),
            (std::vector<float>{12, 18}));
  math.Accept();
  EXPECT_EQ(Floats(math.Reduce(RoundOf(4), {With(1, Of(1, 8, {2, 2}))})), (std::vector<float>{13, 19}));
  settings.set_weight_by_examples(false);
  Averaging plain(settings, Trained(2), PayloadOf({10, 20}), {});
  EXPECT_EQ(Floats(plain.Reduce(RoundOf(4), {With(0.9, Of(0, 8, {8, 16}))})), (std::vector<float>{11, 22}));
}

// What all bring from the same parameters is their average, whoever comes first.
TEST(StaleAveraging, InAnyOrderEqualsTheAverageOfOneRound) {
  constexpr size_t kCount = 2000;
  const std::vector<float> start = RandomFloats(1, kCount);
  const Payload anchor = PayloadOf(start);
  LocalMoves moves(Stale(), Trained(kCount));
  Averaging together({}, Trained(kCount), anchor, {}), apart(Stale(), Trained(kCount), anchor, {});
  std::vector<Contribution> all;
  for (uint32_t i = 0; i < 4; ++i) all.push_back(Of(i, 16, RandomFloats(10 + i, kCount)));
  const std::vector<float> mean = Floats(together.Reduce({}, all));
  Payload state;
  for (const uint32_t i : {2u, 0u, 3u, 1u}) {
    Contribution one = all[i];
    one.share = 0.25;
    one.values = moves.Encode(one.values, anchor, 0);
    ASSERT_EQ(apart.Check(one), "");
    state = apart.Reduce(RoundOf(4), {one});
    apart.Accept();
  }
  for (size_t k = 0; k < kCount; ++k) ASSERT_NEAR(Floats(state)[k], mean[k], 1e-6) << k;
}

// A result that moved to other parameters is the same difference.
TEST(StaleAveraging, ADifferenceStaysWhatItIsWhenItMoves) {
  LocalMoves moves(Stale(), Trained(2));
  const Payload from = PayloadOf({1, 2}), to = PayloadOf({5, 5});
  const Payload moved = moves.Rebase(PayloadOf({2, 4}), false, from, to);
  EXPECT_EQ(Floats(moves.Encode(moved, to, 1)), Floats(moves.Encode(PayloadOf({2, 4}), from, 0)));
  EXPECT_EQ(Floats(moves.Encode(moved, to, 1)), (std::vector<float>{1, 2}));
}

TEST(StaleAveraging, CodesAreOfDifferences) {
  constexpr size_t kCount = 4096;
  DistributedParameter settings = Stale();
  settings.set_codec(DistributedParameter::FP16);
  settings.set_codec_warmup_rounds(0);
  StateLayout layout = Trained(kCount);
  layout.buckets = {{kCount, false}};
  const std::vector<float> from = RandomFloats(1, kCount);
  std::vector<float> values = from;
  for (size_t k = 0; k < kCount; ++k) values[k] += 0.25f;
  LocalMoves moves(settings, layout);
  Averaging math(settings, layout, PayloadOf(RandomFloats(2, kCount)), {});
  Contribution one = With(0.5, Of(0, 8, values));
  one.values = moves.Encode(one.values, PayloadOf(from), 0);
  ASSERT_TRUE(one.values);
  EXPECT_LT(one.values->size(), 3 * kCount);
  ASSERT_EQ(math.Check(one), "");
  const std::vector<float> before = RandomFloats(2, kCount), after = Floats(math.Reduce(RoundOf(2), {one}));
  for (size_t k = 0; k < kCount; ++k) ASSERT_NEAR(after[k] - before[k], 0.125, 1e-4) << k;
}

// With a quarter of the workers' statistics, three quarters of what was.
TEST(StaleAveraging, StatisticsArePooledWithThoseThatWere) {
  StateLayout layout;
  layout.trained = 1;
  layout.values = 1 + 1 + 1 + 1;
  layout.batch_norms = {{1, 2, 3, 1}};
  Averaging math(Stale(), layout, PayloadOf({0, 2, 3, 1}), {});
  const std::vector<float> next = Floats(math.Reduce(RoundOf(4), {With(0.25, Of(0, 1, {0, 6, 5, 1}))}));
  EXPECT_FLOAT_EQ(next[1] / next[3], 3);
  // The mean of squares, 3/4 (3 + 4) + 1/4 (5 + 36), less that of the mean.
  EXPECT_FLOAT_EQ(next[2] / next[3], 15.5f - 9);
  EXPECT_FLOAT_EQ(next[3], 1);
}

TEST(StaleAveraging, RefusesValuesThatAreNotFinite) {
  Averaging math(Stale(), Trained(1), PayloadOf({0}), {});
  Contribution one = Of(0, 1, {std::numeric_limits<float>::infinity()});
  EXPECT_NE(math.Check(one).find("not all finite"), std::string::npos);
}

}  // namespace
}  // namespace crema
