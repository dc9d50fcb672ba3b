#include "ops/arrays/box.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"

namespace crema {

Box::Box(const Shape& whole, const Shape& extent, const std::vector<int64_t>& offset) {
  int64_t stride = 1;
  rows_ = width_ = 1;
  bool in_row = true;  // until an axis is cut, everything before it is one row
  for (int i = whole.axes() - 1; i >= 0; --i) {
    begin_ += offset[i] * stride;
    if (in_row) {
      width_ *= extent[i];
    } else {
      rows_ *= extent[i];
      extents_[axes_] = extent[i];
      strides_[axes_++] = stride;
    }
    in_row &= extent[i] == whole[i];
    stride *= whole[i];
  }
}

bool Box::IsMultipleOf(int64_t elements) const {
  return begin_ % elements == 0 && width_ % elements == 0 &&
         std::all_of(strides_, strides_ + axes_, [=](int64_t stride) { return stride % elements == 0; });
}

template <typename CopyRow>
void Box::ForEachRow(const CopyRow& copy) const {
  constexpr int64_t kGrain = 32768;  // elements worth waking a thread for
  if (width_ == 0) return;
  ParallelFor(rows_, std::max<int64_t>(1, kGrain / width_), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) copy(RowBegin(row), row * width_);
  });
}

void Box::CopyOut(const float* whole, float* box) const {
  ForEachRow(
      [&](int64_t in_whole, int64_t in_box) { std::memcpy(box + in_box, whole + in_whole, width_ * sizeof *box); });
}

void Box::CopyIn(const float* box, float* whole) const {
  ForEachRow(
      [&](int64_t in_whole, int64_t in_box) { std::memcpy(whole + in_whole, box + in_box, width_ * sizeof *box); });
}

}  // namespace crema
