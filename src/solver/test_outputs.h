// What a test says of a net.
#ifndef CREMA_SOLVER_TEST_OUTPUTS_H_
#define CREMA_SOLVER_TEST_OUTPUTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "crema/net.h"
#include "crema/observer.h"
#include "solver/average_precision.h"

namespace crema {

// Whether what a layer says is of all passes since its counts were zeros: a SegAccuracy layer with reset: false.
bool CountsOverPasses(const LayerParameter& layer);

// Call before the first batch of a test: such layers begin anew.
void BeginTest(Net& net);

// By what nets are compared, for messages.
struct OutputUse {
  std::string comparer;  // "best"
  std::string field;     // that names the output
  std::string prefix;    // of messages; ends with a blank
};

// The outputs of a net over several batches: the mean of each element; the latest values of what is made of layers that
// count over passes; of a DetectionEvaluate layer, whose rows have no mean, the mean average precision of all that was
// found.
class TestOutputs {
 public:
  // `net` must outlive this.
  explicit TestOutputs(const Net& net, ApVersion version = ApVersion::kIntegral);

  // Adds what the net's outputs hold after a forward pass.
  void AddBatch();
  // So far; zeros before the first batch. `by_class`: also the average precision of each class.
  std::vector<OutputValue> Values(bool by_class = false) const;
  // Those of the output of that name; none without one.
  std::vector<OutputValue> ValuesOf(const std::string& name) const;
  // The same of one that has a single value. Throws UserError at `where` where it has none or several.
  OutputValue OneValueOf(const std::string& name, const Location& where, const OutputUse& use) const;

  // The names of outputs, and those of them that are of DetectionEvaluate layers.
  std::vector<std::string> names() const;
  std::vector<std::string> detections() const;
  // Whether what an output says is, or is made of, what a loss or a measure (Accuracy and its like, which have no
  // gradient) says; else it may be a number that does not depend on what was learnt.
  bool IsMeasured(const std::string& name) const;
  // Whether output `index` of the net is one of these.
  bool is_detection(size_t index) const { return outputs_[index].is_detection; }

 private:
  struct Output {
    std::string name;
    float loss_weight = 0;
    bool is_loss = false, is_detection = false, is_latest = false, is_measured = false;
    std::vector<double> sums;  // by element, or the latest values; none of a detection
    MeanAveragePrecision precision = {};
  };

  const Net& net_;
  ApVersion version_;
  int64_t batches_ = 0;
  std::vector<Output> outputs_;
};

}  // namespace crema

#endif  // CREMA_SOLVER_TEST_OUTPUTS_H_
