#include "cuda/convolution/convolution_kernels.h"
#include "cuda/operations.h"

namespace crema::cuda {

namespace {

constexpr KernelCandidate<ConvolutionKernel, ConvolutionProblem, CudaGpu> kTable[] = {
    {"cuDNN", MakeConvolutionCudnn},
    {"direct", MakeConvolutionDirect},
};

}  // namespace

std::unique_ptr<ConvolutionKernel> CudaOperations::MakeConvolution(const ConvolutionProblem& problem,
                                                                   KernelChoice* choice, std::string_view only) {
  return ChooseKernel(kTable, problem, gpu_, only, choice);
}

}  // namespace crema::cuda
