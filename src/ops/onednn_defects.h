// What oneDNN gets wrong, so that others of its implementations are taken there: convolutions of versions 2.6.3 and
// 3.12.1, products of 2.6.3. tests/ops show them, on the processors that have them (DNNL_MAX_CPU_ISA makes one an older
// one).
#ifndef CREMA_OPS_ONEDNN_DEFECTS_H_
#define CREMA_OPS_ONEDNN_DEFECTS_H_

#include "ops/convolution/convolution.h"
#include "ops/matrices/batched_product.h"
#include "ops/matrices/inner_product.h"
#include "ops/onednn.h"

namespace crema::onednn {

// Which implementations compute `problem`, which must outlive the answer, rightly in each direction.
Accepts SoundForward(const ConvolutionProblem& problem);
Accepts SoundSourceGradient(const ConvolutionProblem& problem);
Accepts SoundWeightsGradient(const ConvolutionProblem& problem);

Accepts SoundSourceGradient(const InnerProductProblem& problem);
Accepts SoundProduct(const BatchedProductProblem& problem);

}  // namespace crema::onednn

#endif  // CREMA_OPS_ONEDNN_DEFECTS_H_
