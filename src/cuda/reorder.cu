#include <type_traits>

#include "base/check.h"
#include "cuda/arrays/axis_permutation.h"
#include "cuda/arrays/lanes.h"
#include "cuda/arrays/numbers.h"
#include "cuda/operations.h"
#include "ops/reorder.h"

namespace crema::cuda {

namespace {

// Of eight numbers either type is loaded and stored in packs.
template <typename From, typename To>
struct ConvertEight {
  const From* from;
  To* to;
  int64_t n;
  bool aligned;

  __device__ void operator()(int64_t i) const {
    if (aligned && 8 * i + 8 <= n) {
      const Lanes<8, From> given = reinterpret_cast<const Lanes<8, From>*>(from)[i];
      Lanes<8, To> made;
      for (int k = 0; k < 8; ++k) made.values[k] = To(static_cast<float>(given.values[k]));
      reinterpret_cast<Lanes<8, To>*>(to)[i] = made;
      return;
    }
    for (int64_t k = 8 * i; k < n && k < 8 * i + 8; ++k) to[k] = To(static_cast<float>(from[k]));
  }
};

}  // namespace

void CudaOperations::Reorder(const Tensor& from, const Tensor& to) {
  const AxisPermutation permutation = PermutationOfLayouts(from, to);
  const int64_t n = permutation.count();
  if (n == 0) return;
  const bool in_order = permutation.moves_nothing();
  if (in_order && from.dtype() == to.dtype()) return Copy(from.raw(), to.raw(), to.bytes());
  WithNumber(from.dtype(), [&]<typename From>(From* given) {
    WithNumber(to.dtype(), [&]<typename To>(To* made) {
      // A net computes in one of the types of 16 bits.
      if constexpr (sizeof(From) == 2 && sizeof(To) == 2 && !std::is_same_v<From, To>) {
        CREMA_CHECK(false) << "from " << Name(from.dtype()) << " to " << Name(to.dtype());
      } else if (in_order) {
        const bool aligned = IsPackAligned(from.raw()) && IsPackAligned(to.raw());
        ForEach(queue(), (n + 7) / 8, ConvertEight<From, To>{As(from, given), As(to, made), n, aligned});
      } else {
        Transpose(queue(), permutation, As(from, given), As(to, made));
      }
    });
  });
}

}  // namespace crema::cuda
