#include "solver/rates.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace crema {

namespace {

double Fixed(const SolverParameter& solver, int) { return solver.base_lr(); }

double Stepped(const SolverParameter& solver, int iteration) {
  return solver.base_lr() * std::pow(solver.gamma(), RateStepAt(solver, iteration));
}

double Exp(const SolverParameter& solver, int iteration) {
  return solver.base_lr() * std::pow(double{solver.gamma()}, iteration);
}

double Inv(const SolverParameter& solver, int iteration) {
  return solver.base_lr() * std::pow(1.0 + double{solver.gamma()} * iteration, -double{solver.power()});
}

double Poly(const SolverParameter& solver, int iteration) {
  const double left = std::max(0.0, 1.0 - static_cast<double>(iteration) / solver.max_iter());
  return solver.base_lr() * std::pow(left, double{solver.power()});
}

double Sigmoid(const SolverParameter& solver, int iteration) {
  const double distance = static_cast<double>(iteration) - solver.stepsize();
  return solver.base_lr() / (1.0 + std::exp(-double{solver.gamma()} * distance));
}

}  // namespace

const std::vector<RatePolicy>& RatePolicies() {
  static const std::vector<RatePolicy> policies = {
      {"fixed", {}, Fixed},
      {"step", {"gamma", "stepsize"}, Stepped},
      {"exp", {"gamma"}, Exp},
      {"inv", {"gamma", "power"}, Inv},
      {"multistep", {"gamma", "stepvalue"}, Stepped},
      {"poly", {"power"}, Poly},
      {"sigmoid", {"gamma", "stepsize"}, Sigmoid},
  };
  return policies;
}

const RatePolicy* FindRatePolicy(std::string_view name) {
  for (const RatePolicy& policy : RatePolicies()) {
    if (policy.name == name) return &policy;
  }
  return nullptr;
}

float LearningRateAt(const SolverParameter& solver, int iteration) {
  const RatePolicy* policy = FindRatePolicy(solver.lr_policy());
  CREMA_CHECK(policy != nullptr) << "unchecked lr_policy " << solver.lr_policy();
  return static_cast<float>(policy->rate(solver, iteration));
}

int RateStepAt(const SolverParameter& solver, int iteration) {
  if (solver.lr_policy() == "step") return iteration / solver.stepsize();
  if (solver.lr_policy() != "multistep") return 0;
  const auto& values = solver.stepvalue();
  return static_cast<int>(std::upper_bound(values.begin(), values.end(), iteration) - values.begin());
}

}  // namespace crema
