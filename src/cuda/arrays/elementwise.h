// Runs a formula (ops/arrays/functors.h) over every element of tensors in GPU memory.
#ifndef CREMA_CUDA_ARRAYS_ELEMENTWISE_H_
#define CREMA_CUDA_ARRAYS_ELEMENTWISE_H_

#include "cuda/arrays/numbers.h"
#include "cuda/device/launch.h"
#include "ops/arrays/functors.h"

namespace crema::cuda {

namespace internal {

template <typename>
struct Const {
  using Pointer = const void*;
};

template <typename Formula, typename Number, typename... Inputs>
struct PackedMap {
  Formula formula;
  Number* output;
  int64_t n;

  // Pack i; the last one may be a part.
  __device__ void operator()(int64_t i, Inputs... inputs) const {
    constexpr int kWidth = Pack<Number>::kWidth;
    const int64_t at = i * kWidth;
    if (at + kWidth <= n) {
      Run(reinterpret_cast<Pack<Number>*>(output) + i, (reinterpret_cast<const Pack<Number>*>(inputs)[i])...);
      return;
    }
    for (int64_t k = at; k < n; ++k) {
      output[k] = Number(formula(static_cast<float>(static_cast<const Number*>(inputs)[k])...));
    }
  }

 private:
  template <typename... Packs>
  __device__ void Run(Pack<Number>* to, const Packs... packs) const {
    Pack<Number> result;
    for (int k = 0; k < Pack<Number>::kWidth; ++k) {
      result.values[k] = Number(formula(static_cast<float>(packs.values[k])...));
    }
    *to = result;
  }
};

template <typename Map, typename... Inputs>
__global__ void MapKernel(int64_t packs, Map map, Inputs... inputs) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < packs; i += stride) map(i, inputs...);
}

template <typename Number, typename Formula, typename... Inputs>
void MapNumbers(const Queue& queue, const Formula& formula, int64_t n, Number* output, Inputs... inputs) {
  using Map = PackedMap<Formula, Number, Inputs...>;
  const int64_t packs = (n + Pack<Number>::kWidth - 1) / Pack<Number>::kWidth;
  Launch(queue, BlocksFor(queue, packs), kThreads, MapKernel<Map, Inputs...>, packs, Map{formula, output, n},
         inputs...);
}

}  // namespace internal

// output[i] = formula(inputs[i]...) for tensors of equal count, all of one type, each aligned to 16 bytes. The
// output may be one of the inputs.
template <typename Formula, typename... Inputs>
void Map(const Queue& queue, const Formula& formula, const Tensor& output, const Inputs&... inputs) {
  if (output.count() == 0) return;
  CREMA_CHECK(IsPackAligned(output.raw()) && (IsPackAligned(inputs.raw()) && ...)) << "a tensor is not aligned";
  WithNumber(output.dtype(), [&](auto number) {
    internal::MapNumbers(queue, formula, output.count(), As(output, number),
                         static_cast<typename internal::Const<Inputs>::Pointer>(inputs.raw())...);
  });
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_ARRAYS_ELEMENTWISE_H_
