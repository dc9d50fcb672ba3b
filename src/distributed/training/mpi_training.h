// Training by the processes that an MPI launcher started: what its settings may be, and whether all run the same.
#ifndef CREMA_DISTRIBUTED_TRAINING_MPI_TRAINING_H_
#define CREMA_DISTRIBUTED_TRAINING_MPI_TRAINING_H_

#include <string>
#include <vector>

#include "crema/files.h"
#include "crema/solver.h"
#include "device/processes.h"

namespace crema {

// Whether the solver's `distributed` block asks for it.
bool UsesMpi(const SolverParameter& solver);

// Warnings about settings that have no effect with engine MPI. Throws UserError for modes that it does not have.
std::vector<Diagnostic> CheckMpi(const SolverFile& file);

// Of what must be the same in all ranks. Texts are compared by what they say, line by line.
struct Fact {
  std::string name;  // for people: "solver file"
  std::string text;
};

// Of what is trained, before any net is built: crema's version, the kind of device, the solver, the net, the records
// that it reads. Throws UserError where the net cannot be read.
std::vector<Fact> FactsOf(const SolverFile& file, const SolverOptions& options, const std::string& version);

// Throws UserError, in all ranks, where one has another fact than the first rank; names it and the first difference.
// All ranks must call it.
void CheckAlike(Processes& processes, const std::vector<Fact>& facts);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_TRAINING_MPI_TRAINING_H_
