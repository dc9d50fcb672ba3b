// The formulas of functors.h that activations are.
#ifndef CREMA_OPS_ACTIVATIONS_ACTIVATION_FORMULAS_H_
#define CREMA_OPS_ACTIVATIONS_ACTIVATION_FORMULAS_H_

#include "ops/activations/activation.h"
#include "ops/arrays/functors.h"

namespace crema {

namespace formula {

struct Identity {
  CREMA_FORMULA float operator()(float x) const { return x; }
};
struct IdentityGradient {
  CREMA_FORMULA float operator()(float dy, float) const { return dy; }
};

}  // namespace formula

// Calls run(formula) with the activation's, and with its gradient's. The first two are for kernels that hold all links
// of chains (Activation::chains).
CREMA_HOST_DEVICE_TEMPLATE
template <typename Run>
CREMA_HOST_DEVICE void WithLinkFormula(const Activation& activation, const Run& run) {
  using Kind = Activation::Kind;
  const float a = activation.parameter, b = activation.second;
  switch (activation.kind) {
    case Kind::kNone:
      return run(formula::Identity{});
    case Kind::kRelu:
      return a == 0 ? run(formula::Relu{}) : run(formula::LeakyRelu{a});
    case Kind::kRelu6:
      return run(formula::Relu6{});
    case Kind::kSigmoid:
      return run(formula::Sigmoid{});
    case Kind::kTanh:
      return run(formula::HyperbolicTangent{});
    case Kind::kSwish:
      return run(formula::Swish{a});
    case Kind::kHardSwish:
      return run(formula::HardSwish{});
    case Kind::kMish:
      return run(formula::Mish{});
    case Kind::kElu:
      return run(formula::Elu{a});
    case Kind::kAbs:
      return run(formula::Absolute{});
    case Kind::kLinear:
      return a == 0 ? run(formula::Constant{b}) : run(formula::Linear{a, b});
    case Kind::kSquare:
      return run(formula::Square{a, b});
    case Kind::kClip:
      return run(formula::Clip{a, b});
    default:
      return;
  }
}

CREMA_HOST_DEVICE_TEMPLATE
template <typename Run>
CREMA_HOST_DEVICE void WithLinkGradient(const Activation& activation, const Run& run) {
  using Kind = Activation::Kind;
  const float a = activation.parameter, b = activation.second;
  switch (activation.kind) {
    case Kind::kNone:
      return run(formula::IdentityGradient{});
    case Kind::kRelu:
      return a == 0 ? run(formula::ReluGradient{}) : run(formula::LeakyReluGradient{a});
    case Kind::kRelu6:
      return run(formula::Relu6Gradient{});
    case Kind::kSigmoid:
      return run(formula::SigmoidGradient{});
    case Kind::kTanh:
      return run(formula::HyperbolicTangentGradient{});
    case Kind::kSwish:
      return run(formula::SwishGradient{a});
    case Kind::kHardSwish:
      return run(formula::HardSwishGradient{});
    case Kind::kMish:
      return run(formula::MishGradient{});
    case Kind::kElu:
      return run(formula::EluGradient{a});
    case Kind::kAbs:
      return run(formula::AbsoluteGradient{});
    case Kind::kLinear:
      return run(formula::LinearGradient{a});
    case Kind::kSquare:
      return run(formula::SquareGradient{a, b});
    case Kind::kClip:
      return run(formula::ClipGradient{a, b});
    default:
      return;
  }
}

template <typename Run>
void WithFormula(const Activation& activation, const Run& run) {
  using Kind = Activation::Kind;
  const float a = activation.parameter, b = activation.second, c = activation.third;
  switch (activation.kind) {
    case Kind::kBnll:
      return run(formula::Bnll{});
    case Kind::kPower:
      return run(formula::PowerOfLinear{a, b, c});
    case Kind::kExp:
      return run(formula::Exponential{a, b});
    case Kind::kLog:
      return run(formula::Logarithm{a, b, c});
    case Kind::kThreshold:
      return run(formula::Threshold{a});
    case Kind::kGelu:
      return run(formula::Gelu{});
    case Kind::kGeluTanh:
      return run(formula::GeluTanh{});
    default:
      return WithLinkFormula(activation, run);
  }
}

template <typename Run>
void WithGradient(const Activation& activation, const Run& run) {
  using Kind = Activation::Kind;
  const float a = activation.parameter, b = activation.second, c = activation.third;
  switch (activation.kind) {
    case Kind::kBnll:
      return run(formula::BnllGradient{});
    case Kind::kPower:
      return run(formula::PowerOfLinearGradient{a, b, c - 1, c * a});
    case Kind::kExp:
      return run(formula::ExponentialGradient{a});
    case Kind::kLog:
      return run(formula::LogarithmGradient{a, b, a * c});
    case Kind::kGelu:
      return run(formula::GeluGradient{});
    case Kind::kGeluTanh:
      return run(formula::GeluTanhGradient{});
    case Kind::kElu:
      return a < 0 ? run(formula::EluGradientOfInput{a}) : run(formula::EluGradient{a});
    default:
      return WithLinkGradient(activation, run);
  }
}

}  // namespace crema

#endif  // CREMA_OPS_ACTIVATIONS_ACTIVATION_FORMULAS_H_
