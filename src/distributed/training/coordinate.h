// Training on several machines: the two programs that take part.
#ifndef CREMA_DISTRIBUTED_TRAINING_COORDINATE_H_
#define CREMA_DISTRIBUTED_TRAINING_COORDINATE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "crema/files.h"
#include "crema/solver.h"

namespace crema {

// Whether this solver file, with what the command line added to it, is to be trained by several processes: its mode is
// not OFF, its engine ZMQ, and it has local_workers or an endpoint.
bool IsDistributed(const SolverParameter& solver);

struct CoordinateOptions {
  // Of each worker of this machine, as many as settings.local_workers: program and arguments, to which --join=ENDPOINT
  // and --worker_name=NAME are added.
  std::vector<std::vector<std::string>> worker_commands = {};
  // With settings.worker_threads instead: where each of them computes, each on a GPU of its own or all on the CPU, and
  // with how many threads each. The thread that calls Coordinate then computes with as many, too. Signals must be
  // handled by other threads than the workers', which block them.
  std::vector<Device*> worker_devices = {};
  int compute_threads = 1;
  // Called once with where other machines reach the coordinator; with no endpoint in the settings, never.
  std::function<void(const std::string& endpoint)> on_listening = {};
};

// Trains file.solver as its `distributed` block says, with the observers, snapshots and tests of one program. The
// coordinator computes nothing but averages and tests, on the CPU. Asked to stop, it finishes the round; asked again,
// it stops at once. Throws UserError for mistakes in the files, and where training cannot go on and could not if it
// were started again (a record that a worker cannot use, a loss that is not finite), EnvironmentError where it
// otherwise cannot; both after a snapshot.
TrainingResult Coordinate(const SolverFile& file, SolverOptions options, const CoordinateOptions& cluster);

struct JoinResult {
  bool completed = false;  // training came to its end
  std::string reason;      // why it ended
  // With JoinOptions.told_elsewhere: it ended otherwise than it should, and would again.
  bool failed = false, hopeless = false;
  uint64_t rounds = 0, examples = 0;
  // Payload bytes to and from other workers; none where the topology is STAR.
  bool has_peers = false;
  uint64_t peer_bytes_sent = 0, peer_bytes_received = 0;
};

struct JoinOptions {
  std::string endpoint;
  std::string name = {};  // for people; empty: host and process
  // HOST or HOST:PORT where other workers reach this one, with topologies other than STAR. Empty: as this machine
  // reaches the coordinator, at any port.
  std::string peer_address = {};
  std::string data = {};       // replaces `source` of the train net's data layers
  std::string test_data = {};  // likewise of the test net's, with mode TOURNAMENT
  DistributedParameter::Security security = {};
  Device* device = nullptr;  // null: the CPU
  int data_threads = 0;
  // Of a coordinator that started it: there is told why training failed, or had ended before this one came. Join does
  // not throw then.
  bool told_elsewhere = false;
  std::function<SolverAction()> requested_action = {};
  std::function<void(const std::string& line)> log = {};
  std::function<void(const Diagnostic& warning)> warn = {};
  // For programs, which can end themselves: called, by another thread, where this worker has ended, or was asked to
  // stop, and the thread that called Join has not come back for three seconds from a net that it builds or a step: a
  // file, a disk or a device does not answer. `ending` returns, or throws, what Join would have. requested_action is
  // then called by that thread, too. Null: it is waited for, for ever.
  std::function<void(const std::function<JoinResult()>& ending)> on_stuck = {};
};

// Trains for the coordinator at an endpoint until it ends training, or, asked to stop, after telling it. Throws
// EnvironmentError where the coordinator refuses, is lost or cannot go on, UserError where this machine cannot do what
// is asked (no such data), or training could not go on if it were started again.
JoinResult Join(const JoinOptions& options);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_TRAINING_COORDINATE_H_
