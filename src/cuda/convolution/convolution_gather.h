// Forward and the gradient of source, each as a sum over the taps: every result gathers what it is made of.
#ifndef CREMA_CUDA_CONVOLUTION_CONVOLUTION_GATHER_H_
#define CREMA_CUDA_CONVOLUTION_CONVOLUTION_GATHER_H_

#include "cuda/convolution/convolution_geometry.h"
#include "cuda/device/launch.h"

namespace crema::cuda {

// What happens to a sum: bias is added (null: none), and what lies there (`sum`), then the activation.
struct GatherEnd {
  const float* bias = nullptr;
  bool sum = false;
  Activation activation = {};
};

// destination = end(the convolution of source); weights are plain, tensors of `dtype`.
void GatherForward(const Queue& queue, const ConvolutionSizes& sizes, DType dtype, const void* source,
                   const float* weights, const GatherEnd& end, void* destination);
// source_gradient = the gradient at destination_gradient.
void GatherSourceGradient(const Queue& queue, const ConvolutionSizes& sizes, DType dtype,
                          const void* destination_gradient, const float* weights, void* source_gradient);

}  // namespace crema::cuda

#endif  // CREMA_CUDA_CONVOLUTION_CONVOLUTION_GATHER_H_
