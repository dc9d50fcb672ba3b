#include "cuda/arrays/lanes.h"
#include "cuda/operations.h"
#include "ops/convolution/correlation_formulas.h"

namespace crema::cuda {

namespace {

using Problem = CorrelationProblem;

// Pixels that a displacement moves windows down, or across.
__device__ int64_t Moved(const Problem& p, int64_t displacement) { return (displacement - p.radius) * p.step; }

// A pixel, counted from the padding's first one, of a plane.
__device__ float PixelOf(const Problem& p, const float* plane, int64_t row, int64_t column) {
  const int64_t i = row - p.pad, j = column - p.pad;
  return i >= 0 && i < p.height && j >= 0 && j < p.width ? plane[i * p.width + j] : 0.0f;
}

// One element of the result.
template <typename Formula>
struct CompareWindows {
  Problem p;
  const float *first, *second;
  float* y;

  __device__ void operator()(int64_t at) const {
    const Formula formula;
    int64_t image = at;
    const int64_t column = p.reach + SplitOff(&image, p.columns) * p.stride;
    const int64_t row = p.reach + SplitOff(&image, p.rows) * p.stride;
    const int64_t across = Moved(p, SplitOff(&image, p.side())), down = Moved(p, SplitOff(&image, p.side()));
    float sum = 0;
    for (int64_t c = image * p.channels; c < (image + 1) * p.channels; ++c) {
      const float *const from = first + c * p.plane(), *const other = second + c * p.plane();
      for (int64_t j = row; j < row + p.kernel; ++j) {
        for (int64_t i = column; i < column + p.kernel; ++i) {
          sum += formula(PixelOf(p, from, j, i), PixelOf(p, other, j + down, i + across));
        }
      }
    }
    y[at] = sum * p.share();
  }
};

// The row or column of the result whose window begins so many pixels behind the first one's; -1: none.
__device__ int64_t WindowAt(int64_t pixels, int64_t stride, int64_t windows) {
  const int64_t window = stride == 1 ? pixels : pixels / stride;
  return pixels >= 0 && window * stride == pixels && window < windows ? window : -1;
}

// The gradient of one pixel of an image. kSign: 1 of the first image, -1 of the second.
template <typename Gradient, int kSign>
struct GatherWindows {
  Problem p;
  const float *own, *other, *dy;
  float* dx;

  __device__ void operator()(int64_t at) const {
    const Gradient gradient;
    int64_t plane = at;
    const int64_t column = SplitOff(&plane, p.width) + p.pad, row = SplitOff(&plane, p.height) + p.pad;
    const float value = own[at];
    const float* const others = other + plane * p.plane();
    const float* of_displacement = dy + plane / p.channels * p.displacements() * p.rows * p.columns;
    float sum = 0;
    for (int64_t d = 0; d < p.displacements(); ++d, of_displacement += p.rows * p.columns) {
      const int64_t down = Moved(p, d / p.side()), across = Moved(p, d % p.side());
      float gradients = 0;
      for (int64_t j = 0; j < p.kernel; ++j) {
        const int64_t y = WindowAt(row - j - p.reach - (kSign < 0 ? down : 0), p.stride, p.rows);
        if (y < 0) continue;
        for (int64_t i = 0; i < p.kernel; ++i) {
          const int64_t x = WindowAt(column - i - p.reach - (kSign < 0 ? across : 0), p.stride, p.columns);
          if (x >= 0) gradients += of_displacement[y * p.columns + x];
        }
      }
      sum += gradients * gradient(value, PixelOf(p, others, row + kSign * down, column + kSign * across));
    }
    dx[at] = sum * p.share();
  }
};

template <typename Gradient>
void BackwardOf(const Queue& queue, const Problem& p, const float* first, const float* second, const float* dy,
                float* first_gradient, float* second_gradient) {
  const int64_t pixels = p.images * p.channels * p.plane();
  if (first_gradient) {
    ForEach(queue, pixels, GatherWindows<Gradient, 1>{p, first, second, dy, first_gradient});
  }
  if (second_gradient) {
    ForEach(queue, pixels, GatherWindows<Gradient, -1>{p, second, first, dy, second_gradient});
  }
}

}  // namespace

size_t CudaOperations::CorrelationWorkspace(const CorrelationProblem&) { return 0; }

void CudaOperations::CorrelationForward(const CorrelationProblem& problem, const float* first, const float* second,
                                        float* y, std::byte*) {
  const Problem& p = problem;
  const int64_t elements = p.images * p.displacements() * p.rows * p.columns;
  if (p.subtract) {
    ForEach(queue(), elements, CompareWindows<correlation::Subtract>{p, first, second, y});
  } else {
    ForEach(queue(), elements, CompareWindows<correlation::Multiply>{p, first, second, y});
  }
}

void CudaOperations::CorrelationBackward(const CorrelationProblem& problem, const float* first, const float* second,
                                         const float* dy, float* first_gradient, float* second_gradient, std::byte*) {
  if (problem.subtract) {
    BackwardOf<correlation::SubtractGradient>(queue(), problem, first, second, dy, first_gradient, second_gradient);
  } else {
    BackwardOf<correlation::MultiplyGradient>(queue(), problem, first, second, dy, first_gradient, second_gradient);
  }
}

}  // namespace crema::cuda
