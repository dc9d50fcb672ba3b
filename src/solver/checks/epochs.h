// Lengths of a training that are given in epochs (SolverParameter.in_epochs), in iterations.
#ifndef CREMA_SOLVER_CHECKS_EPOCHS_H_
#define CREMA_SOLVER_CHECKS_EPOCHS_H_

#include <cstdint>
#include <vector>

#include "crema/files.h"
#include "crema/solver.h"
#include "crema/solver.pb.h"

namespace crema {

// How far a run has come that goes on from a snapshot. Plain data, so that processes can be told.
struct EpochProgress {
  int iteration = 0;
  uint64_t records = 0;        // that were read
  uint64_t epoch_records = 0;  // of an epoch; 0: not known
  // Where an epoch had other records before: the epochs done, and the records read, when that changed last.
  double epochs_before = 0;
  uint64_t records_before = 0;
};

// `position`: of a layer of the train net.
EpochProgress ProgressOf(int iteration, const DataPosition& position);

// `epoch_records`: for a progress that does not know.
double EpochsDone(const EpochProgress& progress, uint64_t epoch_records);

struct EpochLengths {
  double train = 1;                // iterations of an epoch of the train net
  std::vector<double> tests = {};  // batches of an epoch of each test net; where there are fewer, 1 for the others
  // Of a run that goes on with other epochs: those until this iteration, which were shorter or longer.
  int from_iteration = 0;
  double from_epoch = 0;
};

// What in_epochs gets wrong by itself, and with the fields that it stands for.
void CheckEpochs(const SolverFile& file, Diagnostics* found);

// Without in_epochs, whose lengths its fields have instead: to the nearest iteration, test_iter upwards, at least 1.
// Where epochs are others from an iteration on, base_lr of "poly" and warmup_iter of "cosine" are such that the rate
// goes on from its place in max_iter epochs; before the first iteration a cosine cannot begin. Throws UserError where a
// field cannot hold a length, or says no length of its own for later epochs.
SolverFile WithLengths(const SolverFile& file, const EpochLengths& lengths);

// Whether in_epochs has test_iter: SolverOptions.tests_from_the_first.
bool TestsFromTheFirst(const SolverFile& file);

// Of the snapshot that options name, where the file has in_epochs. Throws UserError where that cannot be used.
EpochProgress ReadEpochProgress(const SolverFile& file, const SolverOptions& options);

// The file in iterations, after the data of its nets, of which `ranks` take batch_size records each in an iteration;
// options.observers are told how long an epoch is. Where an iteration took another number of records so far, what is
// left of a length is counted from the records that were read. A file without in_epochs, or with mistakes that the
// Solver reports, as it is. Throws UserError, also where it is not known how long an epoch is.
SolverFile InIterations(const SolverFile& file, const SolverOptions& options, int ranks,
                        const EpochProgress& progress = {});

}  // namespace crema

#endif  // CREMA_SOLVER_CHECKS_EPOCHS_H_
