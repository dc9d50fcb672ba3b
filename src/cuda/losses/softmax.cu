// Three ways to walk over the classes of a position: a warp that holds them in registers where they lie next to each
// other and are not many, a block where they are many, and threads beside each other where positions are.
#include <cfloat>

#include "cuda/arrays/packs.h"
#include "cuda/arrays/reduce.h"
#include "cuda/operations.h"
#include "ops/arrays/functors.h"

namespace crema::cuda {

namespace {

constexpr int64_t kWarpClasses = 1024;  // at most 32 of a thread
constexpr unsigned kAcross = 32, kAlong = kThreads / kAcross;

// The largest of some numbers, and the sum of exp(x - largest). Starts below every number but one that is -infinity,
// whose difference is no number.
struct Peak {
  float largest = -FLT_MAX, sum = 0;

  __device__ void Add(float x) {
    if (x > largest) {
      sum *= formula::Exp(largest - x);
      largest = x;
    }
    sum += formula::Exp(x - largest);
  }
  __device__ void Add(const Peak& other) {
    const float most = Larger()(largest, other.largest);
    sum = sum * formula::Exp(largest - most) + other.sum * formula::Exp(other.largest - most);
    largest = most;
  }
};

// kItems of each thread of the warp.
template <int kItems>
__global__ void __launch_bounds__(kThreads) ForwardWarps(ClassAxis axis, const float* x, float* y) {
  const unsigned lane = threadIdx.x % 32;
  const int64_t step = int64_t{gridDim.x} * (kThreads / 32);
  for (int64_t row = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32; row < axis.outer; row += step) {
    const float* from = x + row * axis.classes;
    float* to = y + row * axis.classes;
    const int64_t counted = axis.counted(row);
    float value[kItems];
    float largest = -FLT_MAX;
    CREMA_UNROLL
    for (int i = 0; i < kItems; ++i) {
      const int64_t c = i * 32 + lane;
      value[i] = c < counted ? from[c] : -FLT_MAX;
      largest = Larger()(largest, value[i]);
    }
    largest = ReduceWarp(largest, Larger());
    float sum = 0;
    CREMA_UNROLL
    for (int i = 0; i < kItems; ++i) {
      value[i] = i * 32 + lane < counted ? formula::Exp(value[i] - largest) : 0.0f;
      sum += value[i];
    }
    const float scale = 1.0f / SumWarp(sum);
    CREMA_UNROLL
    for (int i = 0; i < kItems; ++i) {
      const int64_t c = i * 32 + lane;
      if (c < axis.classes) to[c] = value[i] * scale;
    }
  }
}

// kWidth classes of each thread at once.
template <int kWidth>
__global__ void __launch_bounds__(kThreads) ForwardBlocks(ClassAxis axis, const float* x, float* y) {
  for (int64_t row = blockIdx.x; row < axis.outer; row += gridDim.x) {
    const float* from = x + row * axis.classes;
    float* to = y + row * axis.classes;
    const int64_t counted = axis.counted(row);
    Peak peak;
    for (int64_t c = threadIdx.x * kWidth; c < counted; c += kThreads * kWidth) {
      float value[kWidth];
      LoadNumbers<kWidth>(from + c, value);
      for (int k = 0; k < kWidth; ++k) {
        if (c + k < counted) peak.Add(value[k]);
      }
    }
    const float largest = ReduceBlock(peak.largest, -FLT_MAX, Larger());
    const float sum = SumBlock(peak.sum * formula::Exp(peak.largest - largest));
    const float scale = 1.0f / sum;
    for (int64_t c = threadIdx.x * kWidth; c < axis.classes; c += kThreads * kWidth) {
      float value[kWidth];
      LoadNumbers<kWidth>(from + c, value);
      for (int k = 0; k < kWidth; ++k) value[k] = c + k < counted ? formula::Exp(value[k] - largest) * scale : 0.0f;
      StoreNumbers<kWidth>(value, to + c);
    }
  }
}

// Where a thread of the third way is: `across` positions beside each other, whose classes `along` threads share out.
struct Place {
  unsigned across, along, column, line;
  int64_t position, first;
  bool inside;

