// Numbers in GPU memory: single ones, and packs of 16 bytes, which is what a thread loads at once.
#ifndef CREMA_CUDA_ARRAYS_NUMBERS_H_
#define CREMA_CUDA_ARRAYS_NUMBERS_H_

#include <cstdint>

#include "base/bfloat16.h"
#include "base/check.h"
#include "base/float16.h"
#include "crema/tensor.h"

namespace crema::cuda {

template <typename Number>
struct alignas(16) Pack {
  static constexpr int kWidth = 16 / sizeof(Number);
  Number values[kWidth];
};

inline bool IsPackAligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

// Calls body with a null Number*: float, BFloat16 or Float16.
template <typename Body>
void WithNumber(DType dtype, const Body& body) {
  CREMA_CHECK(dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16)
      << "numbers of type " << Name(dtype);
  if (dtype == DType::kBF16) return body(static_cast<BFloat16*>(nullptr));
  if (dtype == DType::kF16) return body(static_cast<Float16*>(nullptr));
  body(static_cast<float*>(nullptr));
}

template <typename Number>
Number* As(const Tensor& tensor, Number*) {
  return static_cast<Number*>(tensor.raw());
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_ARRAYS_NUMBERS_H_
