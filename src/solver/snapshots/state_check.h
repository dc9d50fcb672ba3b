// Whether a .solverstate can be what a run wrote: its checksum does not tell who computed it, and Caffe writes none.
#ifndef CREMA_SOLVER_SNAPSHOTS_STATE_CHECK_H_
#define CREMA_SOLVER_SNAPSHOTS_STATE_CHECK_H_

#include <string>

#include "crema/solver.pb.h"

namespace crema {

// What no run writes: a number that is NaN anywhere, iterations below 0 or behind that of the state, positions in data
// that no run reaches. Empty where there is nothing of that kind.
std::string DamageOf(const SolverState& state);

}  // namespace crema

#endif  // CREMA_SOLVER_SNAPSHOTS_STATE_CHECK_H_
