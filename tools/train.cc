// crema train: trains a net as a solver file says.
#include <gflags/gflags.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "base/log.h"
#include "base/output_path.h"
#include "crema/solver.h"
#include "curves/metrics_observer.h"
#include "device/processes.h"
#include "distributed/training/coordinate.h"
#include "distributed/training/mpi_training.h"
#include "report/profile_observer.h"
#include "runtime/refuse_inputs.h"
#include "solver/nets.h"
#include "solver/snapshots/prefix_files.h"
#include "tools/cluster_flags.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/rank.h"
#include "tools/training_console.h"

DEFINE_string(solver, "", "solver file");
DEFINE_string(snapshot, "", "snapshot to go on from");
DEFINE_string(sigint_effect, "stop", "what SIGINT and SIGTERM do");
DEFINE_string(sighup_effect, "snapshot", "what SIGHUP does");
DEFINE_string(metrics, "", "where the course of the training is recorded");
DEFINE_string(curves, "", "where it is drawn");
DECLARE_string(log_dir);
DECLARE_string(timeline);

namespace crema::tools {

namespace {

SolverFile ReadSolver(const CommandLine& line) {
  try {
    return ReadSolverFile(FLAGS_solver);
  } catch (const UserError&) {
    bool is_net = false;
    try {
      is_net = ReadNetFile(FLAGS_solver).net.layer_size() > 0;
    } catch (const std::exception&) {
      // Neither: the complaints about it as a solver stand.
    }
    if (!is_net) throw;
    throw UserError(
        Location{line.program, 0, 0},
        "--solver=" + FLAGS_solver + " is a net, expected a solver file (one that says base_lr and names the net)");
  }
}

void CheckFileKinds(const CommandLine& line) {
  const auto fail = [&](const std::string& message) { throw UserError(Location{line.program, 0, 0}, message); };
  if (!FLAGS_snapshot.empty() && FLAGS_snapshot != "auto" && !FLAGS_weights.empty()) {
    fail("--snapshot and --weights exclude each other: a snapshot has its own weights");
  }
  if (FLAGS_snapshot.ends_with(".caffemodel") || FLAGS_snapshot.ends_with(".caffemodel.h5")) {
    fail("--snapshot=" + FLAGS_snapshot +
         " holds weights only, expected a .solverstate; to start from these weights use --weights=" + FLAGS_snapshot);
  }
  for (const std::string& path : CommaList(line, "weights", FLAGS_weights)) {
    if (path.ends_with(".solverstate") || path.ends_with(".solverstate.h5")) {
      fail("--weights=" + path +
           " is the state of a training run, expected a .caffemodel; to go on with that run use --snapshot=" + path);
    }
  }
}

// What was recorded is written also where an exception ends training.
TrainingResult Train(Solver& solver, ProfileObserver* profile) {
  if (!profile) return solver.Train();
  profile->Follow(solver.net());
  try {
    return solver.Train();
  } catch (...) {
    profile->Finish();
    throw;
  }
}

// Null where --metrics=none says so. Of several ranks the first one's only.
std::unique_ptr<MetricsObserver> RecordMetrics(const CommandLine& line, SolverOptions* options) {
  if (FLAGS_metrics == "none") {
    if (FLAGS_curves.empty()) return nullptr;
    throw UserError(Location{line.program, 0, 0}, "--curves=" + FLAGS_curves +
                                                      " draws what is recorded, and --metrics=none records nothing; "
                                                      "leave one of them out");
  }
  auto metrics = std::make_unique<MetricsObserver>(
      MetricsOptions{FLAGS_metrics, FLAGS_curves, [](const std::string& message) { LOG(WARNING) << message; }});
  options->observers.push_back(metrics.get());
  return metrics;
}

// Says what lies where this run writes snapshots, or may do when a signal asks for it.
void PrepareSnapshots(const std::string& prefix, const SolverParameter& param, const PrefixLock& lock) {
  if (const int removed = lock.RemoveUnfinished(); removed > 0) {
    LOG(INFO) << "Removed " << removed << " unfinished file(s) of a killed run from " << prefix << "_*";
  }
  const std::vector<StateFile> states = FindStates(prefix, param.snapshot_format());
  if (FLAGS_snapshot.empty() && !states.empty()) {
    LOG(WARNING) << "snapshots of an earlier run are there, up to " << states.front().path
                 << "; this run begins anew and writes over those of the same iterations (--snapshot=auto would have "
                    "gone on)";
  }
}

// In this process, with a profile where one is asked for. Returns the exit code.
int TrainHere(const CommandLine& line, const SolverFile& file, SolverOptions options) {
  const bool first = !options.processes || options.processes->rank() == 0;
  const std::unique_ptr<MetricsObserver> metrics = first ? RecordMetrics(line, &options) : nullptr;
  std::optional<ProfileObserver> profile;
  if (!FLAGS_profile.empty() && first) {
    options.observers.push_back(&profile.emplace(FLAGS_profile, FLAGS_profile_iterations));
  }
  // Before snapshots are read: whoever writes them now may write newer ones.
  std::optional<PrefixLock> lock;
  const std::string prefix = SnapshotPrefix(file.solver, options);
  if (first && !prefix.empty()) lock.emplace(prefix);
  Solver solver(file, options);
  if (first) LogDevices(options.devices);
  if (lock) PrepareSnapshots(prefix, file.solver, *lock);
  RefuseInputs(solver.net(), "the train net");
  for (int i = 0; i < solver.test_nets(); ++i) RefuseInputs(solver.test_net(i), "test net #" + std::to_string(i));
  const int failed_snapshots = Train(solver, profile ? &*profile : nullptr).failed_snapshots;
  if (profile && !profile->error().empty()) throw EnvironmentError("no profile was written: " + profile->error());
  return failed_snapshots > 0 ? kExitEnvironment : kExitSuccess;
}

void LogToFolder() {
  if (FLAGS_log_dir.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(FLAGS_log_dir, error);
  // With the slash, which only folders take.
  if (!error && access((FLAGS_log_dir + "/").c_str(), W_OK | X_OK) != 0) error = {errno, std::generic_category()};
  if (error) throw EnvironmentError("--log_dir=" + FLAGS_log_dir + ": " + error.message());
  FLAGS_logtostderr = false;
  FLAGS_alsologtostderr = true;
  // Else files get what was said up to half a minute later, and of a program that is killed never.
  FLAGS_logbufsecs = 0;
}

// Files of the log hold why a training ended; on stderr it is said as all errors are.
void LogToFilesOnly(const std::string& text) {
  if (FLAGS_log_dir.empty()) return;
  FLAGS_alsologtostderr = false;
  FLAGS_stderrthreshold = google::NUM_SEVERITIES;
  LOG(ERROR) << text;
}

int Run(const CommandLine& line) {
  if (line.has("join")) return RunWorker(line);
  if (FLAGS_solver.empty()) {
    throw UserError(Location{line.program, 0, 0}, "--solver=FILE is missing (or --join=ENDPOINT, for a worker)");
  }
  CheckFileKinds(line);
  ApplyThreads();
  TrainingConsole console(SignalEffect("--sigint_effect", FLAGS_sigint_effect),
                          SignalEffect("--sighup_effect", FLAGS_sighup_effect));
  SolverOptions options;
  options.path = FLAGS_solver;
  options.weights = CommaList(line, "weights", FLAGS_weights);
  options.snapshot = FLAGS_snapshot;
  if (line.has("level")) options.level = FLAGS_level;
  options.stages = CommaList(line, "stage", FLAGS_stage);
  console.Watch(&options);
  options.data_threads = FLAGS_data_threads;
  SolverFile file = ReadSolver(line);
  ApplyClusterFlags(line, &file);
  const std::vector<std::string> read = FilesRead(file.solver, options);
  for (const std::string& written : {FLAGS_metrics, FLAGS_curves, FLAGS_profile, FLAGS_timeline}) {
    RefuseOutputInInputs(written, read);
  }
  if (IsDistributed(file.solver)) {
    const std::unique_ptr<MetricsObserver> metrics = RecordMetrics(line, &options);
    return RunCoordinator(line, file, std::move(options));
  }
  if (UsesMpi(file.solver)) {
    return RunRank(line, file, options, console,
                   [&](const SolverOptions& of_rank) { return TrainHere(line, file, of_rank); });
  }
  WarnOfLaunchedAlone();
  options.devices = DevicesOf(line);
  return TrainHere(line, file, std::move(options));
}

int RunLogged(const CommandLine& line) {
  LogToFolder();
  try {
    return Run(line);
  } catch (const std::exception& error) {
    LogToFilesOnly(error.what());
    throw;
  }
}

}  // namespace

const Command& TrainCommand() {
  static const Command command = [] {
    Command c = {
        .name = "train",
        .summary = "train a net as a solver file says",
        .usage =
            "--solver=FILE [--weights=FILE | --snapshot=FILE|auto] [flags]\n"
            "  or, as a worker of another machine's training: --join=ENDPOINT [flags]",
        .flags =
            {
                {.name = "solver", .value = "FILE", .help = "solver file (prototxt); required but for --join"},
                WeightsFlag(false),
                {.name = "snapshot",
                 .value = "FILE|auto",
                 .help =
                     "go on from this .solverstate as if training had never stopped; auto: from the newest whole one "
                     "that this solver file wrote, or from the start where there is none"},
                {.name = "level", .value = "N", .help = "level of the train net's state"},
                StageFlag("stages of the train net's state"),
                ThreadsFlag(),
                DataThreadsFlag(),
                ProfileFlag(),
                ProfileIterationsFlag(),
                {.name = "sigint_effect",
                 .value = "stop|snapshot|none",
                 .help = "what Ctrl-C and SIGTERM do; stop writes a snapshot first"},
                {.name = "sighup_effect", .value = "stop|snapshot|none", .help = "what SIGHUP does"},
                {.name = "metrics",
                 .value = "FILE|none",
                 .help = "where losses, outputs and rates are recorded as JSON lines, for crema curves and others "
                         "[<snapshot_prefix>_metrics.jsonl]"},
                {.name = "curves",
                 .value = "FILE",
                 .help = "draw them there while training goes on: a page (.html) that reloads itself, .svg, or a "
                         "folder for TensorBoard, which ends with /"},
                {.name = "log_dir", .value = "FOLDER", .help = "also write the log to files in this folder"},
                GpusFlag(),
            },
        .examples =
            "examples, from the repository's root:\n"
            "  Train on Fashion-MNIST (tools/quickstart makes its database):\n"
            "    train --solver=configs/fashion_mnist/solver.prototxt\n"
            "  The same, started again and again until it is done, whatever stops it:\n"
            "    train --solver=configs/fashion_mnist/solver.prototxt --snapshot=auto\n"
            "  On two GPUs, with twice the records an iteration:\n"
            "    train --solver=configs/fashion_mnist/solver.prototxt --gpu=0,1\n"
            "  With four processes that average their parameters; on several machines:\n"
            "    train --solver=configs/fashion_mnist/solver.prototxt --workers=4\n"
            "    train --solver=configs/fashion_mnist/solver.prototxt --coordinate=tcp://*:5570 --expect=4\n"
            "    train --join=tcp://HOST:5570 --secret_key=worker1.secret --server_key=coordinator.public\n"
            "  With four processes that MPI joins, and four times the records an iteration:\n"
            "    mpirun -n 4 train --solver=configs/fashion_mnist/solver.prototxt --engine=MPI\n"
            "  Fine-tune: copy the layers whose names fit, start the others afresh:\n"
            "    train --solver=my_solver.prototxt \\\n"
            "      --weights=model_zoo/lenet/lenet.caffemodel\n\n"
            "Relative paths in the files are looked for in the working directory, then in the\n"
            "folder of the solver file, then in that of the net file.\n"
            "The log goes to stderr in Caffe's words: 2>&1 | tee -i train.log keeps it for its tools.\n"
            "Exit codes: 0 done or stopped as asked, 1 a file that is there and cannot be read, or one that\n"
            "cannot be written, or a GPU or workers that are not there, 2 a mistake in the flags, the files\n"
            "(also one that is not there) or the data, or a loss that is not finite.\n",
        .run = RunLogged,
    };
    for (Flag& flag : ClusterFlags()) c.flags.push_back(std::move(flag));
    return c;
  }();
  return command;
}

}  // namespace crema::tools
