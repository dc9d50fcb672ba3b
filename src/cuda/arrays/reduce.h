// Sums and extremes over the threads of a warp or a block, in an order that does not change.
#ifndef CREMA_CUDA_ARRAYS_REDUCE_H_
#define CREMA_CUDA_ARRAYS_REDUCE_H_

#include <cuda_runtime.h>

namespace crema::cuda {

// The same value in all threads of the warp, all of which must call.
template <typename Number, typename Combine>
__device__ Number ReduceWarp(Number value, const Combine& combine) {
  for (int other = 16; other > 0; other /= 2) value = combine(value, __shfl_xor_sync(0xffffffffu, value, other));
  return value;
}

// The same in all threads of the block, of which there must be a multiple of 32 in one dimension; all must call.
// `neutral` changes nothing.
template <typename Number, typename Combine>
__device__ Number ReduceBlock(Number value, Number neutral, const Combine& combine) {
  __shared__ Number of_warp[32];
  value = ReduceWarp(value, combine);
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  __syncthreads();  // of_warp may still be read from a call before
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  return ReduceWarp(lane < blockDim.x / 32 ? of_warp[lane] : neutral, combine);
}

struct Plus {
  template <typename Number>
  __device__ Number operator()(Number a, Number b) const {
    return a + b;
  }
};

// A NaN that comes second is left out.
struct Larger {
  template <typename Number>
  __device__ Number operator()(Number a, Number b) const {
    return b > a ? b : a;
  }
};

struct Smaller {
  template <typename Number>
  __device__ Number operator()(Number a, Number b) const {
    return b < a ? b : a;
  }
};

template <typename Number>
__device__ Number SumBlock(Number value) {
  return ReduceBlock(value, Number{0}, Plus());
}
template <typename Number>
__device__ Number SumWarp(Number value) {
  return ReduceWarp(value, Plus());
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_ARRAYS_REDUCE_H_
