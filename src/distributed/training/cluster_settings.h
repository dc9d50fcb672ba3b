// From the solver's `distributed` block to what the protocol is told.
#ifndef CREMA_DISTRIBUTED_TRAINING_CLUSTER_SETTINGS_H_
#define CREMA_DISTRIBUTED_TRAINING_CLUSTER_SETTINGS_H_

#include <vector>

#include "crema/files.h"
#include "distributed/protocol/coordinator_options.h"
#include "distributed/protocol/worker.h"

namespace crema {

// Warnings about settings that have no effect. Throws UserError with every mistake.
std::vector<Diagnostic> CheckDistributed(const SolverFile& file);

// Throws UserError where mode, topology and overlap do not go together, of settings that came from elsewhere.
void CheckExchange(const SolverFile& file);

// How many workers the first round waits for, and how few may go on.
int ExpectedWorkers(const DistributedParameter& settings);
int MinWorkers(const DistributedParameter& settings);

TransferOptions TransferOf(const DistributedParameter& settings);
WorkerTiming TimingOf(const DistributedParameter& settings);
// Without what Welcome says, job, and most_push_bytes. The settings must have passed CheckDistributed.
CoordinatorOptions ProtocolOf(const SolverParameter& solver);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_TRAINING_CLUSTER_SETTINGS_H_
