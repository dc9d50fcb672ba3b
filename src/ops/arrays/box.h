// Boxes cut out of dense f32 tensors of any number of axes.
#ifndef CREMA_OPS_ARRAYS_BOX_H_
#define CREMA_OPS_ARRAYS_BOX_H_

#include <cstdint>
#include <vector>

#include "base/multiversion.h"
#include "crema/tensor.h"

namespace crema {

// Where a box lies in a tensor, as rows of neighbouring elements. Built once; copying allocates nothing and is
// threaded.
class Box {
 public:
  Box() = default;
  // Vectors hold one entry for each axis, densest last; offset + extent must not exceed the whole.
  Box(const Shape& whole, const Shape& extent, const std::vector<int64_t>& offset);

  // box = the elements of `whole` inside the box.
  void CopyOut(const float* whole, float* box) const;
  // The elements of `whole` inside the box = box; the others stay.
  void CopyIn(const float* box, float* whole) const;

  CREMA_HOST_DEVICE int64_t rows() const { return rows_; }
  CREMA_HOST_DEVICE int64_t width() const { return width_; }
  // Where row `row` of the box begins in the whole tensor.
  CREMA_HOST_DEVICE int64_t RowBegin(int64_t row) const {
    int64_t at = begin_;
    for (int i = 0; i < axes_; ++i) {
      at += row % extents_[i] * strides_[i];
      row /= extents_[i];
    }
    return at;
  }
  // Whether rows begin at multiples of `elements` and hold as many.
  bool IsMultipleOf(int64_t elements) const;

 private:
  template <typename CopyRow>
  void ForEachRow(const CopyRow& copy) const;

  // The axes that count rows, densest first: extents in the box, strides in the whole tensor. In plain arrays, as
  // kernels of a GPU get boxes by value.
  int64_t extents_[Shape::kMaxAxes] = {}, strides_[Shape::kMaxAxes] = {};
  int axes_ = 0;
  int64_t begin_ = 0, rows_ = 0, width_ = 0;
};

}  // namespace crema

#endif  // CREMA_OPS_ARRAYS_BOX_H_
