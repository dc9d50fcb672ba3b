// Sums over rows of numbers, and what they make of the row: a warp has short rows, a block longer ones, and long rows
// that are few are cut into parts.
#ifndef CREMA_CUDA_ARRAYS_ROW_SUMS_H_
#define CREMA_CUDA_ARRAYS_ROW_SUMS_H_

#include "cuda/arrays/reduce.h"
#include "cuda/device/launch.h"

namespace crema::cuda {

inline constexpr int64_t kWarpRow = 1024;        // at most, of a row that one warp has
inline constexpr int64_t kLeastPart = 4096;      // numbers
inline constexpr int64_t kMostParts = kThreads;  // of a row

// What `Work` is: a type Sums of two doubles, `first` and `second`, and an `origin`; and the functions
//   float Origin(row)                           what terms are counted from, read before anything of the row is written
//   void Add(row, i, origin, first, second)     adds the terms of element i
//   Coefficients Finish(row, sums)
//   void Keep(row, coefficients)                writes what there is one of for each row
//   void Apply(row, i, coefficients)            writes element i
namespace internal {

template <typename Work>
__device__ typename Work::Sums SumSome(const Work& work, int64_t row, int64_t begin, int64_t end, unsigned step) {
  typename Work::Sums sums;
  sums.origin = work.Origin(row);
  for (int64_t i = begin; i < end; i += step) work.Add(row, i, sums.origin, &sums.first, &sums.second);
  return sums;
}

// kGroup threads for each row: a warp or the block.
template <unsigned kGroup, typename Work>
__global__ void __launch_bounds__(kThreads) WholeRows(int64_t rows, int64_t width, Work work) {
  constexpr unsigned kGroups = kThreads / kGroup;
  const unsigned lane = threadIdx.x % kGroup;
  const int64_t step = int64_t{gridDim.x} * kGroups;
  for (int64_t row = int64_t{blockIdx.x} * kGroups + threadIdx.x / kGroup; row < rows; row += step) {
    auto sums = SumSome(work, row, lane, width, kGroup);
    if constexpr (kGroup == 32) {
      sums.first = SumWarp(sums.first);
      sums.second = SumWarp(sums.second);
    } else {
      sums.first = SumBlock(sums.first);
      sums.second = SumBlock(sums.second);
    }
    const auto coefficients = work.Finish(row, sums);
    if (lane == 0) work.Keep(row, coefficients);
    for (int64_t i = lane; i < width; i += kGroup) work.Apply(row, i, coefficients);
  }
}

// Block (x, y) has part x of row y.
template <typename Work>
__global__ void __launch_bounds__(kThreads)
    SumParts(int64_t width, int64_t size, Work work, typename Work::Sums* parts) {
  const int64_t begin = blockIdx.x * size, end = begin + size < width ? begin + size : width;
  auto sums = SumSome(work, blockIdx.y, begin + threadIdx.x, end, kThreads);
  sums.first = SumBlock(sums.first);
  sums.second = SumBlock(sums.second);
  if (threadIdx.x == 0) parts[int64_t{blockIdx.y} * gridDim.x + blockIdx.x] = sums;
}

template <typename Work>
__global__ void __launch_bounds__(kThreads)
    ApplyParts(int64_t width, int64_t size, Work work, const typename Work::Sums* parts) {
  const int64_t row = blockIdx.y, begin = blockIdx.x * size, end = begin + size < width ? begin + size : width;
  const typename Work::Sums* of_row = parts + row * gridDim.x;
  typename Work::Sums sums;
  if (threadIdx.x < gridDim.x) sums = of_row[threadIdx.x];
  sums.first = SumBlock(sums.first);
  sums.second = SumBlock(sums.second);
  sums.origin = of_row[0].origin;
  const auto coefficients = work.Finish(row, sums);
  if (blockIdx.x == 0 && threadIdx.x == 0) work.Keep(row, coefficients);
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) work.Apply(row, i, coefficients);
}

inline int64_t PartsOf(const Queue& queue, int64_t rows, int64_t width) {
  const int64_t wanted = (int64_t{queue.multiprocessors} * 4 + rows - 1) / rows;
  return std::clamp<int64_t>(width / kLeastPart, 1, std::min(wanted, kMostParts));
}

}  // namespace internal

// Bytes of scratch memory.
template <typename Work>
size_t RowScratch(const Queue& queue, int64_t rows, int64_t width) {
  if (rows <= 0 || rows > 2 * queue.multiprocessors) return 0;
  return static_cast<size_t>(rows * internal::PartsOf(queue, rows, width)) * sizeof(typename Work::Sums);
}

template <typename Work>
void OverRows(const Queue& queue, int64_t rows, int64_t width, const Work& work, typename Work::Sums* scratch) {
  if (rows <= 0 || width <= 0) return;
  if (width <= kWarpRow) {
    Launch(queue, BlocksFor(queue, rows, kThreads / 32), kThreads, internal::WholeRows<32, Work>, rows, width, work);
    return;
  }
  const int64_t parts = rows > 2 * queue.multiprocessors ? 1 : internal::PartsOf(queue, rows, width);
  if (parts == 1) {
    Launch(queue, BlocksFor(queue, rows, 1), kThreads, internal::WholeRows<kThreads, Work>, rows, width, work);
    return;
  }
  const int64_t size = (width + parts - 1) / parts;
  const dim3 grid(static_cast<unsigned>((width + size - 1) / size), static_cast<unsigned>(rows));
  Launch(queue, grid, kThreads, internal::SumParts<Work>, width, size, work, scratch);
  Launch(queue, grid, kThreads, internal::ApplyParts<Work>, width, size, work, scratch);
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_ARRAYS_ROW_SUMS_H_
