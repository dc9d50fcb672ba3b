// `train` as one rank of those that mpirun or srun started.
#ifndef CREMA_TOOLS_RANK_H_
#define CREMA_TOOLS_RANK_H_

#include <functional>

#include "crema/files.h"
#include "crema/solver.h"
#include "tools/command_line.h"
#include "tools/training_console.h"

namespace crema::tools {

// Writes what --engine says into the solver's `distributed` block, and refuses flags that do not go with engine MPI.
void ApplyEngineFlag(const CommandLine& line, SolverFile* file);

// Trains by distributed { engine: MPI }; returns the exit code. `train` is called with the options of this rank.
int RunRank(const CommandLine& line, const SolverFile& file, SolverOptions options, TrainingConsole& console,
            const std::function<int(const SolverOptions& options)>& train);

// Says that each of several processes that a launcher started trains for itself, where that is so.
void WarnOfLaunchedAlone();

}  // namespace crema::tools

#endif  // CREMA_TOOLS_RANK_H_
