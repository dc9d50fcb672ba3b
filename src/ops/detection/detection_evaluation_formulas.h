// What ops/detection/detection_evaluation.h does with one row, shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_DETECTION_DETECTION_EVALUATION_FORMULAS_H_
#define CREMA_OPS_DETECTION_DETECTION_EVALUATION_FORMULAS_H_

#include "ops/detection/box_formulas.h"
#include "ops/detection/detection_evaluation.h"

namespace crema::detections {

CREMA_FORMULA BoundingBox BoxAt(const DetectionEvaluation& e, const float* corners) {
  const BoundingBox box = {corners[0], corners[1], corners[2], corners[3]};
  return e.clip ? boxes::Clipped(box) : box;
}

// Rows of either kind begin with image and class. A class of -1 stands for nothing found, too.
CREMA_FORMULA bool IsRow(const float* row) { return row[0] >= 0.0f && row[1] >= 0.0f; }

CREMA_FORMULA bool Counts(const DetectionEvaluation& e, const float* object) {
  return e.difficult_count || object[7] == 0.0f;
}

// The object that a row found: the first one of those that it overlaps most; -1 where there is none.
CREMA_FORMULA int32_t FoundObject(const DetectionEvaluation& e, const float* row, const float* objects) {
  if (!IsRow(row)) return -1;
  const BoundingBox box = BoxAt(e, row + 3);
  float most = -1.0f;
  int32_t which = -1;
  for (int64_t i = 0; i < e.objects; ++i) {
    const float* const object = objects + i * DetectionEvaluation::kObject;
    if (object[0] != row[0] || object[1] != row[1]) continue;
    const float overlap = boxes::Overlap(box, BoxAt(e, object + 3));
    if (overlap > most) {
      most = overlap;
      which = static_cast<int32_t>(i);
    }
  }
  return most >= e.overlap_threshold ? which : -1;
}

// Whether row i of what was found comes before row k. A score that is no number comes last.
CREMA_FORMULA bool ComesBefore(const float* found, int64_t i, int64_t k) {
  const float *const a = found + i * DetectionEvaluation::kFound, *const b = found + k * DetectionEvaluation::kFound;
  if (a[0] != b[0]) return a[0] < b[0];
  if (a[1] != b[1]) return a[1] < b[1];
  const bool a_scores = a[2] == a[2], b_scores = b[2] == b[2];
  if (a_scores != b_scores) return a_scores;
  if (a_scores && a[2] != b[2]) return a[2] > b[2];
  return i < k;
}

// `object`: the one that the row found, or -1; `again`: not as the first one.
CREMA_FORMULA void WriteFound(const DetectionEvaluation& e, const float* row, const float* objects, int32_t object,
                              bool again, float* result) {
  const bool counts = object < 0 || Counts(e, objects + object * DetectionEvaluation::kObject);
  const bool right = object >= 0 && !again;
  result[0] = row[0];
  result[1] = row[1];
  result[2] = row[2];
  result[3] = counts && right ? 1.0f : 0.0f;
  result[4] = counts && !right ? 1.0f : 0.0f;
}

// Row `index` of the results, which is of a class.
CREMA_FORMULA void WriteClass(const DetectionEvaluation& e, int64_t index, const float* objects, float* results) {
  const auto label = static_cast<float>(index < e.background ? index : index + 1);
  int32_t count = 0;
  for (int64_t i = 0; i < e.objects; ++i) {
    const float* const object = objects + i * DetectionEvaluation::kObject;
    count += IsRow(object) && object[1] == label && Counts(e, object) ? 1 : 0;
  }
  float* const result = results + index * DetectionEvaluation::kResult;
  result[0] = -1.0f;
  result[1] = label;
  result[2] = static_cast<float>(count);
  result[3] = -1.0f;
  result[4] = -1.0f;
}

}  // namespace crema::detections

#endif  // CREMA_OPS_DETECTION_DETECTION_EVALUATION_FORMULAS_H_
