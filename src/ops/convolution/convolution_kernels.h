// The candidates behind MakeConvolution, one source file each.
#ifndef CREMA_OPS_CONVOLUTION_CONVOLUTION_KERNELS_H_
#define CREMA_OPS_CONVOLUTION_CONVOLUTION_KERNELS_H_

#include "ops/convolution/convolution.h"

namespace crema {

// Null, too, where the definition is faster.
std::unique_ptr<ConvolutionKernel> MakeConvolutionWinograd(const ConvolutionProblem& problem, const Device& device,
                                                           std::string* why_not);
std::unique_ptr<ConvolutionKernel> MakeConvolutionOneDnn(const ConvolutionProblem& problem, const Device& device,
                                                         std::string* why_not);
std::unique_ptr<ConvolutionKernel> MakeConvolutionReference(const ConvolutionProblem& problem, const Device& device,
                                                            std::string* why_not);

}  // namespace crema

#endif  // CREMA_OPS_CONVOLUTION_CONVOLUTION_KERNELS_H_
