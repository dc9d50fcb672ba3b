// The gradient of a convolution's weights: sums over all pixels of the batch, in two stages of fixed order.
#ifndef CREMA_CUDA_CONVOLUTION_CONVOLUTION_WEIGHTS_H_
#define CREMA_CUDA_CONVOLUTION_CONVOLUTION_WEIGHTS_H_

#include <cstddef>

#include "cuda/convolution/convolution_geometry.h"
#include "cuda/device/launch.h"

namespace crema::cuda {

size_t WeightsGradientWorkspace(const Queue& queue, const ConvolutionSizes& sizes);
// Writes the plain gradient; tensors are of `dtype`.
void WeightsGradient(const Queue& queue, const ConvolutionSizes& sizes, DType dtype, const void* source,
                     const void* destination_gradient, float* gradient, std::byte* workspace);

}  // namespace crema::cuda

#endif  // CREMA_CUDA_CONVOLUTION_CONVOLUTION_WEIGHTS_H_
