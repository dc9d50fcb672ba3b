// The candidates behind MakePooling, one source file each.
#ifndef CREMA_OPS_POOLING_KERNELS_H_
#define CREMA_OPS_POOLING_KERNELS_H_

#include "ops/pooling.h"

namespace crema {

// Max and average pooling.
std::unique_ptr<PoolingKernel> MakePoolingVectorised(const PoolingProblem& problem, const Device& device,
                                                     std::string* why_not);
// Plain loops for every method.
std::unique_ptr<PoolingKernel> MakePoolingReference(const PoolingProblem& problem, const Device& device,
                                                    std::string* why_not);

}  // namespace crema

#endif  // CREMA_OPS_POOLING_KERNELS_H_
