// Stands in for cuDNN, which takes nothing here.
#include "cuda/convolution/convolution_kernels.h"

namespace crema::cuda {

std::unique_ptr<ConvolutionKernel> MakeConvolutionCudnn(const ConvolutionProblem&, CudaGpu&, std::string* why_not) {
  *why_not = "emulated GPU";
  return nullptr;
}

}  // namespace crema::cuda
