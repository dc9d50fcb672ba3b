// What a training run tells whoever watches it: log writers, progress lines, plots. Events are plain data; the solver
// knows nothing of terminals or log formats.
#ifndef CREMA_OBSERVER_H_
#define CREMA_OBSERVER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "crema/error.h"
#include "crema/net.h"

namespace crema {

// The average precision of a detector for one class.
struct ClassPrecision {
  int label = 0;
  float value = 0;
};

// One element of a net output, or, of a DetectionEvaluate layer in a test, the mean average precision. Caffe numbers
// them 0, 1, ... over all outputs.
struct OutputValue {
  std::string name;
  float value = 0;
  float loss_weight = 0;                      // 0: not trained
  bool is_loss = loss_weight != 0;            // or made by a loss layer: the lower the better
  std::vector<ClassPrecision> by_class = {};  // of a mean average precision, where it was asked for
};

// Training begins. What came of weights and snapshots is told before.
struct TrainingStart {
  std::string solver;       // path of the solver file
  std::string net;          // name of the train net
  std::string solver_type;  // "SGD", "Adam", ...
  std::string lr_policy;
  int iteration = 0;  // 0, or that of the snapshot
  int max_iter = 0;
  int test_nets = 0;
  std::string snapshot_prefix;  // files of this run begin so; empty: it is to write no snapshots
  uint64_t seed = 0;
  bool seed_drawn = false;  // random_seed is not set: drawn from the system
  int ranks = 1;            // devices that train together, each with batch_size records an iteration
  int threads = 1;          // likewise, that change the same parameters without locks (HOGWILD)
};

// A .caffemodel was copied into the train net.
struct WeightsLoaded {
  std::string path;
  WeightsReport report;
};

// A snapshot was taken up.
struct SnapshotRestored {
  std::string state_path, model_path;
  int iteration = 0;
  bool exact = true;  // false: Caffe's own, without data positions and seed
};

// Every iteration, after the update.
struct IterationEnd {
  int iteration = 0;   // counts from 0: the one that just ended
  float loss = 0;      // mean over iter_size passes, not smoothed
  double seconds = 0;  // of this iteration, testing and snapshots excluded
};

// Every `display` iterations, behind their passes. On a CPU, which updates parameters in the backward pass, these are
// new already.
struct Display {
  int iteration = 0;
  float smoothed_loss = 0;  // mean of the last average_loss iterations
  float learning_rate = 0;
  double seconds = 0;                // since the last Display, or since training started
  int iterations = 0;                // done in that time
  std::vector<OutputValue> outputs;  // of the train net
  // The forward pass after the last update: without learning rate, outputs and times.
  bool final = false;
};

// With debug_info, behind a Display: how large numbers are, as means of absolute values (Caffe's ForwardDebugInfo and
// BackwardDebugInfo). NaN where a number is.
struct MeanSizes {
  struct Row {
    std::string layer, name;  // of the layer: a top; or a parameter, "conv1[0]"
    float value = 0;
    std::optional<float> gradient;  // none where it is not differentiated
  };
  int iteration = 0;
  std::vector<Row> tops;        // in the order in which they are made
  std::vector<Row> parameters;  // in Net::parameters()' order; values before the update on CPUs, after it on GPUs
};

// clip_gradients scaled the gradients down by limit / norm.
struct GradientsClipped {
  int iteration = 0;
  float norm = 0, limit = 0;
};

// precision FP16: gradients of `iteration` were not finite, and the loss is multiplied by loss_scale from here on.
struct GradientsOverflowed {
  int iteration = 0;
  float loss_scale = 0;
  bool left_out = true;  // the update; else the batch is computed once more
};

// lr_policy "multistep" passed a stepvalue.
struct LearningRateStepped {
  int iteration = 0, step = 0;
};

struct TestStart {
  int iteration = 0;
  int net = 0;  // index of the test net
};

struct TestResult {
  int iteration = 0;
  int net = 0;
  int batches = 0;
  double seconds = 0;
  std::optional<float> loss;         // mean, with test_compute_loss
  std::vector<OutputValue> outputs;  // over all batches
};

// A test of a solver with `best` was better than all before: the parameters are in `model_path`.
struct BestFound {
  int iteration = 0;
  std::string output;  // what was compared
  float value = 0;
  std::string model_path;
};

struct SnapshotWritten {
  int iteration = 0;
  std::string model_path, state_path;
  uint64_t bytes = 0;  // of both files
  double seconds = 0;
  std::string ema_path = {};  // of the parameters' moving average; empty: there is none
};

// Training goes on; the previous snapshot is intact.
struct SnapshotFailed {
  int iteration = 0;
  std::string message;
};

// What one worker did in a round. Times are in milliseconds, as the coordinator's std::chrono::steady_clock counts
// them; 0: that did not happen.
struct WorkerInRound {
  uint64_t member = 0;  // tells apart who had the same place one after the other
  uint32_t place = 0;
  std::string name;
  // Its results did not come in time: they may become part of a later round.
  bool late = false;
  // Its results could not be used.
  bool dropped = false;
  // It went on with the next round's steps while this one's results were under way.
  bool trains_ahead = false;
  int64_t began = 0;                                     // the round, or its part in it
  int64_t parameters_sent = 0, parameters_received = 0;  // to it, and all of them by it; since its last round
  int64_t trained = 0;                                   // the coordinator heard of its results
  double train_seconds = 0;                              // that they took, by the worker's clock
  int64_t exchange = 0;                                  // it was told to exchange them with other workers
  int64_t delivered = 0;                                 // its results had come, or it had exchanged them
  uint64_t examples = 0;                                 // that it trained
  uint64_t bytes_sent = 0, bytes_received = 0;           // payload, since its last round
  uint64_t staleness = 0;  // rounds between the parameters that it trained from and those of this round
  // In tournaments: what it reached, whom it met ("": nobody), and how that ended; neither where both reached the same.
  std::optional<double> score = {};
  std::string met = {};
  bool won = false, lost = false;
};

// Of a training on several machines: a round became parameters. Its iterations are told behind it.
struct RoundCommitted {
  uint64_t version = 0;  // rounds so far
  int iteration = 0;     // the first of the round
  int steps = 0;         // iterations that it took
  int workers = 0;       // that took part
  uint64_t examples = 0;
  float loss = 0;      // mean over the workers' examples
  double seconds = 0;  // since the last one
  // As the times of workers are told: the round began; the results that it is made of were there.
  int64_t opened = 0, closed = 0;
  // Behind that: until there was an average, and until the journal was on the disk.
  double averaging_seconds = 0, journal_seconds = 0;
  bool among_workers = false;            // values did not pass through the coordinator
  std::vector<WorkerInRound> by_worker;  // of all that were to take part, in the order of places
};

// Workers came or went, or something about them should be known.
struct ClusterChanged {
  std::string text;  // a sentence
  int workers = 0;   // that are there now
  bool warning = false;
};

// At the end of a training on several machines, also of one that failed: what each worker did, those that left
// included.
struct ClusterSummary {
  struct Worker {
    uint32_t place = 0;
    std::string name;
    bool left = false;  // before the end
    uint64_t examples = 0, rounds = 0, rounds_late = 0;
    double seconds = 0;       // that it was there
    double trained = 0;       // of these: for what became part of a round
    double waited = 0;        // for others
    double communicated = 0;  // parameters were on their way to it, or results from it
    uint64_t bytes_sent = 0, bytes_received = 0;
    // In tournaments: of the last round that counted; rounds in which it met another one, and those of them it won.
    std::optional<double> score = {};
    uint64_t rounds_met = 0, rounds_won = 0;
  };
  std::vector<Worker> workers;  // in the order of places
  // Why no round was an average of several, where several were wanted; empty otherwise.
  std::string warning;
};

// The last event, unless training ends by an exception.
struct TrainingEnd {
  int iteration = 0;
  bool stopped_early = false;  // by a signal
  // The solver's `best` ran out of patience: that is a regular end before max_iter.
  bool out_of_patience = false;
  int failed_snapshots = 0;
  std::optional<BestFound> best = {};  // of this run and those it continues
};

// Called by the thread that trains, in order; Solver's Train, Step and Test throw UserError there. A slow observer
// slows training; an exception ends it, within the iteration: a Solver that is stepped on all the same may take its
// update twice.
class Observer {
 public:
  virtual ~Observer() = default;

  virtual void OnStart(const TrainingStart&) {}
  virtual void OnWeights(const WeightsLoaded&) {}
  virtual void OnRestored(const SnapshotRestored&) {}
  // Something the user should know; may come before OnStart.
  virtual void OnNotice(const Diagnostic&) {}
  virtual void OnIteration(const IterationEnd&) {}
  virtual void OnDisplay(const Display&) {}
  virtual void OnMeanSizes(const MeanSizes&) {}
  virtual void OnClipped(const GradientsClipped&) {}
  virtual void OnOverflowed(const GradientsOverflowed&) {}
  virtual void OnStep(const LearningRateStepped&) {}
  virtual void OnTestStart(const TestStart&) {}
  virtual void OnTest(const TestResult&) {}
  virtual void OnBest(const BestFound&) {}
  virtual void OnSnapshot(const SnapshotWritten&) {}
  virtual void OnSnapshotFailed(const SnapshotFailed&) {}
  virtual void OnRound(const RoundCommitted&) {}
  virtual void OnCluster(const ClusterChanged&) {}
  virtual void OnClusterEnd(const ClusterSummary&) {}
  virtual void OnEnd(const TrainingEnd&) {}
};

}  // namespace crema

#endif  // CREMA_OBSERVER_H_
