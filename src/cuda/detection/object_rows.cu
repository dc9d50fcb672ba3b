#include "cuda/device/faults.h"
#include "cuda/operations.h"

namespace crema::cuda {

namespace {

struct IsBadNumber {
  ObjectRows objects;
  const float* values;
  __device__ bool operator()(float, int64_t position) const {
    constexpr int64_t kNumbers = ObjectRows::kNumbers;
    return object_rows::IsBad(objects, values + position / kNumbers * kNumbers, position % kNumbers);
  }
  __device__ int64_t PositionToTell(int64_t position) const {
    return object_rows::BadPosition(objects, values, position);
  }
};

}  // namespace

int64_t CudaOperations::FindBadObject(const ObjectRows& objects, const float* values) {
  ReportFirst(queue(), gpu_.state(), gpu_.unit(), objects.rows * ObjectRows::kNumbers, values,
              IsBadNumber{objects, values});
  return -1;
}

}  // namespace crema::cuda
