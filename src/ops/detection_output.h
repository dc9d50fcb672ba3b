// From what a detector predicts to the objects it found: boxes are decoded, and those that a better one of their class
// covers are left out (Liu et al., "SSD: Single Shot MultiBox Detector", 2016). Plain f32 in CPU memory.
#ifndef CREMA_OPS_DETECTION_OUTPUT_H_
#define CREMA_OPS_DETECTION_OUTPUT_H_

#include <cstddef>
#include <cstdint>

#include "ops/box_formulas.h"

namespace crema {

struct DetectionProblem {
  int64_t images = 1, priors = 1, classes = 2;  // with the background; priors x classes below 2^31
  bool shared_boxes = true;                     // all classes of a prior share one
  int64_t background = 0;                       // the class that is none; -1: there is no such
  BoxCode code = BoxCode::kCorner;
  bool has_variance = true;  // of the priors, which what is predicted is multiplied by
  float score_above = 0;     // of objects; a NaN is none
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
  const float* offsets;  // images x priors x 4, or images x priors x classes x 4
  const float* scores;   // images x priors x classes
  const float* priors;   // priors x 4 corners, priors x 4 variances
};

// Scratch bytes that DetectObjects needs, aligned to 64 bytes.
size_t DetectionWorkspace(const DetectionProblem& problem);
// Overwrites all rows x 7 numbers: objects by image, class, then falling score; those left over are -1. Threaded over
// images and classes; allocates nothing.
void DetectObjects(const DetectionProblem& problem, const DetectionInputs& inputs, float* objects,
                   std::byte* workspace);

}  // namespace crema

#endif  // CREMA_OPS_DETECTION_OUTPUT_H_
