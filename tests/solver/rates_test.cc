#include "solver/rules/rates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace crema {
namespace {

SolverParameter Policy(const std::string& name) {
  SolverParameter solver;
  solver.set_lr_policy(name);
  solver.set_base_lr(0.02f);
  solver.set_gamma(0.25f);
  solver.set_power(0.75f);
  solver.set_stepsize(7);
  solver.set_max_iter(50);
  for (const int value : {5, 6, 30}) solver.add_stepvalue(value);
  for (const float rate : {0.5f, 0.125f, 0.25f}) solver.add_stagelr(rate);
  for (const int last : {3, 10, 20}) solver.add_stageiter(last);
  return solver;
}

void ExpectRates(const std::string& name, double (*expected)(int)) {
  const SolverParameter solver = Policy(name);
  for (int iteration = 0; iteration < 50; ++iteration) {
    const double want = expected(iteration);
    EXPECT_NEAR(LearningRateAt(solver, iteration), want, 1e-6 * want) << name << " at " << iteration;
  }
}

TEST(Rates, FollowTheirClosedForms) {
  ExpectRates("fixed", [](int) { return 0.02; });
  ExpectRates("step", [](int i) { return 0.02 * std::pow(0.25, i / 7); });
  ExpectRates("exp", [](int i) { return 0.02 * std::pow(0.25, i); });
  ExpectRates("inv", [](int i) { return 0.02 * std::pow(1 + 0.25 * i, -0.75); });
  ExpectRates("multistep", [](int i) { return 0.02 * std::pow(0.25, i < 5 ? 0 : i < 6 ? 1 : i < 30 ? 2 : 3); });
  ExpectRates("poly", [](int i) { return 0.02 * std::pow(1 - i / 50.0, 0.75); });
  ExpectRates("sigmoid", [](int i) { return 0.02 / (1 + std::exp(-0.25 * (i - 7))); });
  ExpectRates("cosine", [](int i) { return 0.01 * (1 + std::cos(M_PI * i / 50)); });
  ExpectRates("multifixed", [](int i) { return i <= 3 ? 0.5 : i <= 10 ? 0.125 : 0.25; });
}

TEST(Rates, MomentumFollowsItsPolicy) {
  SolverParameter solver = Policy("fixed");
  solver.set_momentum(0.5f);
  solver.set_momentum_power(2);
  solver.set_max_momentum(0.9f);
  for (int i = 0; i <= 60; ++i) {
    solver.set_momentum_policy("fixed");
    EXPECT_EQ(MomentumAt(solver, i, 0.02f), 0.5f);
    solver.set_momentum_policy("poly");
    const double done = std::min(1.0, i / 50.0);
    EXPECT_NEAR(MomentumAt(solver, i, 0.02f), 0.5 + 0.4 * done * done, 1e-6) << i;
  }
  solver.set_momentum_policy("opt");
  EXPECT_NEAR(MomentumAt(solver, 3, 0.04f), 0.81, 1e-6);
  EXPECT_EQ(MomentumAt(solver, 3, 0.0004f), 0.9f) << "0.98 is more than max_momentum";
  solver.clear_max_momentum();
  EXPECT_NEAR(MomentumAt(solver, 3, 0.0004f), 0.9801, 1e-6);
}

TEST(Rates, CoversEveryPolicyOfTheTable) {
  std::vector<std::string> names;
  for (const RatePolicy& policy : RatePolicies()) names.push_back(policy.name);
  EXPECT_EQ(names, (std::vector<std::string>{"fixed", "step", "exp", "inv", "multistep", "poly", "sigmoid", "cosine",
                                             "multifixed", "plateau"}));
  EXPECT_EQ(FindRatePolicy("Fixed"), nullptr);
}

TEST(Rates, PolyIsZeroFromMaxIterOn) {
  EXPECT_EQ(LearningRateAt(Policy("poly"), 50), 0.0f);
  EXPECT_EQ(LearningRateAt(Policy("poly"), 60), 0.0f);
}

TEST(Rates, NeverFallBelowTheLowest) {
  for (const std::string name : {"exp", "step", "multistep", "inv"}) {
    SolverParameter solver = Policy(name);
    solver.set_min_lr(0.004f);
    for (int iteration = 0; iteration < 50; ++iteration) {
      EXPECT_EQ(LearningRateAt(solver, iteration), std::max(0.004f, LearningRateAt(Policy(name), iteration))) << name;
    }
  }
}

TEST(Rates, PolyAndCosineEndAtTheLowest) {
  SolverParameter poly = Policy("poly"), cosine = Policy("cosine");
  poly.set_min_lr(0.004f);
  cosine.set_min_lr(0.004f);
  for (int i = 0; i < 50; ++i) {
    EXPECT_NEAR(LearningRateAt(poly, i), 0.004 + 0.016 * std::pow(1 - i / 50.0, 0.75), 1e-8);
    EXPECT_NEAR(LearningRateAt(cosine, i), 0.004 + 0.008 * (1 + std::cos(M_PI * i / 50)), 1e-8);
  }
  for (const int i : {50, 60}) {
    EXPECT_EQ(LearningRateAt(poly, i), 0.004f);
    EXPECT_EQ(LearningRateAt(cosine, i), 0.004f);
  }
}

TEST(Rates, RiseInAWarmUp) {
  for (const bool of_intel : {true, false}) {
    SolverParameter solver = Policy("multistep");
    if (of_intel) {
      solver.set_warmup_iter(8);
      solver.set_warmup_start_lr(0.004f);
    } else {
      solver.set_rampup_interval(8);
      solver.set_rampup_lr(0.004f);
    }
    for (int i = 0; i < 8; ++i) EXPECT_NEAR(LearningRateAt(solver, i), 0.004 + 0.016 * i / 8, 1e-8);
    // The steps at 5 and 6 are counted, though they were not seen.
    for (int i = 8; i < 50; ++i) EXPECT_EQ(LearningRateAt(solver, i), LearningRateAt(Policy("multistep"), i));
  }
  SolverParameter from_nothing = Policy("cosine");
  from_nothing.set_warmup_iter(10);
  EXPECT_EQ(LearningRateAt(from_nothing, 0), 0.0f);
  EXPECT_EQ(LearningRateAt(from_nothing, 10), 0.02f) << "the cosine begins where the warm-up ends";
  EXPECT_NEAR(LearningRateAt(from_nothing, 30), 0.01, 1e-8);
  from_nothing.set_warmup_power(4);
  EXPECT_NEAR(LearningRateAt(from_nothing, 5), 0.02 / 16, 1e-8);
  EXPECT_EQ(LearningRateAt(from_nothing, 10), 0.02f);
}

TEST(Rates, FallWhereTheLossStays) {
  SolverParameter solver = Policy("plateau");
  for (const int size : {3, 2}) solver.add_plateau_winsize(size);
  solver.set_warmup_iter(2);
  PlateauState state;
  std::vector<int> drops;
  // Losses of a warm-up do not count; each minimum and each drop begins a window anew; two windows are all there are.
  const float losses[] = {1, 1, 9, 8, 8, 8.5f, 8, 7, 7, 7, 6, 7, 7, 7, 7};
  for (int i = 0; i < 15; ++i) {
    if (FollowLoss(solver, i, losses[i], &state)) drops.push_back(i);
  }
  EXPECT_EQ(drops, (std::vector<int>{6, 9}));
  EXPECT_EQ(state.drops, 2);
  EXPECT_EQ(state.minimum_loss, 6);
  EXPECT_EQ(state.last_event, 10);
  EXPECT_EQ(LearningRateAt(solver, 40, 1), 0.005f);
  EXPECT_EQ(LearningRateAt(solver, 40, 2), 0.00125f);
}

TEST(Rates, NeverFallInAnEndlessWindow) {
  SolverParameter solver = Policy("plateau");
  solver.add_plateau_winsize(INT32_MAX);
  PlateauState state;
  EXPECT_FALSE(FollowLoss(solver, 3, 1, &state));
  EXPECT_FALSE(FollowLoss(solver, 4, 2, &state));
}

TEST(Rates, CountStepsAsCaffeStoresThem) {
  EXPECT_EQ(RateStepAt(Policy("multistep"), 4), 0);
  EXPECT_EQ(RateStepAt(Policy("multistep"), 5), 1);
  EXPECT_EQ(RateStepAt(Policy("multistep"), 49), 3);
  EXPECT_EQ(RateStepAt(Policy("step"), 20), 2);
  EXPECT_EQ(RateStepAt(Policy("inv"), 20), 0);
}

}  // namespace
}  // namespace crema
