#include "solver/rates.h"

#include <gtest/gtest.h>

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
}

TEST(Rates, CoversEveryPolicyOfTheTable) {
  std::vector<std::string> names;
  for (const RatePolicy& policy : RatePolicies()) names.push_back(policy.name);
  EXPECT_EQ(names, (std::vector<std::string>{"fixed", "step", "exp", "inv", "multistep", "poly", "sigmoid"}));
  EXPECT_EQ(FindRatePolicy("Fixed"), nullptr);
}

TEST(Rates, PolyIsZeroFromMaxIterOn) {
  EXPECT_EQ(LearningRateAt(Policy("poly"), 50), 0.0f);
  EXPECT_EQ(LearningRateAt(Policy("poly"), 60), 0.0f);
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
