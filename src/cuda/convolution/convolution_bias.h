// What surrounds the products of a convolution.
#ifndef CREMA_CUDA_CONVOLUTION_CONVOLUTION_BIAS_H_
#define CREMA_CUDA_CONVOLUTION_CONVOLUTION_BIAS_H_

#include <cstddef>

#include "cuda/convolution/convolution_gather.h"

namespace crema::cuda {

// result[i] = the sum over parts of parts[part * n + i], in their order.
void SumParts(const Queue& queue, int64_t parts, int64_t n, const float* sums, float* result);

// destination = end(product), images of `dtype`; the two may be one.
void FinishImages(const Queue& queue, const ImageLayout& layout, int64_t batch, DType dtype, const GatherEnd& end,
                  const void* product, void* destination);

// gradient[channel] = the sum over all pixels of the batch.
size_t BiasGradientWorkspace(const Queue& queue, const ImageLayout& layout, int64_t batch);
void BiasGradient(const Queue& queue, const ImageLayout& layout, int64_t batch, DType dtype,
                  const void* destination_gradient, float* gradient, std::byte* workspace);

}  // namespace crema::cuda

#endif  // CREMA_CUDA_CONVOLUTION_CONVOLUTION_BIAS_H_
