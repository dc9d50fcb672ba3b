// The coordinator's program: its solver tests, logs and writes snapshots of what the service commits.
#ifndef CREMA_DISTRIBUTED_TRAINING_COORDINATION_H_
#define CREMA_DISTRIBUTED_TRAINING_COORDINATION_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "distributed/averaging/averaging.h"
#include "distributed/journal/journal_file.h"
#include "distributed/security/authentication.h"
#include "distributed/security/security.h"
#include "distributed/sockets/coordinator_service.h"
#include "distributed/sockets/private_folder.h"
#include "distributed/training/coordinate.h"
#include "distributed/training/local_workers.h"
#include "distributed/training/solver_layout.h"

namespace crema {

// One call of Coordinate.
class Coordination {
 public:
  Coordination(const SolverFile& file, SolverOptions options, const CoordinateOptions& cluster);
  TrainingResult Run();

 private:
  // The first that is bound, where there are local workers.
  static constexpr size_t kLocalSocket = 0;

  // coordinate.cc: how it begins and ends
  CoordinatorStart StartingPoint();
  std::unique_ptr<Averaging> MakeMath(const Payload& state);
  std::unique_ptr<ServerSockets> Listen();
  std::vector<std::string> Folders() const;
  void TellWorkersOfEnd(const std::exception& error);
  // Takes all that was committed, as far as the coordinator has it. Whether that is behind the last snapshot in the
  // same iteration, which is to be kept, too.
  bool TakeEnd();

  // coordination_workers.cc: those of this machine
  void AllowSockets();
  const std::string& LocalEndpoint();
  void StartWorkers();

  // coordination.cc: what happens meanwhile
  void Serve();
  void Tell(const std::string& text, int workers, bool warning);
  void Prepare(ClusterEvent& event);
  // What follows from an event. kEnd: at once, since tests became no better; no round is open then.
  enum class After { kGoOn, kStop, kEnd };
  // Under solver_mutex_.
  After Handle(const ClusterEvent& event);
  After OnCommitted(const ClusterEvent& event);
  After Test();
  // Not under it: the service may hold its own lock while it waits for the solver.
  void Do(After after);
  void ShortenJournal();
  void SumUp();
  void PutIntoNet(const ClusterEvent& event);
  bool DueAt(uint64_t iteration, int interval) const {
    return interval > 0 && iteration % static_cast<uint64_t>(interval) == 0;
  }
  void TakeRequests();
  // What the solver is asked to do, also by `crema cluster` while it waits for room at the end.
  SolverAction RequestedAction();
  void TellLines();
  void Stop();
  void Tend();
  void TendLocal();

  const SolverFile& file_;
  const DistributedParameter& settings_;
  const std::vector<Diagnostic> warnings_;
  const CoordinateOptions& cluster_;
  const SolverOptions options_;
  // Whether rounds change the net here: gradients come, and this updates.
  const bool updates_net_;
  // Whether no round is opened while the net is tested or written.
  const bool holds_;
  bool higher_wins_ = true;  // of a tournament
  Solver solver_;
  TrainingSteps steps_;
  const StateLayout layout_;
  uint64_t job_ = 0;
  std::string rolled_back_;  // what is lost for good, as one sentence

  std::unique_ptr<JournalFile> journal_;
  std::mutex solver_mutex_;                     // the service's thread uses the solver, too, where updates_net_
  std::vector<float> history_before_, values_;  // of a round of gradients, by the service's thread
  std::unique_ptr<Averaging> math_;
  std::unique_ptr<PrivateFolder> folder_;  // of local workers
  zmq::context_t context_;                 // of worker threads, too
  std::mutex lines_mutex_;
  std::vector<std::string> lines_;  // of the authenticator, under lines_mutex_
  std::unique_ptr<Authenticator> authenticator_;
  std::unique_ptr<CoordinatorService> service_;
  std::unique_ptr<LocalWorkers> local_;
  std::string local_endpoint_;
  Protection protection_ = Protection::kNone;

  ClusterState cluster_state_;                        // of what is in the net
  uint64_t saved_iteration_ = 0, saved_version_ = 0;  // of the last snapshot
  uint64_t shorten_to_ = 0;                           // the version that the journal is to begin with; 0: as it is
  bool snapshot_wanted_ = false, stopping_ = false;
  bool waits_for_room_ = false;  // training being over
  Milliseconds warned_plaintext_ = 0;
  // Seconds of the service's clock: of the last commit, the last one that brought an iteration, and the last display.
  double last_commit_ = 0, last_step_ = 0, last_display_ = 0;
  int workers_ = 0, most_workers_ = 0;
  uint64_t rounds_ = 0, rounds_late_ = 0;
  int most_contributions_ = 0;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_TRAINING_COORDINATION_H_
