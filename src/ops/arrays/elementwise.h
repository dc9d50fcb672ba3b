// Runs a formula (ops/arrays/functors.h) over every element of tensors in CPU memory, vectorised and threaded.
#ifndef CREMA_OPS_ARRAYS_ELEMENTWISE_H_
#define CREMA_OPS_ARRAYS_ELEMENTWISE_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "base/bfloat16.h"
#include "base/multiversion.h"
#include "base/parallel.h"
#include "crema/tensor.h"
#include "ops/arrays/functors.h"

namespace crema {

inline constexpr int64_t kMapGrain = 16384;  // elements worth waking a thread for

namespace internal {

template <typename>
using ConstFloats = const float*;

template <typename Formula, typename... Inputs>
CREMA_MULTIVERSION void MapRange(const Formula& given, int64_t n, float* output, Inputs... inputs) {
  const Formula formula = given;  // a copy that the stores cannot alias
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) output[i] = formula(inputs[i]...);
}

// A strip of an input as floats.
class BFloat16Input {
 public:
  explicit BFloat16Input(const BFloat16* from) : from_(from) {}
  const float* Load(int64_t begin, int64_t n) {
    ToFloats(from_ + begin, n, strip_);
    return strip_;
  }

 private:
  const BFloat16* from_;
  alignas(64) float strip_[kBFloat16Strip];
};

template <typename Formula, typename... Inputs>
void MapBFloat16(const Formula& formula, int64_t begin, int64_t end, BFloat16* output, Inputs&&... inputs) {
  alignas(64) float result[kBFloat16Strip];
  for (int64_t at = begin; at < end; at += kBFloat16Strip) {
    const int64_t n = std::min(kBFloat16Strip, end - at);
    MapRange(formula, n, result, inputs.Load(at, n)...);
    FromFloats(result, n, output + at);
  }
}

}  // namespace internal

// output[i] = formula(inputs[i]...) for tensors of equal count, all f32 or all bf16. The output may be one of the
// inputs.
template <typename Formula, typename... Inputs>
void Map(const Formula& formula, const Tensor& output, const Inputs&... inputs) {
  static_assert((std::is_same_v<Inputs, Tensor> && ...), "inputs are tensors");
  ParallelFor(output.count(), kMapGrain, [&](int64_t begin, int64_t end) {
    if (output.dtype() == DType::kBF16) {
      internal::MapBFloat16(formula, begin, end, output.bf16(), internal::BFloat16Input(inputs.bf16())...);
    } else {
      internal::MapRange<Formula, internal::ConstFloats<Inputs>...>(formula, end - begin, output.f32() + begin,
                                                                    (inputs.f32() + begin)...);
    }
  });
}

// output[i] = formula(inputs[i]...) for i in [0, n). Inputs: pointers to n floats each.
template <typename Formula, typename... Inputs>
void MapFloats(const Formula& formula, int64_t n, float* output, const Inputs*... inputs) {
  ParallelFor(n, kMapGrain, [&](int64_t begin, int64_t end) {
    internal::MapRange<Formula, const Inputs*...>(formula, end - begin, output + begin, (inputs + begin)...);
  });
}

}  // namespace crema

#endif  // CREMA_OPS_ARRAYS_ELEMENTWISE_H_
