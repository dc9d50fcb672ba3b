// What of the objects that a detector found is right (Everingham et al., "The PASCAL Visual Object Classes (VOC)
// Challenge", 2010), plain f32 in CPU memory.
#ifndef CREMA_OPS_DETECTION_DETECTION_EVALUATION_H_
#define CREMA_OPS_DETECTION_DETECTION_EVALUATION_H_

#include <cstddef>
#include <cstdint>

#include "base/multiversion.h"
#include "ops/detection/object_rows.h"

namespace crema {

struct DetectionEvaluation {
  // Numbers of a row: of what was found (image, class, score, box), of a true object (ops/detection/object_rows.h), and
  // of the result.
  static constexpr int64_t kFound = 7, kObject = ObjectRows::kNumbers, kResult = 5;

  int64_t found = 0, objects = 0;  // rows; those of image -1 are none
  int64_t classes = 1;
  int64_t background = 0;  // the class that is none
  float overlap_threshold = 0.5f;
  bool difficult_count = true;
  bool clip = false;  // boxes, at the image's borders

  // Rows of the result that tell how many objects there are of a class.
  CREMA_HOST_DEVICE int64_t counted_classes() const { return classes - 1; }
  CREMA_HOST_DEVICE int64_t results() const { return counted_classes() + found; }
  size_t workspace() const { return static_cast<size_t>(2 * found + objects) * sizeof(int32_t); }
};

// First, for each class but the background: -1, class, objects, -1, -1. Then what was found, sorted by image, class,
// falling score, and position: image, class, score, 1 where it is right, 1 where it is wrong. It is right where of all
// objects of its class and image it overlaps most one by overlap_threshold or more that nothing before it has found;
// neither where that object does not count. Rows that are left over hold -1. `workspace`: evaluation.workspace() bytes.
// Threaded.
void EvaluateDetections(const DetectionEvaluation& evaluation, const float* found, const float* objects,
                        std::byte* workspace, float* results);

}  // namespace crema

#endif  // CREMA_OPS_DETECTION_DETECTION_EVALUATION_H_
