// What oneDNN's convolutions get wrong, so that others of its implementations are taken there. It was seen of
// versions 2.6.3 and 3.12.1; tests/ops/convolution_test.cc shows them, on the processors that have them
// (DNNL_MAX_CPU_ISA makes one an older one).
#ifndef CREMA_OPS_ONEDNN_DEFECTS_H_
#define CREMA_OPS_ONEDNN_DEFECTS_H_

#include "ops/convolution.h"
#include "ops/onednn.h"

namespace crema::onednn {

// Which implementations compute `problem`, which must outlive the answer, rightly in each direction.
Accepts SoundForward(const ConvolutionProblem& problem);
Accepts SoundSourceGradient(const ConvolutionProblem& problem);
Accepts SoundWeightsGradient(const ConvolutionProblem& problem);

}  // namespace crema::onednn

#endif  // CREMA_OPS_ONEDNN_DEFECTS_H_
