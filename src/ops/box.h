// Boxes cut out of dense f32 tensors of any number of axes.
#ifndef CREMA_OPS_BOX_H_
#define CREMA_OPS_BOX_H_

#include <cstdint>
#include <vector>

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

 private:
  // Where row `row` of the box begins in the whole tensor.
  int64_t RowBegin(int64_t row) const;
  template <typename CopyRow>
  void ForEachRow(const CopyRow& copy) const;

  struct Axis {
    int64_t extent, stride;  // of the box, in the whole tensor
  };
  std::vector<Axis> axes_;  // that count rows, densest first
  int64_t begin_ = 0, rows_ = 0, width_ = 0;
};

}  // namespace crema

#endif  // CREMA_OPS_BOX_H_
