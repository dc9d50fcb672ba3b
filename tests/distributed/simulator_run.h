// One simulation (simulator.h).
#ifndef CREMA_TESTS_DISTRIBUTED_SIMULATOR_RUN_H_
#define CREMA_TESTS_DISTRIBUTED_SIMULATOR_RUN_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "distributed/simulated_network.h"
#include "distributed/simulator.h"
#include "distributed/simulator_audit.h"
#include "distributed/simulator_dice.h"

namespace crema {

class Simulation : private Journal {
 public:
  explicit Simulation(const SimulatorOptions& options);
  SimulatorReport Run();

 private:
  enum class What {
    kArrival,
    kWorkerTick,
    kBuilt,
    kMaking,
    kTrained,
    kStartWorker,
    kCoordinatorTick,
    kStartCoordinator,
    kSnapshot,
    kFault,
    kHealed
  };
  struct Event {
    Milliseconds at;
    uint64_t order;
    What what;
    int machine;
    uint64_t token;  // a flight, a process, a fault
    bool operator>(const Event& other) const { return at != other.at ? at > other.at : order > other.order; }
  };
  struct Machine {
    std::unique_ptr<SimulatedWorkerMath> math;
    std::unique_ptr<Worker> worker;  // null: no process runs
    uint64_t process = 0;            // how many it had
    Milliseconds began = 0, paused_until = 0, tick = -1;
    std::optional<uint64_t> place;  // of this process, once it joined
    std::optional<TrainTask> task;
    Milliseconds task_began = 0, task_ends = 0;
    bool fails = false;                           // the task
    std::shared_ptr<Bytes> making;                // its values, where others get them as they come
    bool restarts = false;                        // a process is about to start
    bool ended = false;                           // the last process ended by itself
    bool leaving = false;                         // as it was told to
    uint64_t epoch = 0, version = 0, digest = 0;  // seen last
    // By faults, until then; by ones that last.
    Milliseconds disturbed = 0, unsteady = 0;
  };
  struct Snapshot {
    ClusterState state;
    Payload parameters;
    uint64_t iteration = 0;
  };
  // The coordinator's process dies here.
  struct Crash {};

  // simulator.cc
  void Handle(const Event& event);
  void At(Milliseconds at, What what, int machine = 0, uint64_t token = 0);
  void Arrive(const Event& event);
  void AfterWorker(int machine);
  void TickWorker(int machine);
  void BeginTask(int machine, TrainTask task);
  Payload ValuesOf(const Machine& machine) const;
  void MakeMore(Machine& machine, uint64_t there_from);
  void EndTask(Machine& machine);
  void StartWorker(int machine);
  void Restart(int machine, Milliseconds after);
  void Send(Flight flight, const std::string& route = {});
  void Fly(Flight flight, Milliseconds at);
  bool Finished() const;
  void Log(const std::string& text);

  // simulator_coordinator.cc
  void Write(const JournalRecord& record) override;
  void WithCoordinator(const std::function<void(Coordinator&)>& call);
  void AfterCoordinator();
  void OnClusterEvent(ClusterEvent event);
  void StartCoordinator();
  void EndCoordinator();
  void CheckClocks(const JournalRecord* record);
  void CheckLostRounds(const JournalRecord::Start& start) const;
  void CheckStalled(const std::string& text) const;
  void CheckSilent(const std::string& text) const;
  void CheckTold(int machine);

  // simulator_faults.cc
  void Apply(const Fault& fault);
  void KillWorker(int machine, Milliseconds back);
  void KillCoordinator(Milliseconds back);
  void Heal();

  Simulated kind() const {
    return options_.gradients                ? Simulated::kGradients
           : options_.coordinator.stale      ? Simulated::kDifferences
           : options_.coordinator.tournament ? Simulated::kApart
                                             : Simulated::kParameters;
  }

  const SimulatorOptions options_;
  SimulatorReport report_;
  Audit audit_;
  SimulatedNetwork network_;
  Dice dice_;
  Milliseconds now_ = 0;
  uint64_t order_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  std::vector<Flight> flights_;
  std::vector<uint64_t> free_flights_;
  std::vector<Machine> machines_;

  std::unique_ptr<SimulatedRoundMath> math_;
  std::unique_ptr<Coordinator> coordinator_;
  uint64_t process_ = 0;  // of the coordinator: how many there were
  Milliseconds paused_since_ = 0, paused_until_ = 0, tick_ = -1, started_ = 0, disturbed_ = 0, journal_fails_until_ = 0,
               crash_back_ = 0;
  uint64_t epoch_ = 0;  // of the last coordinator that could speak
  int crash_ = 0;       // Fault::CrashPoint that is due
  bool over_ = false;   // nobody starts the coordinator again
  bool healed_ = false, recovering_ = false;
  std::vector<JournalRecord> journal_;
  Snapshot snapshot_, writing_;
  bool is_writing_ = false;
  std::deque<std::string> log_;
};

}  // namespace crema

#endif  // CREMA_TESTS_DISTRIBUTED_SIMULATOR_RUN_H_
