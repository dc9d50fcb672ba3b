// Objects found as lines of text.
#ifndef CREMA_INFERENCE_DETECTION_WRITER_H_
#define CREMA_INFERENCE_DETECTION_WRITER_H_

#include <string>
#include <vector>

#include "inference/detector.h"
#include "inference/prediction_writer.h"

namespace crema {

struct DetectionOptions {
  PredictionFormat format = PredictionFormat::kText;  // a line for each object; in JSON for each image
  std::vector<std::string> labels;                    // names of the classes; empty: their numbers
};

// What stands before the first image.
std::string DetectionHeading(const DetectionOptions& options);
// All lines of one image, with their ends. One with a problem has none but in JSON.
std::string DetectionLines(const DetectionOptions& options, const std::string& image, const DetectedImage& detected);

}  // namespace crema

#endif  // CREMA_INFERENCE_DETECTION_WRITER_H_
