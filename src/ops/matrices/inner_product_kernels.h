// Candidates behind MakeInnerProduct that have a source file of their own.
#ifndef CREMA_OPS_MATRICES_INNER_PRODUCT_KERNELS_H_
#define CREMA_OPS_MATRICES_INNER_PRODUCT_KERNELS_H_

#include <memory>
#include <string>

#include "ops/matrices/inner_product.h"

namespace crema {

std::unique_ptr<InnerProductKernel> MakeInnerProductBFloat16(const InnerProductProblem& problem, const Device& device,
                                                             std::string* why_not);

}  // namespace crema

#endif  // CREMA_OPS_MATRICES_INNER_PRODUCT_KERNELS_H_
