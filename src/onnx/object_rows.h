// The rows of objects that detectors give, of boxes and scores: NonMaxSuppression, with what is done before and after
// it in operators of their own. Every tensor has a fixed shape but the list of what NonMaxSuppression keeps, which is
// spread over an array of all candidates at once.
#ifndef CREMA_ONNX_OBJECT_ROWS_H_
#define CREMA_ONNX_OBJECT_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "onnx/graph_writer.h"

namespace crema::onnx {

struct ObjectCandidates {
  int64_t images = 1, classes = 1, priors = 1;  // classes without the background
  std::string boxes;                            // corners, images x priors x 4, or images x classes x priors x 4
  bool own_boxes = false;                       // of the second kind
  bool in_order = true;                         // corners cannot have changed places
  std::string scores;                           // images x classes x priors
  // Integers: by class; or, of a single class of scores, images x priors.
  std::string labels;
  bool labels_of_priors = false;
  int64_t top_k = 1;  // candidates of a class of an image
  float score_above = 0, most_overlap = 0;
};

// Scores of none.
std::string NoScores(LayerWriter& layer, const std::vector<int64_t>& shape);

// Top 0 of the layer, images x rows of an image: objects by image, class and falling score, and behind them rows of -1.
void WriteObjects(LayerWriter& layer, const ObjectCandidates& candidates);

}  // namespace crema::onnx

#endif  // CREMA_ONNX_OBJECT_ROWS_H_
