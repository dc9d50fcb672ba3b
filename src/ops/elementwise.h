// Runs a formula (ops/functors.h) over every element of tensors in CPU memory, vectorised and threaded.
#ifndef CREMA_OPS_ELEMENTWISE_H_
#define CREMA_OPS_ELEMENTWISE_H_

#include <cstdint>
#include <type_traits>

#include "base/bfloat16.h"
#include "base/multiversion.h"
#include "base/parallel.h"
#include "crema/tensor.h"
#include "ops/functors.h"

namespace crema {

namespace internal {

template <typename Number, typename>
using ConstNumbers = const Number*;

template <typename Formula, typename Number, typename... Inputs>
CREMA_MULTIVERSION void MapRange(const Formula& given, int64_t n, Number* output, Inputs... inputs) {
  const Formula formula = given;  // a copy that the stores cannot alias
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) output[i] = formula(static_cast<float>(inputs[i])...);
}

template <typename Number, typename Formula, typename... Inputs>
void MapNumbers(const Formula& formula, const Tensor& output, const Inputs&... inputs) {
  constexpr int64_t kGrain = 16384;  // elements worth waking a thread for
  ParallelFor(output.count(), kGrain, [&](int64_t begin, int64_t end) {
    MapRange<Formula, Number, ConstNumbers<Number, Inputs>...>(formula, end - begin,
                                                               static_cast<Number*>(output.raw()) + begin,
                                                               (static_cast<const Number*>(inputs.raw()) + begin)...);
  });
}

}  // namespace internal

// output[i] = formula(inputs[i]...) for tensors of equal count, all f32 or all bf16. The output may be one of the
// inputs.
template <typename Formula, typename... Inputs>
void Map(const Formula& formula, const Tensor& output, const Inputs&... inputs) {
  static_assert((std::is_same_v<Inputs, Tensor> && ...), "inputs are tensors");
  if (output.dtype() == DType::kBF16) {
    internal::MapNumbers<BFloat16>(formula, output, inputs...);
  } else {
    internal::MapNumbers<float>(formula, output, inputs...);
  }
}

}  // namespace crema

#endif  // CREMA_OPS_ELEMENTWISE_H_
