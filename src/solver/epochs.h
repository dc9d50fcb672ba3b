// Lengths of a training that are given in epochs (SolverParameter.in_epochs), in iterations.
#ifndef CREMA_SOLVER_EPOCHS_H_
#define CREMA_SOLVER_EPOCHS_H_

#include <cstdint>
#include <vector>

#include "crema/files.h"
#include "crema/solver.h"

namespace crema {

struct EpochLengths {
  int64_t train = 1;               // iterations of an epoch of the train net
  std::vector<double> tests = {};  // batches of an epoch of each test net; where there are fewer, 1 for the others
};

// What in_epochs gets wrong by itself, and with the fields that it stands for.
void CheckEpochs(const SolverFile& file, Diagnostics* found);

// Without in_epochs, whose lengths its fields have instead: to the nearest iteration, test_iter upwards, at least 1.
// Throws UserError where a field cannot hold that.
SolverFile WithLengths(const SolverFile& file, const EpochLengths& lengths);

// The file in iterations, after the data of its nets, of which `ranks` take batch_size records each in an iteration;
// options.observers are told how long an epoch is. A file without in_epochs, or with mistakes that the Solver reports,
// as it is. Throws UserError, also where it is not known how long an epoch is.
SolverFile InIterations(const SolverFile& file, const SolverOptions& options, int ranks);

}  // namespace crema

#endif  // CREMA_SOLVER_EPOCHS_H_
