// Trains a net as a solver file says, with Caffe's semantics.
//
//   SolverFile file = ReadSolverFile("lenet_solver.prototxt");
//   Solver solver(file, {.path = "lenet_solver.prototxt", .observers = {&log}});
//   TrainingResult result = solver.Train();
#ifndef CREMA_SOLVER_H_
#define CREMA_SOLVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "crema/context.h"
#include "crema/files.h"
#include "crema/net.h"
#include "crema/observer.h"

namespace crema {

// What someone outside (a signal, a user interface) asks of a running solver.
enum class SolverAction { kNone, kStop, kSnapshot };

struct SolverOptions {
  // Of the solver file: names it in messages, gives relative paths their second folder and snapshot_prefix its default.
  std::string path = {};
  // .caffemodel files copied in this order, instead of the solver's `weights`. Entries may be comma lists.
  std::vector<std::string> weights = {};
  // .solverstate to go on from; "auto": the newest whole one of this run's snapshot_prefix, or a fresh start. Excludes
  // `weights`; the solver's own `weights` are then not read.
  std::string snapshot = {};
  // Added to the train net's state only, as Caffe's --level and --stage are.
  std::optional<int> level = {};
  std::vector<std::string> stages = {};
  // Shapes of data tops whose source does not exist here.
  std::vector<std::pair<std::string, Shape>> shapes = {};
  // Looked in for relative paths after the working directory and the solver's folder.
  std::vector<std::string> search_folders = {};
  // Replaces random_seed of the file.
  std::optional<uint64_t> seed = {};
  // Where to compute (crema/device.h); null: the CPU.
  Device* device = nullptr;
  // Empty: `device` alone. Several, all CPUs or different GPUs: each, a rank, trains a copy of the net on batch_size
  // records of its own, and all update by the mean of their gradients, as Caffe does. Rank r of n reads in its k-th
  // batch the records of place [(k*n + r) * batch_size, ...) of the stream, so each is used once. What is seen of a run
  // is that of the first: its net, its tests, its outputs in displays and the running statistics (BatchNorm) in
  // snapshots; losses are means over all. Naming the CPU several times is for tests.
  std::vector<Device*> devices = {};
  // The processes that train one net together, a rank each with one device (device/processes.h): ranks as above, but
  // that this solver is one of them, and all make the same calls. Only the first has observers and test nets, reads
  // weights and snapshots and writes these; what it has the others get. What fails in the constructor does so in all
  // (FailedTogether). Not owned; null: this process trains alone.
  class Processes* processes = nullptr;
  // What the solver is for; all but kAlone of crema's own programs. Of several processes that train together
  // (solver/training_steps.h) a worker computes: it has no test nets, reads neither weights nor snapshots, since it
  // gets its parameters from outside, and writes none. A coordinator never runs a pass of the train net, which then
  // takes little more memory than its parameters.
  enum class Role { kAlone, kWorker, kCoordinator };
  Role role = Role::kAlone;
  // In such a training: keep the gradients in a place of their own, to be sent or received.
  bool exchanges_gradients = false;
  // Each test reads the same records, those from the first one on, instead of going on where the one before ended. So
  // it does anyway where the file has in_epochs { test_iter }.
  bool tests_from_the_first = false;
  // Threads of each data layer; 0: as many as its data_param says. Results do not depend on it.
  int data_threads = 0;
  // Not owned; called in this order. Must outlive the solver.
  std::vector<Observer*> observers = {};
  // Asked after every iteration and test batch; takes the request, so that the next call gives kNone. With `processes`
  // in every rank, and what one is asked all do. Where it is there, a last snapshot that cannot be written, on a full
  // disk, is tried again until it can or kStop is asked for; without it training ends.
  std::function<SolverAction()> requested_action = {};
};

// Training ended since a loss or the norm of the gradients was not finite.
class NotFinite : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

struct TrainingResult {
  int iteration = 0;             // updates done since iteration 0
  bool stopped_early = false;    // by SolverAction::kStop
  int failed_snapshots = 0;      // programs exit with 1 when above 0
  std::string last_snapshot;     // path of the last .solverstate written by this run, or empty
  bool out_of_patience = false;  // TrainingEnd says what these are
  std::optional<BestFound> best = {};
};

// A learning-rate schedule, one update rule and the nets they work on. Used by one thread at a time.
class Solver {
 public:
  // Checks the solver file, builds the nets, loads weights or the snapshot, and checks that snapshots can be written.
  // Throws UserError with every mistake found, EnvironmentError for what cannot be read or written.
  Solver(const SolverFile& file, SolverOptions options);
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  // Trains to max_iter with tests, displays and snapshots on the way, then snapshots and tests a last time. Throws
  // NotFinite when the loss is not finite. Only of a solver that trains alone, as Step is.
  TrainingResult Train();
  // `iterations` updates with everything that falls due among them; nothing at the end. False where it ended before, as
  // Test says.
  bool Step(int iterations);
  // Tests every test net now. False when asked to stop, or when the solver's `best` has run out of patience.
  bool Test();
  // Writes <prefix>_iter_N.caffemodel and .solverstate now; throws EnvironmentError where that fails,
  // NotFinite where a parameter holds a NaN; UserError within an iteration, where an observer of what is told there,
  // such as OnDisplay, would call it: OnIteration comes behind it.
  void Snapshot();

  int iteration() const;
  // Of the next update.
  float learning_rate() const;
  float smoothed_loss() const;
  uint64_t seed() const;
  const std::string& snapshot_prefix() const;
  // The train net. Its parameters may be written between the calls above; their gradients are gone after each pass, and
  // lr_mult and decay_mult are read when the solver is made.
  Net& net();
  int test_nets() const;
  Net& test_net(int index);

 private:
  friend class TrainingSteps;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Everything wrong with a solver file that can be seen without its nets; warnings for fields that are not read. Used by
// Solver, and by programs that only check files.
std::vector<Diagnostic> CheckSolver(const SolverFile& file);

}  // namespace crema

#endif  // CREMA_SOLVER_H_
