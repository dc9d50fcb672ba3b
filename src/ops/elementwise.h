// Runs a formula (ops/functors.h) over every element of tensors in CPU memory, vectorised and threaded.
#ifndef CREMA_OPS_ELEMENTWISE_H_
#define CREMA_OPS_ELEMENTWISE_H_

#include <cstdint>
#include <type_traits>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "crema/tensor.h"
#include "ops/functors.h"

namespace crema {

namespace internal {

template <typename>
using ConstFloats = const float*;

template <typename Formula, typename... Inputs>
CREMA_MULTIVERSION void MapRange(const Formula& given, int64_t n, float* output, Inputs... inputs) {
  const Formula formula = given;  // a copy that the stores cannot alias
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) output[i] = formula(inputs[i]...);
}

}  // namespace internal

// output[i] = formula(inputs[i]...) for f32 tensors of equal count. The output may be one of the inputs.
template <typename Formula, typename... Inputs>
void Map(const Formula& formula, const Tensor& output, const Inputs&... inputs) {
  static_assert((std::is_same_v<Inputs, Tensor> && ...), "inputs are tensors");
  constexpr int64_t kGrain = 16384;  // elements worth waking a thread for
  ParallelFor(output.count(), kGrain, [&](int64_t begin, int64_t end) {
    internal::MapRange<Formula, internal::ConstFloats<Inputs>...>(formula, end - begin, output.f32() + begin,
                                                                  (inputs.f32() + begin)...);
  });
}

}  // namespace crema

#endif  // CREMA_OPS_ELEMENTWISE_H_
