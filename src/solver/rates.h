// Learning-rate policies: the rate as a function of the iteration, Caffe's seven.
//   fixed      base_lr
//   step       base_lr * gamma ^ floor(iteration / stepsize)
//   exp        base_lr * gamma ^ iteration
//   inv        base_lr * (1 + gamma * iteration) ^ -power
//   multistep  base_lr * gamma ^ (number of stepvalues <= iteration)
//   poly       base_lr * (1 - iteration / max_iter) ^ power
//   sigmoid    base_lr / (1 + exp(-gamma * (iteration - stepsize)))
#ifndef CREMA_SOLVER_RATES_H_
#define CREMA_SOLVER_RATES_H_

#include <string>
#include <string_view>
#include <vector>

#include "crema/solver.pb.h"

namespace crema {

struct RatePolicy {
  std::string name;
  std::vector<std::string> fields;  // of SolverParameter, each required
  double (*rate)(const SolverParameter& solver, int iteration);
};

const std::vector<RatePolicy>& RatePolicies();
// Null if there is none of this name.
const RatePolicy* FindRatePolicy(std::string_view name);

// The solver must have passed CheckSolver.
float LearningRateAt(const SolverParameter& solver, int iteration);
// How many steps "step" and "multistep" have taken; 0 for other policies. SolverState.current_step.
int RateStepAt(const SolverParameter& solver, int iteration);

}  // namespace crema

#endif  // CREMA_SOLVER_RATES_H_
