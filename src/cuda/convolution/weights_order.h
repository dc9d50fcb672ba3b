// Weights of convolutions, from the order of files to that of kernels for channels last, and back.
#ifndef CREMA_CUDA_CONVOLUTION_WEIGHTS_ORDER_H_
#define CREMA_CUDA_CONVOLUTION_WEIGHTS_ORDER_H_

#include "crema/tensor.h"
#include "cuda/device/launch.h"

namespace crema::cuda {

struct WeightsExtents {
  int64_t outputs, channels, taps;  // channels of one group
  int64_t count() const { return outputs * channels * taps; }
  // Whether both orders are the same.
  bool one_order() const { return channels == 1 || taps == 1; }
};

// to[output][tap][channel] = from[output][channel][tap], as numbers of that type.
void ToChannelsLast(const Queue& queue, const WeightsExtents& extents, const float* from, DType dtype, void* to);
// to[output][channel][tap] = from[output][tap][channel]
void FromChannelsLast(const Queue& queue, const WeightsExtents& extents, DType dtype, const void* from, float* to);

}  // namespace crema::cuda

#endif  // CREMA_CUDA_CONVOLUTION_WEIGHTS_ORDER_H_
