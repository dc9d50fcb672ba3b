// Runs a test net over batches, as `caffe test` does.
#ifndef CREMA_REPORT_EVALUATION_H_
#define CREMA_REPORT_EVALUATION_H_

#include <functional>
#include <string>
#include <vector>

#include "crema/net.h"
#include "crema/observer.h"
#include "solver/average_precision.h"

namespace crema {

struct Evaluation {
  int batches = 0;
  double loss = 0;                   // mean
  std::vector<OutputValue> outputs;  // over all batches; with precisions by class, where there are any
};

// Runs `batches` forward passes; `log` gets Caffe's lines ("Batch 0, accuracy = 0.91", "Loss: 0.3",
// "accuracy = 0.9105", "loss = 0.3 (* 1 = 0.3 loss)"), and for what a DetectionEvaluate layer says those of a solver's
// test with eval_type "detection" ("class1: 0.5", "detection_eval = 0.5").
Evaluation Evaluate(Net& net, int batches, const std::function<void(const std::string& line)>& log,
                    ApVersion ap_version = ApVersion::kIntegral);

}  // namespace crema

#endif  // CREMA_REPORT_EVALUATION_H_
