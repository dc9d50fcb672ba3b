// The candidates behind CudaOperations::MakeConvolution, one source file each.
#ifndef CREMA_CUDA_CONVOLUTION_CONVOLUTION_KERNELS_H_
#define CREMA_CUDA_CONVOLUTION_CONVOLUTION_KERNELS_H_

#include "cuda/device/gpu.h"
#include "ops/convolution/convolution.h"

namespace crema::cuda {

std::unique_ptr<ConvolutionKernel> MakeConvolutionCudnn(const ConvolutionProblem& problem, CudaGpu& gpu,
                                                        std::string* why_not);
std::unique_ptr<ConvolutionKernel> MakeConvolutionDirect(const ConvolutionProblem& problem, CudaGpu& gpu,
                                                         std::string* why_not);

}  // namespace crema::cuda

#endif  // CREMA_CUDA_CONVOLUTION_CONVOLUTION_KERNELS_H_
