// Predictions as lines of text.
#ifndef CREMA_INFERENCE_PREDICTION_WRITER_H_
#define CREMA_INFERENCE_PREDICTION_WRITER_H_

#include <string>
#include <vector>

#include "inference/classifier.h"

namespace crema {

enum class PredictionFormat {
  kText,  // the path, then a line for each of the best classes
  kJson,  // an object a line (https://jsonlines.org)
  kCsv,   // a heading, then a line for each image and class
};

struct PredictionOptions {
  PredictionFormat format = PredictionFormat::kText;
  int top = 5;                      // classes for each image
  std::vector<std::string> labels;  // names of the classes; empty: their numbers
  bool probabilities = true;        // scores are, and shown as percent in texts
  bool sequences = false;           // each image has a sequence of labels: its text, names of one character joined
  int blank = -1;                   // the label that no sequence has; its name may be of any length
};

// The name of a class; its number where `labels` is empty.
std::string ClassName(const std::vector<std::string>& labels, int index);

// What stands before the first image.
std::string PredictionHeading(const PredictionOptions& options);
// All lines of one image, with their ends. One with a problem has none but in JSON.
std::string PredictionLines(const PredictionOptions& options, const std::string& image, const ScoredImage& scored);

}  // namespace crema

#endif  // CREMA_INFERENCE_PREDICTION_WRITER_H_
