// Work on the rows of matrices.
#ifndef CREMA_CUDA_ARRAYS_ROWS_H_
#define CREMA_CUDA_ARRAYS_ROWS_H_

#include <algorithm>

#include "cuda/device/launch.h"

namespace crema::cuda {

namespace internal {

// Blocks of many short rows or of pieces of long ones.
template <typename MakeRow>
__global__ void ForEachInRowsKernel(int64_t rows, int64_t width, MakeRow make_row) {
  const int64_t row_stride = int64_t{gridDim.x} * blockDim.y, stride = int64_t{gridDim.y} * blockDim.x;
  const int64_t first = int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  for (int64_t row = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; row < rows; row += row_stride) {
    const auto body = make_row(row);
    for (int64_t i = first; i < width; i += stride) body(i);
  }
}

}  // namespace internal

// Calls make_row(row)(i) for rows [0, rows) and i in [0, width), in no order; make_row is called once for each row that
// a thread works on. `make_row`: a __device__ function object, copied.
template <typename MakeRow>
void ForEachInRows(const Queue& queue, int64_t rows, int64_t width, const MakeRow& make_row) {
  if (rows <= 0 || width <= 0) return;
  unsigned across = 1;
  while (across < kThreads && across < width) across *= 2;
  const unsigned down = kThreads / across;
  const int64_t most = int64_t{queue.multiprocessors} * 16;
  const int64_t high = std::min((rows + down - 1) / down, most);
  const int64_t wide = std::clamp<int64_t>(most / high, 1, (width + across - 1) / across);
  Launch(queue, dim3(static_cast<unsigned>(high), static_cast<unsigned>(wide)), dim3(across, down),
         internal::ForEachInRowsKernel<MakeRow>, rows, width, make_row);
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_ARRAYS_ROWS_H_
