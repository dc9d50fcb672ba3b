// `train` on several machines: its flags, and the two programs that it then is.
#ifndef CREMA_TOOLS_CLUSTER_FLAGS_H_
#define CREMA_TOOLS_CLUSTER_FLAGS_H_

#include <vector>

#include "crema/files.h"
#include "crema/solver.h"
#include "tools/command_line.h"

namespace crema::tools {

// --workers, --coordinate, --expect, --join and what belongs to them.
std::vector<Flag> ClusterFlags();
// --secret_key, --server_key and --allow_plaintext: of those who connect to a coordinator.
std::vector<Flag> KeyFlags();
DistributedParameter::Security SecurityOf();

// Writes what the flags say into the solver's `distributed` block; warns where the block then has no effect. Throws
// UserError for flags that do not go together.
void ApplyClusterFlags(const CommandLine& line, SolverFile* file);

// Both return the exit code.
int RunCoordinator(const CommandLine& line, const SolverFile& file, SolverOptions options);
int RunWorker(const CommandLine& line);

}  // namespace crema::tools

#endif  // CREMA_TOOLS_CLUSTER_FLAGS_H_
