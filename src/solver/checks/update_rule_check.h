// The part of CheckSolver that is about how parameters change.
#ifndef CREMA_SOLVER_CHECKS_UPDATE_RULE_CHECK_H_
#define CREMA_SOLVER_CHECKS_UPDATE_RULE_CHECK_H_

#include "solver/checks/solver_fields.h"

namespace crema {

// type and what its update reads, larc, momentum_policy, weight decay and clipping.
void CheckUpdateRule(const SolverParameter& solver, SolverFields& fields);

}  // namespace crema

#endif  // CREMA_SOLVER_CHECKS_UPDATE_RULE_CHECK_H_
