#include "cuda/arrays/axis_permutation.h"
#include "cuda/arrays/lanes.h"
#include "cuda/arrays/numbers.h"
#include "cuda/arrays/rows.h"
#include "cuda/operations.h"

namespace crema::cuda {

namespace {

// Unit: a number or a pack of them, in which rows and strides are counted.
template <typename Unit, int64_t kWidth>
struct CopyPlaces {
  AxisPermutation permutation;
  const Unit* from;
  Unit* to;

  struct Row {
    const Unit* from;
    Unit* to;
    __device__ void operator()(int64_t i) const { to[i] = from[i]; }
  };
  __device__ Row operator()(int64_t i) const {
    const internal::Place place = internal::PlaceAt(permutation, i);
    return {from + place.source / kWidth, to + place.result / kWidth};
  }
};

// Whether every row begins at a multiple of `numbers` and holds as many.
bool IsMultipleOf(const AxisPermutation& permutation, int64_t numbers) {
  bool multiple = permutation.columns() % numbers == 0;
  for (int axis = 1; axis < permutation.axes(); ++axis) {
    multiple &= permutation.source_stride(axis) % numbers == 0;
  }
  return multiple;
}

struct CopyReversed {
  AxisReversal reversal;
  const float* x;
  float* y;
  __device__ void operator()(int64_t i) const {
    int64_t place = i;
    const int64_t inner = SplitOff(&place, reversal.inner), element = SplitOff(&place, reversal.extent);
    y[i] = x[(place * reversal.extent + reversal.extent - 1 - element) * reversal.inner + inner];
  }
};

}  // namespace

void CudaOperations::PermuteAxes(const AxisPermutation& permutation, const Tensor& from, const Tensor& to) {
  CREMA_CHECK(from.dtype() == to.dtype()) << "from " << Name(from.dtype()) << " to " << Name(to.dtype());
  if (permutation.count() == 0) return;
  if (permutation.moves_nothing()) return Copy(from.raw(), to.raw(), to.bytes());
  WithNumber(from.dtype(), [&]<typename Number>(Number* number) {
    const Number* given = As(from, number);
    Number* made = As(to, number);
    constexpr int64_t kWidth = Pack<Number>::kWidth;
    if (permutation.transposes()) {
      Transpose(queue(), permutation, given, made);
    } else if (IsMultipleOf(permutation, kWidth) && IsPackAligned(given) && IsPackAligned(made)) {
      ForEachInRows(queue(), permutation.outer(), permutation.columns() / kWidth,
                    CopyPlaces<Pack<Number>, kWidth>{permutation, reinterpret_cast<const Pack<Number>*>(given),
                                                     reinterpret_cast<Pack<Number>*>(made)});
    } else {
      ForEachInRows(queue(), permutation.outer(), permutation.columns(),
                    CopyPlaces<Number, 1>{permutation, given, made});
    }
  });
}

void CudaOperations::ReverseAxis(const AxisReversal& reversal, const float* x, float* y) {
  ForEach(queue(), reversal.count(), CopyReversed{reversal, x, y});
}

}  // namespace crema::cuda
