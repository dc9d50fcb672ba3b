// The pixels that each window of a convolution looks at, laid out as the columns of a matrix.
#ifndef CREMA_OPS_CONVOLUTION_IM2COL_H_
#define CREMA_OPS_CONVOLUTION_IM2COL_H_

#include <cstdint>

#include "base/multiversion.h"
#include "crema/tensor.h"

namespace crema {

// Images are planes x input extents, columns planes x kernel extents x output extents; spatial axes outermost first.
struct Im2colProblem {
  struct Axis {
    int64_t input, kernel, stride, pad, dilation, output;
  };
  int64_t planes = 1;  // images and their channels
  int axes = 0;
  Axis axis[Shape::kMaxAxes] = {};

  CREMA_HOST_DEVICE const Axis& last() const { return axis[axes - 1]; }
  // Rows, along the last axis, of the images and of the columns.
  int64_t image_rows() const;
  int64_t column_rows() const;
};

// Where a row of the columns comes from: element i is the pixel start + i * stride of a row of the image that begins at
// `image`, or 0 outside of it. No row of the image: `image` is below 0.
struct Im2colRow {
  int64_t image, start;
};

// Takes a row of the columns apart; `split_off(&value, by)` gives value % by and divides value.
template <typename SplitOff>
CREMA_HOST_DEVICE inline Im2colRow SourceOfRow(const Im2colProblem& problem, int64_t row, const SplitOff& split_off) {
  int64_t windows = 1;
  for (int i = 0; i < problem.axes - 1; ++i) windows *= problem.axis[i].output;
  int64_t window = split_off(&row, windows);
  const int64_t start = split_off(&row, problem.last().kernel) * problem.last().dilation - problem.last().pad;
  int64_t at = 0, stride = problem.last().input;
  bool inside = true;
  for (int i = problem.axes - 2; i >= 0; --i) {
    const Im2colProblem::Axis& axis = problem.axis[i];
    const int64_t pixel =
        split_off(&window, axis.output) * axis.stride - axis.pad + split_off(&row, axis.kernel) * axis.dilation;
    inside = inside && pixel >= 0 && pixel < axis.input;
    at += pixel * stride;
    stride *= axis.input;
  }
  return {inside ? row * stride + at : -1, start};
}

// The window along an axis that has pixel `pixel` at its place `k`; -1 where there is none.
CREMA_HOST_DEVICE inline int64_t WindowWith(const Im2colProblem::Axis& axis, int64_t pixel, int64_t k) {
  const int64_t begin = pixel + axis.pad - k * axis.dilation;
  const int64_t window = axis.stride == 1 ? begin : begin / axis.stride;
  return begin >= 0 && window * axis.stride == begin && window < axis.output ? window : -1;
}

// Threaded; overwrites all of `columns`.
void Im2col(const Im2colProblem& problem, const float* image, float* columns);
// Each pixel is the sum of the columns' elements that come from it, in the order of their places in the window.
// Threaded; overwrites all of `image`.
void Col2im(const Im2colProblem& problem, const float* columns, float* image);

}  // namespace crema

#endif  // CREMA_OPS_CONVOLUTION_IM2COL_H_
