// Elastic averaging against its formula in double precision.
#include <gtest/gtest.h>

#include <algorithm>

#include "distributed/averaging/averaging.h"
#include "distributed/contributions.h"

namespace crema {
namespace {

DistributedParameter Elastic(float rate) {
  DistributedParameter settings;
  settings.set_mode(DistributedParameter::ELASTIC);
  settings.set_elastic_rate(rate);
  return settings;
}

// Each worker walks towards a point of its own, 0.3 of the way in each round; all from the same beginning.
TEST(Elastic, WorkersAndCenterFollowTheFormula) {
  constexpr size_t kCount = 3000, kWorkers = 3;
  constexpr double kRate = 0.2;
  const DistributedParameter settings = Elastic(static_cast<float>(kRate));
  const std::vector<float> start = RandomFloats(1, kCount);
  std::vector<std::vector<float>> goals;
  for (uint32_t i = 0; i < kWorkers; ++i) goals.push_back(RandomFloats(10 + i, kCount));

  std::vector<double> center(start.begin(), start.end());
  std::vector<std::vector<double>> w(kWorkers, center);
  Averaging math(settings, Trained(kCount), PayloadOf(start), {});
  LocalMoves moves(settings, Trained(kCount));
  Payload state = PayloadOf(start);
  std::vector<Payload> own(kWorkers, state);
  for (int round = 0; round < 8; ++round) {
    std::vector<double> pull(kCount, 0.0);
    std::vector<Contribution> contributions;
    for (uint32_t i = 0; i < kWorkers; ++i) {
      std::vector<float> x = Floats(own[i]);
      for (size_t k = 0; k < kCount; ++k) {
        x[k] -= 0.3f * (x[k] - goals[i][k]);
        w[i][k] -= 0.3 * (w[i][k] - goals[i][k]);
        const double apart = w[i][k] - center[k];
        pull[k] += kRate * apart;
        w[i][k] -= kRate * apart;
      }
      contributions.push_back(Of(i, 16, x));
      EXPECT_EQ(math.Check(contributions.back()), "");
    }
    for (size_t k = 0; k < kCount; ++k) center[k] += pull[k];
    const Payload next = math.Reduce({}, contributions);
    math.Accept();
    for (size_t i = 0; i < kWorkers; ++i) own[i] = moves.Own(contributions[i].values, state);
    state = next;
  }
  // Eight rounds of floats of up to 1.
  constexpr double kRounding = 2e-6;
  for (size_t k = 0; k < kCount; ++k) {
    ASSERT_NEAR(Floats(state)[k], center[k], kRounding) << k;
    for (size_t i = 0; i < kWorkers; ++i) ASSERT_NEAR(Floats(own[i])[k], w[i][k], kRounding) << i << " " << k;
    if (k == 20) k = kCount - 20;
  }
}

TEST(Elastic, TheRateIsNineTenthsOverTheWorkersUnlessItIsGiven) {
  DistributedParameter settings = Elastic(0);
  settings.set_expected_workers(4);
  EXPECT_DOUBLE_EQ(ElasticRate(settings), 0.225);
  settings.clear_expected_workers();
  settings.set_local_workers(3);
  EXPECT_DOUBLE_EQ(ElasticRate(settings), 0.3);
  settings.set_elastic_rate(0.5f);
  EXPECT_DOUBLE_EQ(ElasticRate(settings), 0.5);
}

TEST(Elastic, TheCenterIsNotThrownBeyondTheMean) {
  Averaging math(Elastic(0.5f), Trained(1), PayloadOf({0}), {});
  const auto of = [](uint32_t workers) {
    std::vector<Contribution> all;
    for (uint32_t i = 0; i < workers; ++i) all.push_back(Of(i, 1, {static_cast<float>(2 * i + 1)}));
    return all;
  };
  EXPECT_FLOAT_EQ(Floats(math.Reduce({}, of(1)))[0], 0.5f);
  EXPECT_FLOAT_EQ(Floats(math.Reduce({}, of(2)))[0], 2);
  EXPECT_FLOAT_EQ(Floats(math.Reduce({}, of(4)))[0], 4) << "of 1, 3, 5 and 7";
}

TEST(Elastic, OnlyTrainedValuesArePulledAndHistoryIsNotKept) {
  StateLayout layout;
  layout.trained = 1;
  layout.values = 3;
  layout.history = 1;
  LocalMoves moves(Elastic(0.5f), layout);
  EXPECT_EQ(Floats(moves.Own(PayloadOf({4, 5, 6, 7}), PayloadOf({2, 0, 0}))), (std::vector<float>{3, 5, 6}));
  // It stays what it is, though the center goes on.
  EXPECT_EQ(Floats(moves.Rebase(PayloadOf({4, 5, 6}), false, PayloadOf({2, 0, 0}), PayloadOf({3, 0, 0}))),
            (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(LocalMoves({}, layout).Own(PayloadOf({4, 5, 6}), PayloadOf({2, 0, 0})), nullptr) << "of mode AVERAGE";
}

}  // namespace
}  // namespace crema
