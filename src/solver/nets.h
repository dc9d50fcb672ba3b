// The nets a solver file names: which, in which state, found where.
#ifndef CREMA_SOLVER_NETS_H_
#define CREMA_SOLVER_NETS_H_

#include <string>
#include <vector>

#include "crema/files.h"
#include "crema/net.h"
#include "crema/solver.h"

namespace crema {

// The folders relative paths of a solver are looked for in after the working directory.
std::vector<std::string> SearchFolders(const SolverOptions& options);

// What the names of a run's snapshots begin with; empty where neither snapshot_prefix nor the solver's path is known.
std::string SnapshotPrefix(const SolverParameter& param, const SolverOptions& options);

// An error for each net file that the solver names and that is nowhere, where it was looked for.
std::vector<Diagnostic> MissingNets(const SolverFile& file, const SolverOptions& options);

// The files that training begins from, so that none is written over: the solver, its nets, weights and a snapshot that
// is named. Those that are not there, or no regular files, are left out.
std::vector<std::string> FilesRead(const SolverParameter& solver, const SolverOptions& options);

struct NetPlan {
  NetFile file;  // without `state`, which is merged into the options
  NetOptions options;
};

struct NetPlans {
  NetPlan train;
  std::vector<NetPlan> tests;  // Caffe's order: test_net_param, test_net, then copies of net; one per test_iter; none
                               // of a worker but with mode TOURNAMENT
  bool shows_sizes = false;    // debug_info, which makes the train net keep all
  std::vector<Diagnostic> warnings;
};

// Reads the nets of a solver that passed CheckSolver. States: the phase, then the net file's, then train_state or
// test_state. Throws UserError.
NetPlans PlanNets(const SolverFile& file, const SolverOptions& options, const Context& context);

}  // namespace crema

#endif  // CREMA_SOLVER_NETS_H_
