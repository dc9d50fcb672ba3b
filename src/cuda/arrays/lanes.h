// Neighbouring numbers that a thread has at once, and where they lie.
#ifndef CREMA_CUDA_ARRAYS_LANES_H_
#define CREMA_CUDA_ARRAYS_LANES_H_

#include <cuda_runtime.h>

#include <cstdint>

namespace crema::cuda {

// kCount numbers, a power of two, loaded and stored in as few accesses as there can be.
template <int kCount, typename Number>
struct alignas(kCount * sizeof(Number) < 16 ? kCount * sizeof(Number) : 16) Lanes {
  static constexpr int kWidth = kCount;
  using Value = Number;
  Number values[kCount];
};

// Lanes `at`, counted from `from` in numbers; they must be aligned.
template <int kCount, typename Number>
__device__ Lanes<kCount, Number> LoadLanes(const Number* from, int64_t at) {
  return *reinterpret_cast<const Lanes<kCount, Number>*>(from + at);
}
template <int kCount, typename Number>
__device__ void StoreLanes(const Lanes<kCount, Number>& lanes, Number* to, int64_t at) {
  *reinterpret_cast<Lanes<kCount, Number>*>(to + at) = lanes;
}

// value % by; *value /= by. Both are 0 or more. Most fit 32 bits, of which a quotient costs a fraction.
__device__ inline int64_t SplitOff(int64_t* value, int64_t by) {
  if (by == 1) return 0;
  if ((*value | by) >> 32 == 0) {
    const auto dividend = static_cast<uint32_t>(*value), divisor = static_cast<uint32_t>(by);
    *value = dividend / divisor;
    return dividend % divisor;
  }
  const int64_t rest = *value % by;
  *value /= by;
  return rest;
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_ARRAYS_LANES_H_
