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

// One element of a net output. Caffe numbers them 0, 1, ... over all outputs.
struct OutputValue {
  std::string name;
  float value = 0;
  float loss_weight = 0;  // 0: not a loss
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
  uint64_t seed = 0;
  bool seed_drawn = false;  // random_seed is not set: drawn from the system
  int ranks = 1;            // devices that train together, each with batch_size records an iteration
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

// Every `display` iterations, before the update.
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

// clip_gradients scaled the gradients down by limit / norm.
struct GradientsClipped {
  int iteration = 0;
  float norm = 0, limit = 0;
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
  std::vector<OutputValue> outputs;  // means over all batches
};

struct SnapshotWritten {
  int iteration = 0;
  std::string model_path, state_path;
  uint64_t bytes = 0;  // of both files
  double seconds = 0;
};

// Training goes on; the previous snapshot is intact.
struct SnapshotFailed {
  int iteration = 0;
  std::string message;
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
};

// Workers came or went, or something about them should be known.
struct ClusterChanged {
  std::string text;  // a sentence
  int workers = 0;   // that are there now
  bool warning = false;
};

// The last event, unless training ends by an exception.
struct TrainingEnd {
  int iteration = 0;
  bool stopped_early = false;  // by a signal
  int failed_snapshots = 0;
};

// Called by the thread that trains, in order. A slow observer slows training; an exception ends it.
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
  virtual void OnClipped(const GradientsClipped&) {}
  virtual void OnStep(const LearningRateStepped&) {}
  virtual void OnTestStart(const TestStart&) {}
  virtual void OnTest(const TestResult&) {}
  virtual void OnSnapshot(const SnapshotWritten&) {}
  virtual void OnSnapshotFailed(const SnapshotFailed&) {}
  virtual void OnRound(const RoundCommitted&) {}
  virtual void OnCluster(const ClusterChanged&) {}
  virtual void OnEnd(const TrainingEnd&) {}
};

}  // namespace crema

#endif  // CREMA_OBSERVER_H_
