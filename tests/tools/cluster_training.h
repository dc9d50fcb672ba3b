// Tiny trainings by several processes, and what they leave behind.
#ifndef CREMA_TESTS_TOOLS_CLUSTER_TRAINING_H_
#define CREMA_TESTS_TOOLS_CLUSTER_TRAINING_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "crema/solver.pb.h"
#include "tools/program.h"
#include "tools/tiny_training.h"

namespace crema::testing_tools {

// A `distributed` block with timeouts of seconds.
std::string Distributed(const std::string& more);

// Settings: a worker that says nothing for so long is out.
inline const std::string kQuick = "dead_ms: 600 ";
// Parameters in shards, averaged every five steps.
inline const std::string kShardedSteps = "topology: SHARDED local_steps: 5 ";
// Of a solver.
inline const std::string kAdam = "type: \"Adam\" momentum2: 0.99\n";

// A folder with a tiny training, and another for temporary files in it.
class ClusterFolder : public ScratchFolder {
 public:
  // `settings` go into the `distributed` block; those of `training.more` into the solver file.
  explicit ClusterFolder(const std::string& settings, TinyTraining training = {});
  // No process that was started here may be left, and no temporary file.
  ~ClusterFolder();

  Setting setting() const;
  // train with this folder's solver file.
  std::unique_ptr<Running> Start(const std::vector<std::string>& flags = {}) const;
  Finished Run(const std::vector<std::string>& flags = {}) const;
  // ... as a coordinator that listens at a port of its own; where is known as soon as it does.
  std::unique_ptr<Running> Coordinate(int expected, std::string* endpoint,
                                      const std::vector<std::string>& flags = {}) const;
  // train --join in this folder.
  std::unique_ptr<Running> Join(const std::string& endpoint, const std::string& name,
                                const std::vector<std::string>& flags = {}) const;
  // crema cluster REQUEST.
  Finished Ask(const std::string& request, const std::string& endpoint,
               const std::vector<std::string>& flags = {}) const;

  std::string Model(int iteration) const;
  SolverState State(int iteration) const;
  // ... but for what is drawn.
  std::string StateBytes(int iteration) const;
  // Iteration of the newest snapshot; -1: there is none.
  int NewestState() const;
};

// Puts batch normalisation behind the first convolution.
void AddBatchNorm(const ClusterFolder& folder);

// Until a coordinator has displayed so many more iterations; false if it ended before.
bool GoesOn(Running& coordinator, int displays = 2);

// A coordinator with its workers, named a, b, c and so on, that --join.
struct Cluster {
  Cluster(const ClusterFolder& where, int count, const std::vector<std::string>& worker_flags = {});

  Running& Join(const std::string& name, const std::vector<std::string>& flags = {});
  void Kill(size_t index);
  void KillCoordinator();
  // One that listens at the same port and goes on.
  void StartSuccessor(int expected);
  bool GoesOn(int displays = 2);
  // To the end, where all is well. Fills `logs`, of the workers.
  Finished Finish();

  const ClusterFolder& folder;
  std::string endpoint;
  std::unique_ptr<Running> coordinator;
  std::vector<std::unique_ptr<Running>> workers;
  std::vector<std::string> logs;
};

// Trains `whole` to its end, and `folder` with three workers that are all killed when its coordinator says `when`, then
// with three others to the end: the coordinator goes back to what it kept, and nothing is lost for good. False where
// they were gone in a round that began with the coordinator having the parameters.
bool GoesBackWithoutWorkers(const ClusterFolder& whole, const ClusterFolder& folder, const std::string& when,
                            int iteration);

// The endpoint of a coordinator's last "Listening for workers at ...".
std::string EndpointOf(const std::string& log);

// Processes other than this one whose working directory is the folder, and their children's.
std::vector<pid_t> ProcessesIn(const std::filesystem::path& folder);
// One of the workers that this coordinator started; 0: there is none.
pid_t LocalWorkerOf(const ClusterFolder& folder, const Running& coordinator);
// Waits for what such processes may need to end; what is left then.
std::vector<pid_t> ProcessesLeftIn(const std::filesystem::path& folder);

// What a coordinator leaves that dies when a round is in its journal and nobody was told: the next round of those who
// made the last one, all with leases of `steps`. No process may have the journal open.
void CommitInSecret(const ClusterFolder& folder, uint64_t steps);

// Rounds that a worker says in its log to have trained, whether they counted or not; -1: it does not.
int RoundsTrained(const std::string& log);

// What a journal tells, with what the last snapshot says of it.
struct JournalAudit {
  std::string mistake;     // empty: every step was used once, and what was void is used again
  uint64_t starts = 0;     // of coordinators, and rollbacks
  uint64_t version = 0;    // rounds that count
  uint64_t iteration = 0;  // that they lead to
  uint64_t used = 0;       // steps in them
  uint64_t committed = 0;  // records of commits, void ones among them
};

// Of a training that has ended with a snapshot of `iteration`.
JournalAudit AuditJournal(const ClusterFolder& folder, int iteration);

}  // namespace crema::testing_tools

#endif  // CREMA_TESTS_TOOLS_CLUSTER_TRAINING_H_
