// Learning-rate policies: the rate as a function of the iteration. The first seven are Caffe's; solver.proto says where
// the others come from. In a warm-up, which comes before any of them, the rate rises to base_lr; min_lr is the lowest.
//   fixed      base_lr
//   step       base_lr * gamma ^ floor(iteration / stepsize)
//   exp        base_lr * gamma ^ iteration
//   inv        base_lr * (1 + gamma * iteration) ^ -power
//   multistep  base_lr * gamma ^ (number of stepvalues <= iteration)
//   poly       min_lr + (base_lr - min_lr) * (1 - iteration / max_iter) ^ power
//   sigmoid    base_lr / (1 + exp(-gamma * (iteration - stepsize)))
//   cosine     min_lr + (base_lr - min_lr) * (1 + cos(pi * (iteration - warm-up) / (max_iter - warm-up))) / 2
//   multifixed the stagelr of the first stageiter that is at least the iteration; then the last
//   plateau    base_lr * gamma ^ (drops where the loss stayed as it was)
#ifndef CREMA_SOLVER_RULES_RATES_H_
#define CREMA_SOLVER_RULES_RATES_H_

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "crema/solver.pb.h"

namespace crema {

struct RatePolicy {
  std::string name;
  std::vector<std::string> fields;  // of SolverParameter, each required
  double (*rate)(const SolverParameter& solver, int iteration, int step);
};

// What "plateau" goes by, beside the settings.
struct PlateauState {
  float minimum_loss = std::numeric_limits<float>::max();
  int32_t last_event = 0;  // iteration of the last minimum or drop
  int32_t drops = 0;
};

// Iterations of the warm-up, and the rate that it begins with.
struct WarmUp {
  int iterations = 0;
  float start = 0;
};

const std::vector<RatePolicy>& RatePolicies();
// Null if there is none of this name.
const RatePolicy* FindRatePolicy(std::string_view name);

// The solver must have passed CheckSolver. drops: those of "plateau".
float LearningRateAt(const SolverParameter& solver, int iteration, int drops = 0);
WarmUp WarmUpOf(const SolverParameter& solver);
// By momentum_policy; `rate`: of that iteration.
float MomentumAt(const SolverParameter& solver, int iteration, float rate);
// How many steps "step" and "multistep" have taken; 0 for other policies. SolverState.current_step.
int RateStepAt(const SolverParameter& solver, int iteration);
// Of "plateau": takes in the smoothed loss of an iteration; returns whether the rate drops behind it.
bool FollowLoss(const SolverParameter& solver, int iteration, float loss, PlateauState* state);

}  // namespace crema

#endif  // CREMA_SOLVER_RULES_RATES_H_
