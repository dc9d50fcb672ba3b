#include "tools/cluster_flags.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <optional>
#include <set>
#include <sstream>

#include "base/compute_threads.h"
#include "base/log.h"
#include "base/own_program.h"
#include "crema/error.h"
#include "device/gpu.h"
#include "distributed/security/security.h"
#include "distributed/training/coordinate.h"
#include "distributed/training/mpi_training.h"
#include "report/cluster_timeline.h"
#include "solver/signals.h"
#include "tools/flags.h"
#include "tools/rank.h"

DEFINE_int32(workers, 0, "worker processes on this machine");
DEFINE_bool(worker_threads, false, "make them threads of this process");
DEFINE_string(coordinate, "", "where to listen for workers");
DEFINE_int32(expect, 1, "workers to wait for");
DEFINE_string(join, "", "the coordinator to work for");
DEFINE_string(data, "", "where this worker's data is");
DEFINE_string(test_data, "", "where this worker's test data is");
DEFINE_string(worker_name, "", "what this worker is called in messages");
DEFINE_string(peer_address, "", "where other workers reach this one");
DEFINE_bool(quiet, false, "errors only");
DEFINE_string(timeline, "", "where to write when each worker did what");
DEFINE_string(secret_key, "", "this program's secret key");
DEFINE_string(server_key, "", "the coordinator's public key");
DEFINE_bool(allow_plaintext, false, "connect without keys");
DECLARE_string(sigint_effect);
DECLARE_string(sighup_effect);

