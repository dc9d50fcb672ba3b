// Activations chosen when a kernel runs.
#ifndef CREMA_CUDA_ACTIVATIONS_ACTIVATION_H_
#define CREMA_CUDA_ACTIVATIONS_ACTIVATION_H_

#include <cuda_runtime.h>

#include "ops/activations/activation.h"
#include "ops/arrays/functors.h"

namespace crema::cuda {

// Those that convolutions end with, for kernels that spend their time elsewhere: all threads take the same branch.
__device__ inline float Activated(const Activation& activation, float x) {
  switch (activation.kind) {
    case Activation::Kind::kRelu:
      return activation.parameter == 0 ? formula::Relu()(x) : formula::LeakyRelu{activation.parameter}(x);
    case Activation::Kind::kRelu6:
      return formula::Relu6()(x);
    case Activation::Kind::kSigmoid:
      return formula::Sigmoid()(x);
    case Activation::Kind::kTanh:
      return formula::HyperbolicTangent()(x);
    case Activation::Kind::kSwish:
      return formula::Swish{activation.parameter}(x);
    case Activation::Kind::kHardSwish:
      return formula::HardSwish()(x);
    case Activation::Kind::kMish:
      return formula::Mish()(x);
    case Activation::Kind::kElu:
      return formula::Elu{activation.parameter}(x);
    default:
      break;
  }
  return x;
}

}  // namespace crema::cuda

#endif  // CREMA_CUDA_ACTIVATIONS_ACTIVATION_H_
