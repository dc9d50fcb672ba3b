// Dense tensors with their axes, or the elements along one, in another order.
#ifndef CREMA_OPS_ARRAYS_AXIS_PERMUTATION_H_
#define CREMA_OPS_ARRAYS_AXIS_PERMUTATION_H_

#include <cstdint>
#include <span>

#include "base/multiversion.h"
#include "crema/tensor.h"

namespace crema {

// How axes move, with neighbours that stay together merged and axes of extent 1 left out. What remains is the same work
// at each place of some outer axes: either a row of neighbouring numbers is copied, or, where the densest axis moves, a
// matrix is transposed. Built once; allocates nothing.
class AxisPermutation {
 public:
  AxisPermutation() = default;
  // Axis i of the result is axis order[i] of the source, which has these extents, densest last. At most
  // Shape::kMaxAxes.
  AxisPermutation(std::span<const int64_t> extents, std::span<const int> order);

  // Whether every number stays where it is in memory.
  bool moves_nothing() const { return axes_ <= 1; }
  CREMA_HOST_DEVICE int64_t count() const { return outer_ * rows_ * columns_; }

  // The source's rows x columns numbers at a place, rows source_stride() apart, become columns x rows, columns
  // result_stride() apart; or else one row is copied.
  bool transposes() const { return transposed_ > 0; }
  CREMA_HOST_DEVICE int64_t rows() const { return rows_; }
  CREMA_HOST_DEVICE int64_t columns() const { return columns_; }
  CREMA_HOST_DEVICE int64_t source_stride() const { return source_strides_[0]; }
  CREMA_HOST_DEVICE int64_t result_stride() const { return result_strides_[transposed_]; }

  // The number of places, which are counted along the outer axes, densest in the result first.
  CREMA_HOST_DEVICE int64_t outer() const { return outer_; }
  CREMA_HOST_DEVICE bool is_outer(int axis) const { return axis != 0 && axis != transposed_; }

  // All axes of the result, densest first, and how far apart their elements are.
  CREMA_HOST_DEVICE int axes() const { return axes_; }
  CREMA_HOST_DEVICE int64_t extent(int axis) const { return extents_[axis]; }
  CREMA_HOST_DEVICE int64_t source_stride(int axis) const { return source_strides_[axis]; }
  CREMA_HOST_DEVICE int64_t result_stride(int axis) const { return result_strides_[axis]; }

 private:
  int64_t extents_[Shape::kMaxAxes] = {}, source_strides_[Shape::kMaxAxes] = {}, result_strides_[Shape::kMaxAxes] = {};
  int axes_ = 0;
  int transposed_ = 0;  // the axis that is densest in the source; 0: also in the result, so rows are copied
  int64_t outer_ = 1, rows_ = 1, columns_ = 1;
};

// Copies numbers, each f32 or bf16 (which rounds to the nearest, ties to even), in the new order. They must not
// overlap. Threaded; allocates nothing.
void PermuteAxes(const AxisPermutation& permutation, const Tensor& from, const Tensor& to);

// The same of a rows x columns matrix, which becomes columns x rows.
void TransposeMatrix(int64_t rows, int64_t columns, const float* from, float* to);

// A tensor around an axis whose elements come in opposite order.
struct AxisReversal {
  int64_t outer = 1, extent = 1, inner = 1;

  CREMA_HOST_DEVICE int64_t count() const { return outer * extent * inner; }
};
// y must not overlap x. Threaded; allocates nothing.
void ReverseAxis(const AxisReversal& reversal, const float* x, float* y);

}  // namespace crema

#endif  // CREMA_OPS_ARRAYS_AXIS_PERMUTATION_H_
