// From what a detector predicts to the objects it found: boxes are decoded, and those that a better one of their class
// covers are left out (Liu et al., "SSD: Single Shot MultiBox Detector", 2016). Plain f32 in CPU memory.
#ifndef CREMA_OPS_DETECTION_DETECTION_OUTPUT_H_
#define CREMA_OPS_DETECTION_DETECTION_OUTPUT_H_

#include <cstddef>
#include <cstdint>

#include "ops/detection/box_formulas.h"

namespace crema {

struct DetectionProblem {
  int64_t images = 1, priors = 1, classes = 2;  // with the background; priors x classes below 2^31
  // Boxes predicted of a prior: 1, for all classes, `classes`, one for each, or 2, of which all classes but 0 share the
  // second.
  int64_t boxes = 1;
  int64_t background = 0;  // the class that is none; -1: there is no such
  BoxCode code = BoxCode::kCorner;
  bool has_variance = true;  // of the priors, which what is predicted is multiplied by
  // Priors are regions of each image, in pixels, from which boxes are told as in Faster R-CNN, in shares of the image;
  // what is predicted is multiplied by `variance`, and neither code nor has_variance is looked at.
  bool from_regions = false;
  BoxVariance variance{{1, 1, 1, 1}};
  // What is predicted are the corners themselves; there are no priors, and neither code nor has_variance is looked at.
  bool as_corners = false;
  float score_above = 0;  // of objects; a NaN is none
  // Candidates of a class of an image, 1 to `priors`: those of the highest scores, the lower prior first among equals.
  int64_t top_k = 1;
  // By falling score a candidate is kept unless one that is overlaps it by more than this; multiplied by eta after each
  // that is kept while it is above 0.5.
  float most_overlap = 0.3f, eta = 1;
  // Objects of an image, of those left: the highest scores, among equals the lower class, then the lower prior.
  int64_t keep = 1;

  int64_t rows() const { return images * keep; }
};

// Numbers of an object: which image, class, score, corners of its box.
inline constexpr int64_t kObjectNumbers = 7;

struct DetectionInputs {
  const float* offsets;  // images x priors x boxes x 4
  const float* scores;   // images x priors x classes
  // priors x 4 corners, priors x 4 variances; or images x priors x kRegionNumbers, rows of another image than their own
  // are none.
  const float* priors = nullptr;
  const float* info = nullptr;  // from_regions: images x ScaledImage::kNumbers
  // images x priors: the class that is told of what is predicted of each, where it is not that of its score.
  const float* labels = nullptr;
};

// Scratch bytes that DetectObjects needs, aligned to 64 bytes.
size_t DetectionWorkspace(const DetectionProblem& problem);
// Overwrites all rows x 7 numbers: objects by image, class, then falling score; those left over are -1. Threaded over
// images and classes; allocates nothing.
void DetectObjects(const DetectionProblem& problem, const DetectionInputs& inputs, float* objects,
                   std::byte* workspace);

}  // namespace crema

#endif  // CREMA_OPS_DETECTION_DETECTION_OUTPUT_H_
