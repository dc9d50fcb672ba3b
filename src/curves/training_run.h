// The course of a training as curves: points over its iterations, gathered from the records that training leaves.
#ifndef CREMA_CURVES_TRAINING_RUN_H_
#define CREMA_CURVES_TRAINING_RUN_H_

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "crema/error.h"
#include "crema/observer.h"

namespace crema {

struct CurvePoint {
  int iteration = 0;
  double seconds = 0;  // of training, since its first iteration; pauses before a run was resumed do not count
  double value = 0;
};

// Of the train net, of a test net, or the learning rate. The order is that of legends.
enum class CurveKind { kTraining, kTest, kLearningRate };

struct Curve {
  std::string output;  // what is shown; curves of one output belong together
  CurveKind kind = CurveKind::kTraining;
  int net = 0;                       // of several test nets
  std::string element;               // "[2]" of an output of several numbers; else empty
  std::optional<float> loss_weight;  // of a loss, which is best where it is lowest
  std::vector<CurvePoint> points;    // by iteration, all finite

  bool is_loss() const { return loss_weight.has_value(); }
};

struct TrainingRun {
  std::string name;   // what tells it apart from others: from the file's name
  std::string net;    // its name; empty where the file does not say it
  int max_iter = 0;   // 0: not known
  int iteration = 0;  // that it reached
  bool ended = false;
  int not_finite_from = -1;   // the first iteration with a loss that is no number, which no curve shows; -1: none
  std::vector<Curve> curves;  // none without points; losses first, the learning rate last
  std::vector<Diagnostic> warnings = {};  // of what was passed over in the file
};

// The smallest value of a loss, the largest of anything else; the first of several.
const CurvePoint& BestPoint(const Curve& curve);
// "train", "test", "test 1", with the element of an output: what tells curves of one output apart.
std::string CurveLabel(const Curve& curve);

// Puts together a run from what its records say, in their order. A record that breaks off the order because a run was
// resumed is announced by ResumeAt.
class RunBuilder {
 public:
  // Another run begins; what was there is forgotten.
  void Start(const std::string& net, int max_iter);
  // The run goes on from the snapshot of this iteration: what came later is forgotten, and the clock goes on behind
  // what is left.
  // max_iter: the new one; 0: as it was.
  void ResumeAt(int iteration, int max_iter = 0);
  // All times are seconds since Start or ResumeAt.
  void AddLoss(int iteration, double seconds, double loss);
  void AddTestLoss(int iteration, double seconds, int net, double loss);
  void AddRate(int iteration, double seconds, double rate);
  // Of the train net or a test net: elements of one output stand one behind the other under one name.
  void AddOutputs(CurveKind kind, int iteration, double seconds, int net, const std::vector<OutputValue>& outputs);
  void End(int iteration);

  bool empty() const { return curves_.empty(); }
  TrainingRun Finish() const;

 private:
  struct Key {
    CurveKind kind;
    int net;
    std::string output, element;
    auto operator<=>(const Key&) const = default;
  };

  void Add(Key key, std::optional<float> loss_weight, int iteration, double seconds, double value);

  TrainingRun run_;
  std::map<Key, size_t> places_;
  std::vector<Curve> curves_;
  double offset_ = 0;  // seconds before the last ResumeAt
};

// Reads what `train --metrics` wrote, or a log of Caffe or crema. Of several runs in one file the last one counts;
// `earlier` gets the number of the others. Throws UserError naming file and line where it is neither, or holds no
// point; EnvironmentError where it cannot be read, or where `stop` asks for an end while records are read.
TrainingRun ReadTrainingRun(const std::string& path, int* earlier = nullptr, const std::stop_token& stop = {});

// The parts of it: `text` is the whole file, `path` stands in messages and in the run's name.
TrainingRun ReadMetrics(const std::string& text, const std::string& path, int* earlier, const std::stop_token& stop);
TrainingRun ReadLog(const std::string& text, const std::string& path, int* earlier);

}  // namespace crema

#endif  // CREMA_CURVES_TRAINING_RUN_H_
