// Numbers in GPU memory as floats of a thread.
#ifndef CREMA_CUDA_ARRAYS_PACKS_H_
#define CREMA_CUDA_ARRAYS_PACKS_H_

#include "cuda/arrays/numbers.h"
#include "cuda/device/launch.h"

namespace crema::cuda {

// kWidth numbers from or to memory in one access: 1, or a pack, which must be aligned.
template <int kWidth, typename Number>
__device__ void LoadNumbers(const Number* from, float* values) {
  if constexpr (kWidth == 1) {
    values[0] = static_cast<float>(*from);
  } else {
    static_assert(kWidth == Pack<Number>::kWidth);
    const Pack<Number> pack = *reinterpret_cast<const Pack<Number>*>(from);
    for (int k = 0; k < kWidth; ++k) values[k] = static_cast<float>(pack.values[k]);
  }
}
template <int kWidth, typename Number>
__device__ void StoreNumbers(const float* values, Number* to) {
  if constexpr (kWidth == 1) {
    *to = Number(values[0]);
  } else {
    Pack<Number> pack;
    for (int k = 0; k < kWidth; ++k) pack.values[k] = Number(values[k]);
    *reinterpret_cast<Pack<Number>*>(to) = pack;
  }
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_ARRAYS_PACKS_H_