namespace crema::tools {

namespace {

[[noreturn]] void Fail(const CommandLine& line, const std::string& message) {
  throw UserError(Location{line.program, 0, 0}, message);
}

std::string ProgramOfWorkers() {
  const std::filesystem::path program = OwnProgram();
  if (program.empty()) throw EnvironmentError("cannot find this program's own file, to start workers");
  return program.string();
}

// Of each of `count` workers.
int ComputeThreadsOf(int count) { return FLAGS_threads > 0 ? FLAGS_threads : std::max(1, UsableCores() / count); }

std::vector<std::vector<std::string>> WorkerCommands(const CommandLine& line, int count) {
  const std::vector<std::string> gpus =
      FLAGS_gpu.empty() ? std::vector<std::string>() : CommaList(line, "gpu", FLAGS_gpu);
  if (FLAGS_gpu == "all")
    Fail(line, "--gpu=all with --workers: name the GPUs (--gpu=0,1), worker after worker gets one");
  const int threads = ComputeThreadsOf(count);
  std::vector<std::vector<std::string>> commands;
  for (int i = 0; i < count; ++i) {
    std::vector<std::string> command = {ProgramOfWorkers()};
    if (line.program.find(' ') != std::string::npos) command.push_back("train");
    command.push_back("--quiet");
    command.push_back("--threads=" + std::to_string(threads));
    if (FLAGS_data_threads > 0) command.push_back("--data_threads=" + std::to_string(FLAGS_data_threads));
    if (!gpus.empty()) command.push_back("--gpu=" + gpus[static_cast<size_t>(i) % gpus.size()]);
    commands.push_back(std::move(command));
  }
  return commands;
}

// A GPU computes for one thread only.
std::vector<Device*> WorkerDevices(const CommandLine& line, int count) {
  std::vector<Device*> devices(static_cast<size_t>(count), &CpuDevice());
  if (!line.has("gpu")) return devices;
  const std::vector<int> ids = GpusOf(line);
  if (ids.size() < devices.size()) {
    Fail(line, "--gpu=" + FLAGS_gpu + ": GPUs: " + std::to_string(ids.size()) + ", worker threads: " +
                   std::to_string(count) + ", each of which needs a GPU of its own; name more, start fewer workers " +
                   "(--workers=" + std::to_string(ids.size()) +
                   "), or leave out worker_threads: several processes may compute on one GPU");
  }
  for (size_t i = 0; i < devices.size(); ++i) devices[i] = &OpenGpu(ids[i]);
  return devices;
}

}  // namespace

std::vector<Flag> KeyFlags() {
  return {
      {.name = "secret_key", .value = "FILE", .help = "with --join: this worker's secret key (crema keygen)"},
      {.name = "server_key", .value = "FILE", .help = "with --join: the coordinator's public key"},
      {.name = "allow_plaintext", .value = "", .help = "with --join: connect to another machine without keys"},
  };
}

std::vector<Flag> ClusterFlags() {
  std::vector<Flag> flags = {
      {.name = "workers", .value = "N", .help = "train with N worker processes on this machine", .min = 1, .max = 256},
      {.name = "worker_threads",
       .value = "",
       .help = "with --workers: make them threads of this process, which hand values to each other in memory"},
      {.name = "coordinate", .value = "ENDPOINT", .help = "listen there for workers of other machines: tcp://*:5570"},
      {.name = "expect",
       .value = "N",
       .help = "begin when N workers are there [--workers, or 1]",
       .min = 1,
       .has_default = false},
      {.name = "engine",
       .value = "MPI|ZMQ",
       .help = "what joins the processes: MPI, whose launcher starts them (mpirun -n 4 train ...); ZMQ, for --workers, "
               "--coordinate and --join"},
      {.name = "join",
       .value = "ENDPOINT",
       .help = "be a worker of the coordinator there (tcp://HOST:5570), which sends solver and net"},
      {.name = "data",
       .value = "PATH",
       .help = "with --join: this machine's copy of the database, or of the images' list or folder"},
      {.name = "test_data",
       .value = "PATH",
       .help = "with --join: the same of the test net, with mode TOURNAMENT, where workers test"},
      {.name = "worker_name", .value = "NAME", .help = "with --join: what this worker is called [HOST:PROCESS]"},
      {.name = "peer_address",
       .value = "HOST[:PORT]",
       .help = "with --join: where other workers reach this one, if it is not as it seems here (topologies but STAR)"},
      {.name = "quiet", .value = "", .help = "with --join: say nothing but errors"},
      {.name = "timeline",
       .value = "FILE",
       .help = "with --workers or --coordinate: write when each worker trained, sent and waited, round by round, as a "
               "trace (JSON) for ui.perfetto.dev or chrome://tracing"},
  };
  for (Flag& flag : KeyFlags()) flags.push_back(std::move(flag));
  return flags;
}

DistributedParameter::Security SecurityOf() {
  DistributedParameter::Security security;
  if (!FLAGS_secret_key.empty()) security.set_secret_key_file(FLAGS_secret_key);
  if (!FLAGS_server_key.empty()) security.set_server_public_key_file(FLAGS_server_key);
  if (FLAGS_allow_plaintext) security.set_allow_plaintext(true);
  return security;
}

void ApplyClusterFlags(const CommandLine& line, SolverFile* file) {
  for (const char* flag :
       {"data", "test_data", "worker_name", "peer_address", "quiet", "secret_key", "server_key", "allow_plaintext"}) {
    if (line.has(flag))
      Fail(line, std::string("--") + flag +
                     " goes with --join; a coordinator's settings are in the "
                     "solver file's distributed block");
  }
  SolverParameter& solver = file->solver;
  ApplyEngineFlag(line, file);
  if (UsesMpi(solver)) return;
  const bool asked = line.has("workers") || FLAGS_worker_threads || line.has("coordinate") || line.has("expect");
  if (asked && solver.distributed().mode() == DistributedParameter::OFF) {
    Fail(line, "the solver file says distributed { mode: OFF }; remove that to train with several workers");
  }
  if (line.has("workers")) solver.mutable_distributed()->set_local_workers(static_cast<uint32_t>(FLAGS_workers));
  if (line.has("coordinate")) {
    CheckEndpoint(FLAGS_coordinate, true, Location{line.program, 0, 0});
    solver.mutable_distributed()->set_endpoint(FLAGS_coordinate);
  }
  if (line.has("expect")) solver.mutable_distributed()->set_expected_workers(static_cast<uint32_t>(FLAGS_expect));
  // Threads of this process: Solver knows what it takes, and refuses the rest.
  const bool hogwild = solver.distributed().mode() == DistributedParameter::HOGWILD;
  if (FLAGS_worker_threads && hogwild) {
    Fail(line, "--worker_threads: with mode: HOGWILD all workers are threads of this process; leave it out");
  }
  if (FLAGS_worker_threads && solver.distributed().local_workers() == 0) {
    Fail(line, "--worker_threads: there are no workers that could be threads; add --workers=N");
  }
  if (hogwild && line.has("timeline")) {
    Fail(line, "--timeline shows what worker processes do, and with mode: HOGWILD there are none; --profile=" +
                   FLAGS_timeline + " shows what the first thread does");
  }
  if (hogwild) return;
  if (line.has("worker_threads")) solver.mutable_distributed()->set_worker_threads(FLAGS_worker_threads);
  if (asked && !IsDistributed(solver)) {
    Fail(line, "--expect=" + std::to_string(FLAGS_expect) +
                   ": nobody can join; add --coordinate=ENDPOINT, or --workers=N for processes of this machine");
  }
  if (line.has("timeline") && !IsDistributed(solver)) {
    Fail(line,
         "--timeline shows what several workers do, and there are none: add --workers=N or --coordinate=ENDPOINT; for "
         "one process there is --profile=" +
             FLAGS_timeline);
  }
  if (solver.has_distributed() && solver.distributed().mode() != DistributedParameter::OFF && !IsDistributed(solver)) {
    Diagnostic warning;
    warning.severity = Diagnostic::Severity::kWarning;
    if (file->source) warning.where = file->source->Field("distributed");
    warning.message =
        "distributed has no effect: neither local_workers nor endpoint is set; --workers=N or "
        "--coordinate=ENDPOINT does it, too";
    file->warnings.push_back(warning);
  }
}

int RunCoordinator(const CommandLine& line, const SolverFile& file, SolverOptions options) {
  CoordinateOptions cluster;
  const int workers = static_cast<int>(file.solver.distributed().local_workers());
  if (workers > 0) {
    if (file.solver.distributed().worker_threads()) {
      cluster.worker_devices = WorkerDevices(line, workers);
      cluster.compute_threads = ComputeThreadsOf(workers);
    } else {
      cluster.worker_commands = WorkerCommands(line, workers);
    }
  } else if (line.has("gpu")) {
    Fail(line, "--gpu: a coordinator does not train; give it to the workers (--join)");
  }
  if (line.has("profile"))
    Fail(line, "--profile: a coordinator runs no layers; profile one worker's net with crema time");
  cluster.on_listening = [](const std::string& endpoint) { LOG(INFO) << "Listening for workers at " << endpoint; };
  std::optional<ClusterTimeline> timeline;
  if (!FLAGS_timeline.empty()) options.observers.push_back(&timeline.emplace(FLAGS_timeline));
  const TrainingResult result = Coordinate(file, std::move(options), cluster);
  if (timeline && timeline->full()) {
    LOG(WARNING) << FLAGS_timeline << " holds the first " << ClusterTimeline::kMostEvents
                 << " events; what came later was left out";
  }
  if (timeline && !timeline->error().empty()) {
    throw EnvironmentError("the timeline is not complete: " + timeline->error());
  }
  return result.failed_snapshots > 0 ? kExitEnvironment : kExitSuccess;
}

namespace {

// Returns the exit code.
int ReportEnd(const JoinResult& result) {
  if (result.failed) return result.hopeless ? kExitUser : kExitEnvironment;
  if (!FLAGS_quiet) {
    std::ostringstream exchanged;
    if (result.has_peers) {
      exchanged << std::fixed << std::setprecision(2) << ", " << static_cast<double>(result.peer_bytes_sent) / 1e6
                << " MB sent to and " << static_cast<double>(result.peer_bytes_received) / 1e6
                << " MB received from other workers";
    }
    LOG(INFO) << "Done: " << result.reason << " (" << result.rounds << " rounds, " << result.examples << " examples"
              << exchanged.str() << ")";
  }
  return kExitSuccess;
}

}  // namespace

int RunWorker(const CommandLine& line) {
  static const std::set<std::string> of_workers = {
      "test_data",    "join",         "data",       "worker_name",   "quiet",
      "peer_address", "secret_key",   "server_key", "threads",       "allow_plaintext",
      "gpu",          "data_threads", "log_dir",    "sigint_effect", "sighup_effect"};
  for (const auto& [flag, value] : line.given) {
    if (flag == "timeline") {
      Fail(line,
           "--timeline does not go with --join: give it to the coordinator (train --coordinate=... --timeline=FILE), "
           "which knows what all workers do");
    }
    if (of_workers.count(flag) == 0) {
      Fail(line, "--" + flag + " does not go with --join: the coordinator says what is trained, and how");
    }
  }
  ApplyThreads();
  SignalActions signals(SignalEffect("--sigint_effect", FLAGS_sigint_effect),
                        SignalEffect("--sighup_effect", FLAGS_sighup_effect));
  JoinOptions options;
  options.endpoint = FLAGS_join;
  options.name = FLAGS_worker_name;
  options.data = FLAGS_data;
  options.test_data = FLAGS_test_data;
  options.peer_address = FLAGS_peer_address;
  options.security = SecurityOf();
  options.device = &DeviceOf(line);
  options.data_threads = FLAGS_data_threads;
  options.requested_action = [&signals] { return signals.Take(); };
  if (!FLAGS_quiet) {
    options.log = [](const std::string& text) { LOG(INFO) << text; };
    options.warn = [](const Diagnostic& warning) { std::cerr << warning.ToString() << "\n"; };
  }
  // As WorkerCommands starts them.
  options.told_elsewhere = FLAGS_quiet && FLAGS_join.starts_with("ipc://");
  options.on_stuck = [&line](const std::function<JoinResult()>& ending) {
    LOG_IF(WARNING, !FLAGS_quiet) << "What this worker was at does not come to an end, and is not waited for";
    const int code = Guarded(line.program, [&] { return ReportEnd(ending()); });
    google::FlushLogFiles(google::INFO);
    std::_Exit(code);
  };
  return ReportEnd(Join(options));
}

}  // namespace crema::tools
