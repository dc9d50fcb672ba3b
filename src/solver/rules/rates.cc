#include "solver/rules/rates.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace crema {

namespace {

double Fixed(const SolverParameter& solver, int, int) { return solver.base_lr(); }

double Stepped(const SolverParameter& solver, int, int step) {
  return solver.base_lr() * std::pow(solver.gamma(), step);
}

double Exp(const SolverParameter& solver, int iteration, int) {
  return solver.base_lr() * std::pow(double{solver.gamma()}, iteration);
}

double Inv(const SolverParameter& solver, int iteration, int) {
  return solver.base_lr() * std::pow(1.0 + double{solver.gamma()} * iteration, -double{solver.power()});
}

// From base_lr to min_lr, as `left` goes from 1 to 0.
double Between(const SolverParameter& solver, double left) {
  return solver.min_lr() + (double{solver.base_lr()} - solver.min_lr()) * left;
}

double Poly(const SolverParameter& solver, int iteration, int) {
  const double left = std::max(0.0, 1.0 - static_cast<double>(iteration) / solver.max_iter());
  return Between(solver, std::pow(left, double{solver.power()}));
}

double Sigmoid(const SolverParameter& solver, int iteration, int) {
  const double distance = static_cast<double>(iteration) - solver.stepsize();
  return solver.base_lr() / (1.0 + std::exp(-double{solver.gamma()} * distance));
}

double Cosine(const SolverParameter& solver, int iteration, int) {
  const int warm_up = WarmUpOf(solver).iterations;
  if (iteration >= solver.max_iter()) return solver.min_lr();
  const double done = static_cast<double>(iteration - warm_up) / (solver.max_iter() - warm_up);
  return Between(solver, (1.0 + std::cos(std::numbers::pi * done)) / 2);
}

double MultiFixed(const SolverParameter& solver, int iteration, int) {
  const auto& last = solver.stageiter();
  const auto stage = std::lower_bound(last.begin(), last.end(), iteration) - last.begin();
  return solver.stagelr(std::min(static_cast<int>(stage), solver.stagelr_size() - 1));
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
      {"cosine", {}, Cosine},
      {"multifixed", {"stagelr", "stageiter"}, MultiFixed},
      {"plateau", {"gamma", "plateau_winsize"}, Stepped},
  };
  return policies;
}

const RatePolicy* FindRatePolicy(std::string_view name) {
  for (const RatePolicy& policy : RatePolicies()) {
    if (policy.name == name) return &policy;
  }
  return nullptr;
}

WarmUp WarmUpOf(const SolverParameter& solver) {
  if (solver.warmup_iter() > 0) return {solver.warmup_iter(), solver.warmup_start_lr()};
  return {solver.rampup_interval(), solver.rampup_lr()};
}

float LearningRateAt(const SolverParameter& solver, int iteration, int drops) {
  const RatePolicy* policy = FindRatePolicy(solver.lr_policy());
  CREMA_CHECK(policy != nullptr) << "unchecked lr_policy " << solver.lr_policy();
  const WarmUp warm_up = WarmUpOf(solver);
  double rate = 0;
  if (iteration < warm_up.iterations) {
    const double done = static_cast<double>(iteration) / warm_up.iterations;
    rate = warm_up.start + (double{solver.base_lr()} - warm_up.start) * std::pow(done, double{solver.warmup_power()});
  } else {
    rate = policy->rate(solver, iteration, solver.lr_policy() == "plateau" ? drops : RateStepAt(solver, iteration));
  }
  return std::max(static_cast<float>(rate), solver.min_lr());
}

float MomentumAt(const SolverParameter& solver, int iteration, float rate) {
  if (solver.momentum_policy() == "opt") {
    const double root = 1 - 0.5 * std::sqrt(double{rate});
    const double best = root * root, most = solver.has_max_momentum() ? solver.max_momentum() : 1;
    return static_cast<float>(std::min(best, most));
  }
  if (solver.momentum_policy() != "poly") return solver.momentum();
  const double done = std::min(1.0, static_cast<double>(iteration) / solver.max_iter());
  const double risen = std::pow(done, double{solver.momentum_power()});
  return static_cast<float>(solver.momentum() + (double{solver.max_momentum()} - solver.momentum()) * risen);
}

int RateStepAt(const SolverParameter& solver, int iteration) {
  if (solver.lr_policy() == "step") return iteration / solver.stepsize();
  if (solver.lr_policy() != "multistep") return 0;
  const auto& values = solver.stepvalue();
  return static_cast<int>(std::upper_bound(values.begin(), values.end(), iteration) - values.begin());
}

bool FollowLoss(const SolverParameter& solver, int iteration, float loss, PlateauState* state) {
  if (iteration < WarmUpOf(solver).iterations) return false;
  if (loss < state->minimum_loss) {
    state->minimum_loss = loss;
    state->last_event = iteration;
  }
  const bool drops = state->drops < solver.plateau_winsize_size() &&
                     iteration - state->last_event >= solver.plateau_winsize(state->drops);
  if (drops) {
    ++state->drops;
    state->last_event = iteration;
  }
  return drops;
}

}  // namespace crema
