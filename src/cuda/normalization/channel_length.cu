#include "cuda/arrays/lanes.h"
#include "cuda/arrays/reduce.h"
#include "cuda/operations.h"

namespace crema::cuda {

namespace {

// A warp for each place whose classes lie side by side.
__global__ void __launch_bounds__(kThreads) LengthsOfRows(int64_t rows, int64_t classes, const float* x, float* y) {
  const unsigned lane = threadIdx.x % 32;
  const int64_t step = int64_t{gridDim.x} * (kThreads / 32);
  for (int64_t i = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32; i < rows; i += step) {
    float sum = 0;
    for (int64_t c = lane; c < classes; c += 32) sum += x[i * classes + c] * x[i * classes + c];
    sum = SumWarp(sum);
    if (lane == 0) y[i] = sqrtf(sum);
  }
}

// One place.
struct LengthOfPlace {
  ClassAxis axis;
  const float* x;
  float* y;

  __device__ void operator()(int64_t place) const {
    int64_t outer = place;
    const float* at = x + SplitOff(&outer, axis.inner);
    at += outer * axis.classes * axis.inner;
    float sum = 0;
    for (int64_t c = 0; c < axis.classes; ++c, at += axis.inner) sum += *at * *at;
    y[place] = sqrtf(sum);
  }
};

// One element.
struct LengthGradient {
  ClassAxis axis;
  const float *x, *y, *dy;
  float* dx;

  __device__ void operator()(int64_t at) const {
    int64_t outer = at;
    const int64_t inner = SplitOff(&outer, axis.inner);
    SplitOff(&outer, axis.classes);
    const int64_t place = outer * axis.inner + inner;
    dx[at] = y[place] == 0.0f ? 0.0f : dy[place] / y[place] * x[at];
  }
};

}  // namespace

void CudaOperations::ChannelLengthForward(const ClassAxis& axis, const float* x, float* y) {
  const int64_t places = axis.positions();
  if (places == 0) return;
  if (axis.inner == 1 && axis.classes > 4) {
    Launch(queue(), BlocksFor(queue(), places, kThreads / 32), kThreads, LengthsOfRows, places, axis.classes, x, y);
  } else {
    ForEach(queue(), places, LengthOfPlace{axis, x, y});
  }
}

void CudaOperations::ChannelLengthBackward(const ClassAxis& axis, const float* x, const float* y, const float* dy,
                                           float* dx) {
  ForEach(queue(), axis.positions() * axis.classes, LengthGradient{axis, x, y, dy, dx});
}

}  // namespace crema::cuda
