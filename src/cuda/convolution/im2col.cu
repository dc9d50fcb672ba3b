#include "cuda/arrays/lanes.h"
#include "cuda/arrays/rows.h"
#include "cuda/operations.h"
#include "ops/convolution/im2col.h"

namespace crema::cuda {

namespace {

struct Split {
  __device__ int64_t operator()(int64_t* value, int64_t by) const { return SplitOff(value, by); }
};

struct ColumnRow {
  Im2colProblem problem;
  const float* image;
  float* columns;

  struct Row {
    const float* from;  // null: padding
    int64_t start, stride, input;
    float* to;
    __device__ void operator()(int64_t i) const {
      const int64_t pixel = start + i * stride;
      to[i] = from != nullptr && pixel >= 0 && pixel < input ? from[pixel] : 0;
    }
  };
  __device__ Row operator()(int64_t row) const {
    const Im2colRow source = SourceOfRow(problem, row, Split());
    const Im2colProblem::Axis& last = problem.last();
    return {source.image < 0 ? nullptr : image + source.image, source.start, last.stride, last.input,
            columns + row * last.output};
  }
};

// Gathers what comes from a pixel, whose numbers along the axes are in `pixel`.
struct ImageRow {
  Im2colProblem problem;
  int64_t places, windows;  // of a window, and of an image
  const float* columns;
  float* image;

  struct Row {
    const ImageRow& rows;
    int64_t row;
    __device__ void operator()(int64_t i) const {
      const Im2colProblem& problem = rows.problem;
      float sum = 0;
      for (int64_t place = 0; place < rows.places; ++place) {
        int64_t rest = place, plane = row, at = 0, stride = 1;
        bool inside = true;
        for (int a = problem.axes - 1; inside && a >= 0; --a) {
          const Im2colProblem::Axis& axis = problem.axis[a];
          const int64_t pixel = a == problem.axes - 1 ? i : SplitOff(&plane, axis.input);
          const int64_t window = WindowWith(axis, pixel, SplitOff(&rest, axis.kernel));
          inside = window >= 0;
          at += window * stride;
          stride *= axis.output;
        }
        if (inside) sum += rows.columns[(plane * rows.places + place) * rows.windows + at];
      }
      rows.image[row * problem.last().input + i] = sum;
    }
  };
  __device__ Row operator()(int64_t row) const { return {*this, row}; }
};

}  // namespace

void CudaOperations::Im2col(const Im2colProblem& problem, const float* image, float* columns) {
  ForEachInRows(queue(), problem.column_rows(), problem.last().output, ColumnRow{problem, image, columns});
}

void CudaOperations::Col2im(const Im2colProblem& problem, const float* columns, float* image) {
  int64_t places = 1, windows = 1;
  for (int i = 0; i < problem.axes; ++i) {
    places *= problem.axis[i].kernel;
    windows *= problem.axis[i].output;
  }
  ForEachInRows(queue(), problem.image_rows(), problem.last().input,
                ImageRow{problem, places, windows, columns, image});
}

}  // namespace crema::cuda
