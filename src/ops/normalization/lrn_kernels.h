// The candidates behind MakeLrn, one source file each.
#ifndef CREMA_OPS_NORMALIZATION_LRN_KERNELS_H_
#define CREMA_OPS_NORMALIZATION_LRN_KERNELS_H_

#include "ops/normalization/lrn.h"

namespace crema {

std::unique_ptr<LrnKernel> MakeLrnAcrossVectorised(const LrnProblem& problem, const Device& device,
                                                   std::string* why_not);
std::unique_ptr<LrnKernel> MakeLrnAcrossChannelsLast(const LrnProblem& problem, const Device& device,
                                                     std::string* why_not);
std::unique_ptr<LrnKernel> MakeLrnWithinVectorised(const LrnProblem& problem, const Device& device,
                                                   std::string* why_not);
std::unique_ptr<LrnKernel> MakeLrnReference(const LrnProblem& problem, const Device& device, std::string* why_not);

}  // namespace crema

#endif  // CREMA_OPS_NORMALIZATION_LRN_KERNELS_H_
