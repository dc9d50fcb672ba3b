#include "ops/detection/detection_evaluation.h"

#include <algorithm>

#include "base/parallel.h"
#include "ops/detection/detection_evaluation_formulas.h"

namespace crema {

void EvaluateDetections(const DetectionEvaluation& e, const float* found, const float* objects, std::byte* workspace,
                        float* results) {
  constexpr int64_t kGrain = 16384;  // comparisons worth waking a thread for
  int32_t* const object_of = reinterpret_cast<int32_t*>(workspace);
  int32_t* const order = object_of + e.found;
  int32_t* const found_before = order + e.found;
  const int64_t grain = std::max<int64_t>(1, kGrain / (e.objects + 1));
  ParallelFor(e.found, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      object_of[i] = detections::FoundObject(e, found + i * e.kFound, objects);
    }
  });
  ParallelFor(e.counted_classes(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) detections::WriteClass(e, i, objects, results);
  });

  int64_t count = 0;
  for (int64_t i = 0; i < e.found; ++i) {
    if (detections::IsRow(found + i * e.kFound)) order[count++] = static_cast<int32_t>(i);
  }
  std::sort(order, order + count, [&](int32_t i, int32_t k) { return detections::ComesBefore(found, i, k); });
  std::fill_n(found_before, e.objects, 0);
  float* result = results + e.counted_classes() * e.kResult;
  for (int64_t at = 0; at < count; ++at, result += e.kResult) {
    const int32_t i = order[at], object = object_of[i];
    const bool again = object >= 0 && found_before[object]++ > 0;
    detections::WriteFound(e, found + i * e.kFound, objects, object, again, result);
  }
  std::fill(result, results + e.results() * e.kResult, -1.0f);
}

}  // namespace crema
