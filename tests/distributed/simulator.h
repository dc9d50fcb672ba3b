// Coordinators and workers of the protocol on machines that do not exist, with a clock and a network that do not exist,
// under faults: all from one seed, so that what went wrong once goes wrong again.
#ifndef CREMA_TESTS_DISTRIBUTED_SIMULATOR_H_
#define CREMA_TESTS_DISTRIBUTED_SIMULATOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "distributed/protocol/coordinator.h"
#include "distributed/protocol/worker.h"

namespace crema {

// Something that goes wrong, or that somebody wants, at a time and for a time.
struct Fault {
  enum class Kind {
    kKillWorkers,      // fresh processes start `lasts` later; never where that is 0
    kPauseWorkers,     // SIGSTOP, and SIGCONT `lasts` later
    kKillCoordinator,  // restarted `lasts` later; `detail` CrashPoint
    kPauseCoordinator,
    kBreakLinks,    // what is on its way is lost; `detail` bits: 1 control, 2 bulk
    kCut,           // `detail` bits: 1 to workers, 2 from workers; 4 delayed instead of lost; 8 bulk lane only
    kJournalFails,  // the disk is full
    kLeave,         // a worker is told to leave; a fresh process starts `lasts` later
    kDrain,
    kStop,
    kHang,   // training makes no progress, while the worker lives
    kSplit,  // these workers and others do not reach each other, but all the coordinator
  };
  enum CrashPoint { kNow, kBeforeJournal, kAfterJournal, kWhileSending };

  Kind kind = Kind::kKillWorkers;
  Milliseconds at = 0, lasts = 0;
  int first = 0, count = 1;  // machines [first, first + count)
  int detail = 0;
};

struct SimulatorOptions {
  uint64_t seed = 0;
  int machines = 1;               // each runs one worker at a time
  Milliseconds start_spread = 0;  // workers start within this time
  CoordinatorOptions coordinator;
  WorkerTiming timing;
  size_t words = 6;        // of the parameters; history takes as many again
  bool gradients = false;  // workers bring these, and each round makes one update of them: at least 5 words
  bool backward = false;   // ... and, SHARDED, promise them, and exchange them word by word as they are made
  // The network: one way, plus up to `jitter`; 0 bytes per second: no limit.
  Milliseconds latency = 1, jitter = 2;
  double bytes_per_second = 0;
  uint64_t replays = 0;     // one message in so many comes again later, from where it came or from a stranger; 0: none
  bool new_routes = false;  // a connection that broke comes back under another name
  // Training: a step takes `step` times 1 +- spread; one task in `stragglers` takes ten times as long, 0: none.
  Milliseconds step = 100, build = 500;
  double spread = 0.2;
  uint64_t stragglers = 0, failures = 0;  // one task in so many gives values that are not finite, 0: none
  // Rounds between snapshots, 0: none; and how long writing one takes, in which no round is opened.
  uint64_t snapshot_every = 0;
  Milliseconds snapshot_takes = 0;
  std::vector<Fault> faults;
  // From here on nothing goes wrong any more, and machines are started so that enough are there.
  Milliseconds healed = 0;
  // Training is over so long after that, or it hangs. Workers that nobody told end when they are orphans.
  Milliseconds bound = 0;
};

struct SimulatorReport {
  std::string violation;  // empty: all that must be so was so
  std::string log;        // the last events, for people
  Milliseconds virtual_time = 0, coordinator_ended = 0;
  bool completed = false;
  uint64_t version = 0, events = 0, messages = 0, commits = 0, coordinators = 0, recovered = 0, rolled_back = 0,
           gave_up = 0;
  // Rounds among workers, of which coordinators gave up; tasks begun while others' values were under way; and how often
  // all workers were gone that had the parameters.
  // With CoordinatorOptions.stale: by how many leases one worker was ahead of another.
  uint64_t most_ahead = 0;
  uint64_t apart = 0;    // tasks that begin from other parameters than the best
  uint64_t tasks = 0;    // that workers began
  uint64_t orphans = 0;  // members that were not told of the end
  uint64_t exchanged = 0, exchanges_given_up = 0, ahead = 0, lost = 0;
  uint64_t early = 0;  // rounds among workers that began before all values were there
};

SimulatorReport Simulate(const SimulatorOptions& options);

// A random training with random faults, on so many machines.
SimulatorOptions RandomSchedule(uint64_t seed, int machines);

}  // namespace crema

#endif  // CREMA_TESTS_DISTRIBUTED_SIMULATOR_H_
