#include "cuda/operations.h"
#include "ops/detection/detection_evaluation_formulas.h"

namespace crema::cuda {

namespace {

constexpr int64_t kFound = DetectionEvaluation::kFound;
constexpr int64_t kResult = DetectionEvaluation::kResult;

struct FindObject {
  DetectionEvaluation evaluation;
  const float *found, *objects;
  int32_t* object_of;
  __device__ void operator()(int64_t i) const {
    object_of[i] = detections::FoundObject(evaluation, found + i * kFound, objects);
  }
};

// Row i of the results, where it is one of a class, or as one that is left over.
struct WriteOther {
  DetectionEvaluation evaluation;
  const float* objects;
  float* results;
  __device__ void operator()(int64_t i) const {
    if (i < evaluation.counted_classes()) return detections::WriteClass(evaluation, i, objects, results);
    for (int64_t k = 0; k < kResult; ++k) results[i * kResult + k] = -1.0f;
  }
};

// Row i of what was found, where it belongs: behind as many rows as come before it. Threads look at the same other row
// at a time, which is one access for all of a warp.
struct WriteSorted {
  DetectionEvaluation evaluation;
  const float *found, *objects;
  const int32_t* object_of;
  float* results;
  __device__ void operator()(int64_t i) const {
    const float* const row = found + i * kFound;
    if (!detections::IsRow(row)) return;
    const int32_t object = object_of[i];
    int64_t before = 0;
    bool again = false;  // one of them found the same object
    for (int64_t k = 0; k < evaluation.found; ++k) {
      if (!detections::IsRow(found + k * kFound) || !detections::ComesBefore(found, k, i)) continue;
      ++before;
      again = again || (object >= 0 && object_of[k] == object);
    }
    float* const result = results + (evaluation.counted_classes() + before) * kResult;
    detections::WriteFound(evaluation, row, objects, object, again, result);
  }
};

}  // namespace

void CudaOperations::EvaluateDetections(const DetectionEvaluation& evaluation, const float* found, const float* objects,
                                        std::byte* workspace, float* results) {
  int32_t* const object_of = reinterpret_cast<int32_t*>(workspace);
  ForEach(queue(), evaluation.results(), WriteOther{evaluation, objects, results});
  ForEach(queue(), evaluation.found, FindObject{evaluation, found, objects, object_of});
  ForEach(queue(), evaluation.found, WriteSorted{evaluation, found, objects, object_of, results});
}

}  // namespace crema::cuda
