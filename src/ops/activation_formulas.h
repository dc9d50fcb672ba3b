// The formulas of functors.h that activations are.
#ifndef CREMA_OPS_ACTIVATION_FORMULAS_H_
#define CREMA_OPS_ACTIVATION_FORMULAS_H_

#include "ops/activation.h"
#include "ops/functors.h"

namespace crema {

namespace formula {

struct Identity {
  CREMA_FORMULA float operator()(float x) const { return x; }
};
struct IdentityGradient {
  CREMA_FORMULA float operator()(float dy, float) const { return dy; }
};

}  // namespace formula

// Calls run(formula) with the activation's, and with its gradient's.
CREMA_HOST_DEVICE_TEMPLATE
template <typename Run>
CREMA_HOST_DEVICE void WithFormula(const Activation& activation, const Run& run) {
  switch (activation.kind) {
    case Activation::Kind::kNone:
      return run(formula::Identity{});
    case Activation::Kind::kRelu:
      return activation.parameter == 0 ? run(formula::Relu{}) : run(formula::LeakyRelu{activation.parameter});
    case Activation::Kind::kRelu6:
      return run(formula::Relu6{});
    case Activation::Kind::kSigmoid:
      return run(formula::Sigmoid{});
    case Activation::Kind::kTanh:
      return run(formula::HyperbolicTangent{});
    case Activation::Kind::kSwish:
      return run(formula::Swish{activation.parameter});
  }
}

CREMA_HOST_DEVICE_TEMPLATE
template <typename Run>
CREMA_HOST_DEVICE void WithGradient(const Activation& activation, const Run& run) {
  switch (activation.kind) {
    case Activation::Kind::kNone:
      return run(formula::IdentityGradient{});
    case Activation::Kind::kRelu:
      return activation.parameter == 0 ? run(formula::ReluGradient{})
                                       : run(formula::LeakyReluGradient{activation.parameter});
    case Activation::Kind::kRelu6:
      return run(formula::Relu6Gradient{});
    case Activation::Kind::kSigmoid:
      return run(formula::SigmoidGradient{});
    case Activation::Kind::kTanh:
      return run(formula::HyperbolicTangentGradient{});
    case Activation::Kind::kSwish:
      return run(formula::SwishGradient{activation.parameter});
  }
}

}  // namespace crema

#endif  // CREMA_OPS_ACTIVATION_FORMULAS_H_
