// What a coordinator sends to those who train for it.
#ifndef CREMA_DISTRIBUTED_TRAINING_SOLVER_FOR_WORKERS_H_
#define CREMA_DISTRIBUTED_TRAINING_SOLVER_FOR_WORKERS_H_

#include "crema/files.h"
#include "crema/solver.h"

namespace crema {

// The file's solver with its train net inside, of which only the layers that are in the nets of the coordinator are
// left, and without what only the coordinator does or knows: tests, but for those of tournaments, snapshots, display,
// the seed, security, and how many workers there are. Workers outlive a coordinator that is started again with another
// solver of which this is the same.
SolverParameter SolverForWorkers(const SolverFile& file, const SolverOptions& options, Solver& coordinator);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_TRAINING_SOLVER_FOR_WORKERS_H_
