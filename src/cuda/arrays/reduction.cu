#include <algorithm>

#include "cuda/arrays/lanes.h"
#include "cuda/arrays/reduce.h"
#include "cuda/arrays/rows.h"
#include "cuda/operations.h"
#include "ops/arrays/reduction.h"

namespace crema::cuda {

namespace {

constexpr unsigned kColumns = 32;  // neighbouring sums of a block, at most
constexpr int kAtOnce = 4;         // loads that are on their way at a time
constexpr int64_t kShortRow = 1024;

__device__ float SumAlong(ReducedTerm term, const float* x, int64_t first, int64_t end, int64_t step, int64_t stride) {
  float sum[kAtOnce] = {};
  int64_t i = first;
  for (; i + (kAtOnce - 1) * step < end; i += kAtOnce * step) {
    float values[kAtOnce];
    CREMA_UNROLL
    for (int k = 0; k < kAtOnce; ++k) values[k] = x[(i + k * step) * stride];
    CREMA_UNROLL
    for (int k = 0; k < kAtOnce; ++k) sum[k] += formula::Term(term, values[k]);
  }
  for (; i < end; i += step) sum[0] += formula::Term(term, x[i * stride]);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Part blockIdx.z of the reduced axis. A block has as many neighbouring sums as threads across; those down share one,
// and are added up in pairs. y[outer][parts][inner]
__global__ void SumParts(Reduction r, const float* x, float* y) {
  __shared__ float sums[kThreads];
  const unsigned across = blockDim.x, here = threadIdx.y * across + threadIdx.x;
  const int64_t column = int64_t{blockIdx.y} * across + threadIdx.x;
  const int64_t size = (r.reduced + gridDim.z - 1) / gridDim.z, begin = blockIdx.z * size;
  const int64_t end = begin + size < r.reduced ? begin + size : r.reduced;
  for (int64_t row = blockIdx.x; row < r.outer; row += gridDim.x) {
    const float* from = x + row * r.reduced * r.inner + column;
    sums[here] = column < r.inner ? SumAlong(r.term, from, begin + threadIdx.y, end, blockDim.y, r.inner) : 0;
    __syncthreads();
    for (unsigned other = blockDim.y / 2; other > 0; other /= 2) {
      if (threadIdx.y < other) sums[here] += sums[here + other * across];
      __syncthreads();
    }
    if (threadIdx.y == 0 && column < r.inner)
      y[(row * gridDim.z + blockIdx.z) * r.inner + column] = r.factor * sums[here];
    __syncthreads();  // before the next row's sums are written
  }
}

// Many short rows: a warp each.
__global__ void SumRows(Reduction r, const float* x, float* y) {
  const unsigned warps = blockDim.x / 32, lane = threadIdx.x % 32;
  for (int64_t row = int64_t{blockIdx.x} * warps + threadIdx.x / 32; row < r.outer; row += int64_t{gridDim.x} * warps) {
    const float sum = SumWarp(SumAlong(r.term, x + row * r.reduced, lane, r.reduced, 32, 1));
    if (lane == 0) y[row] = r.factor * sum;
  }
}

// Many sums: a thread each.
struct SumOfOne {
  Reduction r;
  const float* x;
  float* y;

  __device__ void operator()(int64_t i) const {
    int64_t row = i;
    const int64_t column = SplitOff(&row, r.inner);
    y[i] = r.factor * SumAlong(r.term, x + row * r.reduced * r.inner + column, 0, r.reduced, 1, r.inner);
  }
};

struct GradientOfRow {
  Reduction r;
  const float *dy, *x;
  float* dx;

  struct Row {
    ReducedTerm term;
    float gradient;
    const float* x;
    float* dx;
    __device__ void operator()(int64_t i) const {
      dx[i] = term == ReducedTerm::kValue ? gradient : gradient * formula::TermGradient(term, x[i]);
    }
  };
  __device__ Row operator()(int64_t row) const {
    return {r.term, r.factor * dy[row], x == nullptr ? nullptr : x + row * r.reduced, dx + row * r.reduced};
  }
};

struct RepeatRow {
  Reduction r;
  const float* dy;
  float* dx;

  struct Row {
    float factor;
    const float* from;
    float* to;
    __device__ void operator()(int64_t i) const { to[i] = factor * from[i]; }
  };
  __device__ Row operator()(int64_t row) const {
    int64_t outer = row;
    SplitOff(&outer, r.reduced);
    return {r.factor, dy + outer * r.inner, dx + row * r.inner};
  }
};

unsigned PowerOfTwoFrom(int64_t n, unsigned most) {
  unsigned power = 1;
  while (power < most && power < n) power *= 2;
  return power;
}

}  // namespace

void CudaOperations::Reduce(const Reduction& reduction, const float* x, float* y) {
  const int64_t sums = reduction.outer * reduction.inner;
  if (sums <= 0) return;
  const int64_t many = int64_t{queue().multiprocessors} * 2048;
  if (reduction.reduced <= 32 || (reduction.inner >= kColumns && sums >= many)) {
    return ForEach(queue(), sums, SumOfOne{reduction, x, y});
  }
  constexpr int64_t kWarps = kThreads / 32;
  if (reduction.inner == 1 && reduction.reduced <= kShortRow && sums >= many / 32) {
    const auto blocks = static_cast<unsigned>(std::min<int64_t>((sums + kWarps - 1) / kWarps, int64_t{1} << 30));
    return Launch(queue(), blocks, kThreads, SumRows, reduction, x, y);
  }
  const unsigned across = PowerOfTwoFrom(reduction.inner, kColumns);
  const unsigned down = std::max(PowerOfTwoFrom(reduction.reduced / kAtOnce, kThreads / across), 32 / across);
  const auto rows = static_cast<unsigned>(std::min<int64_t>(reduction.outer, int64_t{1} << 30));
  const auto pieces = static_cast<unsigned>((reduction.inner + across - 1) / across);
  const auto sum = [&](const Reduction& r, unsigned parts, const float* from, float* to) {
    Launch(queue(), dim3(rows, pieces, parts), dim3(across, down), SumParts, r, from, to);
  };
  // Where there are too few sums to keep the GPU busy, each is cut into parts.
  const int64_t wanted = int64_t{queue().multiprocessors} * 4 / std::max<int64_t>(1, int64_t{rows} * pieces);
  const int64_t most = std::max<int64_t>(1, reduction.reduced / (int64_t{down} * kAtOnce));
  const auto parts = static_cast<unsigned>(std::clamp<int64_t>(wanted, 1, most));
  if (parts == 1) return sum(reduction, 1, x, y);
  float* of_parts = Scratch<float>(static_cast<size_t>(sums * parts) * sizeof(float));
  Reduction whole_parts = reduction, sum_of_parts = reduction;
  whole_parts.factor = 1;
  sum_of_parts.term = ReducedTerm::kValue;
  sum_of_parts.reduced = parts;
  sum(whole_parts, parts, x, of_parts);
  sum(sum_of_parts, 1, of_parts, y);
}

void CudaOperations::ReduceGradient(const Reduction& reduction, const float* dy, const float* x, float* dx) {
  if (reduction.inner == 1) {
    ForEachInRows(queue(), reduction.outer, reduction.reduced, GradientOfRow{reduction, dy, x, dx});
  } else {
    ForEachInRows(queue(), reduction.outer * reduction.reduced, reduction.inner, RepeatRow{reduction, dy, dx});
  }
}

}  // namespace crema::cuda