  __device__ Place(const ClassAxis& axis, unsigned lines)
      : across(blockDim.x / lines), along(lines), column(threadIdx.x % across), line(threadIdx.x / across) {
    position = int64_t{blockIdx.x} * across + column;
    inside = position < axis.outer * axis.inner;
    first = inside ? position / axis.inner * axis.classes * axis.inner + position % axis.inner : 0;
  }
};

__global__ void __launch_bounds__(kThreads) ForwardColumns(ClassAxis axis, unsigned lines, const float* x, float* y) {
  __shared__ float largest[kThreads], sums[kThreads];
  const Place place(axis, lines);
  Peak peak;
  if (place.inside) {
    const float* from = x + place.first;
    for (int64_t c = place.line; c < axis.classes; c += place.along) peak.Add(from[c * axis.inner]);
  }
  if (place.along > 1) {
    largest[threadIdx.x] = peak.largest;
    sums[threadIdx.x] = peak.sum;
    __syncthreads();
    peak = Peak();
    for (unsigned line = 0; line < place.along; ++line) {
      const unsigned at = line * place.across + place.column;
      peak.Add(Peak{largest[at], sums[at]});
    }
  }
  if (!place.inside) return;
  const float scale = 1.0f / peak.sum;
  const float* from = x + place.first;
  float* to = y + place.first;
  for (int64_t c = place.line; c < axis.classes; c += place.along) {
    to[c * axis.inner] = formula::Exp(from[c * axis.inner] - peak.largest) * scale;
  }
}

__device__ float Gradient(float y, float dy, float dot) { return y * (dy - dot); }

template <int kItems>
__global__ void __launch_bounds__(kThreads)
    BackwardWarps(int64_t rows, int64_t classes, const float* y, const float* dy, float* dx) {
  const unsigned lane = threadIdx.x % 32;
  const int64_t step = int64_t{gridDim.x} * (kThreads / 32);
  for (int64_t row = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32; row < rows; row += step) {
    const int64_t first = row * classes;
    float probability[kItems], gradient[kItems];
    float dot = 0;
    CREMA_UNROLL
    for (int i = 0; i < kItems; ++i) {
      const int64_t c = i * 32 + lane;
      probability[i] = c < classes ? y[first + c] : 0.0f;
      gradient[i] = c < classes ? dy[first + c] : 0.0f;
      dot += probability[i] * gradient[i];
    }
    dot = SumWarp(dot);
    CREMA_UNROLL
    for (int i = 0; i < kItems; ++i) {
      const int64_t c = i * 32 + lane;
      if (c < classes) dx[first + c] = Gradient(probability[i], gradient[i], dot);
    }
  }
}

template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    BackwardBlocks(int64_t rows, int64_t classes, const float* y, const float* dy, float* dx) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t first = row * classes;
    float dot = 0;
    for (int64_t c = threadIdx.x * kWidth; c < classes; c += kThreads * kWidth) {
      float probability[kWidth], gradient[kWidth];
      LoadNumbers<kWidth>(y + first + c, probability);
      LoadNumbers<kWidth>(dy + first + c, gradient);
      for (int k = 0; k < kWidth; ++k) dot += probability[k] * gradient[k];
    }
    dot = SumBlock(dot);
    for (int64_t c = threadIdx.x * kWidth; c < classes; c += kThreads * kWidth) {
      float probability[kWidth], gradient[kWidth];
      LoadNumbers<kWidth>(y + first + c, probability);
      LoadNumbers<kWidth>(dy + first + c, gradient);
      for (int k = 0; k < kWidth; ++k) gradient[k] = Gradient(probability[k], gradient[k], dot);
      StoreNumbers<kWidth>(gradient, dx + first + c);
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    BackwardColumns(ClassAxis axis, unsigned lines, const float* y, const float* dy, float* dx) {
  __shared__ float dots[kThreads];
  const Place place(axis, lines);
  float dot = 0;
  if (place.inside) {
    for (int64_t c = place.line; c < axis.classes; c += place.along) {
      const int64_t at = place.first + c * axis.inner;
      dot += y[at] * dy[at];
    }
  }
  if (place.along > 1) {
    dots[threadIdx.x] = dot;
    __syncthreads();
    dot = 0;
    for (unsigned line = 0; line < place.along; ++line) dot += dots[line * place.across + place.column];
  }
  if (!place.inside) return;
  for (int64_t c = place.line; c < axis.classes; c += place.along) {
    const int64_t at = place.first + c * axis.inner;
    dx[at] = Gradient(y[at], dy[at], dot);
  }
}

// Calls body(std::integral_constant): the least number of items with which a warp holds the classes.
template <int kItems = 1, typename Body>
void WithItems(int64_t classes, const Body& body) {
  if constexpr (kItems < kWarpClasses / 32) {
    if (classes > kItems * 32) return WithItems<kItems * 2>(classes, body);
  }
  body(std::integral_constant<int, kItems>());
}

// Threads that share the classes of a position out where positions alone do not fill the GPU.
unsigned LinesFor(const Queue& queue, const ClassAxis& axis) {
  const bool many = axis.positions() >= int64_t{queue.multiprocessors} * 1024;
  return many || axis.classes < 2 * kAlong ? 1 : kAlong;
}

unsigned ColumnBlocks(const ClassAxis& axis, unsigned lines) {
  const int64_t across = kThreads / lines;
  return static_cast<unsigned>((axis.positions() + across - 1) / across);
}

}  // namespace

void CudaOperations::SoftmaxForward(const ClassAxis& axis, const float* x, float* y) {
  if (axis.positions() * axis.classes == 0) return;
  if (axis.inner > 1) {
    const unsigned lines = LinesFor(queue(), axis);
    Launch(queue(), ColumnBlocks(axis, lines), kThreads, ForwardColumns, axis, lines, x, y);
  } else if (axis.classes > kWarpClasses) {
    const bool packs = axis.classes % 4 == 0 && IsPackAligned(x) && IsPackAligned(y);
    Launch(queue(), BlocksFor(queue(), axis.outer, 1), kThreads, packs ? ForwardBlocks<4> : ForwardBlocks<1>, axis, x,
           y);
  } else {
    WithItems(axis.classes, [&](auto items) {
      Launch(queue(), BlocksFor(queue(), axis.outer, kThreads / 32), kThreads, ForwardWarps<decltype(items)::value>,
             axis, x, y);
    });
  }
}

void CudaOperations::SoftmaxBackward(const ClassAxis& axis, const float* y, const float* dy, float* dx) {
  if (axis.positions() * axis.classes == 0) return;
  if (axis.inner > 1) {
    const unsigned lines = LinesFor(queue(), axis);
    Launch(queue(), ColumnBlocks(axis, lines), kThreads, BackwardColumns, axis, lines, y, dy, dx);
  } else if (axis.classes > kWarpClasses) {
    const bool packs = axis.classes % 4 == 0 && IsPackAligned(y) && IsPackAligned(dy) && IsPackAligned(dx);
    Launch(queue(), BlocksFor(queue(), axis.outer, 1), kThreads, packs ? BackwardBlocks<4> : BackwardBlocks<1>,
           axis.outer, axis.classes, y, dy, dx);
  } else {
    WithItems(axis.classes, [&](auto items) {
      Launch(queue(), BlocksFor(queue(), axis.outer, kThreads / 32), kThreads, BackwardWarps<decltype(items)::value>,
             axis.outer, axis.classes, y, dy, dx);
    });
  }
}

}  // namespace crema::cuda
