#include "ops/convolution/im2col.h"

#include <algorithm>

#include "base/multiversion.h"
#include "base/parallel.h"

namespace crema {

namespace {

using Axis = Im2colProblem::Axis;

constexpr int64_t kGrain = 32768;  // elements worth waking a thread for

int64_t SplitOff(int64_t* value, int64_t by) {
  const int64_t rest = *value % by;
  *value /= by;
  return rest;
}

// The windows [begin, end) along an axis whose pixel start + window * stride is inside.
struct Inside {
  Inside(const Axis& axis, int64_t start)
      : begin(std::min(axis.output, start < 0 ? (axis.stride - 1 - start) / axis.stride : 0)),
        end(start < axis.input ? std::clamp((axis.input - start + axis.stride - 1) / axis.stride, begin, axis.output)
                               : begin) {}
  int64_t begin, end;
};

CREMA_MULTIVERSION void Gather(int64_t n, const float* from, int64_t stride, float* to) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
}
CREMA_MULTIVERSION void AddTo(int64_t n, const float* from, float* to, int64_t stride) {
  if (stride == 1) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] += from[i];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i * stride] += from[i];
  }
}

// A row of an image: adds what lies in the columns of each place of the window.
void GatherRow(const Im2colProblem& problem, int64_t row, const float* columns, float* to) {
  const Axis& last = problem.last();
  std::fill(to, to + last.input, 0.0f);
  int64_t pixel[Shape::kMaxAxes], places = 1;
  for (int i = problem.axes - 2; i >= 0; --i) {
    pixel[i] = SplitOff(&row, problem.axis[i].input);
    places *= problem.axis[i].kernel;
  }
  int64_t windows = 1;
  for (int i = 0; i < problem.axes - 1; ++i) windows *= problem.axis[i].output;
  for (int64_t place = 0; place < places; ++place) {
    int64_t rest = place, at = 0, stride = 1;
    bool inside = true;
    for (int i = problem.axes - 2; i >= 0; --i) {
      const int64_t window = WindowWith(problem.axis[i], pixel[i], SplitOff(&rest, problem.axis[i].kernel));
      inside &= window >= 0;
      at += window * stride;
      stride *= problem.axis[i].output;
    }
    if (!inside) continue;
    for (int64_t k = 0; k < last.kernel; ++k) {
      const int64_t start = k * last.dilation - last.pad;
      const Inside range(last, start);
      const int64_t from = ((row * places + place) * last.kernel + k) * windows + at;
      AddTo(range.end - range.begin, columns + from * last.output + range.begin, to + start + range.begin * last.stride,
            last.stride);
    }
  }
}

}  // namespace

int64_t Im2colProblem::image_rows() const {
  int64_t rows = planes;
  for (int i = 0; i < axes - 1; ++i) rows *= axis[i].input;
  return rows;
}

int64_t Im2colProblem::column_rows() const {
  int64_t rows = planes * last().kernel;
  for (int i = 0; i < axes - 1; ++i) rows *= axis[i].kernel * axis[i].output;
  return rows;
}

void Im2col(const Im2colProblem& problem, const float* image, float* columns) {
  const Axis& last = problem.last();
  ParallelFor(problem.column_rows(), std::max<int64_t>(1, kGrain / last.output), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* to = columns + row * last.output;
      const Im2colRow source = SourceOfRow(problem, row, SplitOff);
      if (source.image < 0) {
        std::fill(to, to + last.output, 0.0f);
        continue;
      }
      const Inside range(last, source.start);
      std::fill(to, to + range.begin, 0.0f);
      Gather(range.end - range.begin, image + source.image + source.start + range.begin * last.stride, last.stride,
             to + range.begin);
      std::fill(to + range.end, to + last.output, 0.0f);
    }
  });
}

void Col2im(const Im2colProblem& problem, const float* columns, float* image) {
  const Axis& last = problem.last();
  int64_t work = last.input;  // of a row
  for (int i = 0; i < problem.axes; ++i) work *= problem.axis[i].kernel;
  ParallelFor(problem.image_rows(), std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work)),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) GatherRow(problem, row, columns, image + row * last.input);
              });
}

}  // namespace crema
