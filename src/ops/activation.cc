#include "ops/activation.h"

#include "ops/elementwise.h"

namespace crema {

namespace {

using Kind = Activation::Kind;

struct Identity {
  CREMA_FORMULA float operator()(float x) const { return x; }
};
struct IdentityGradient {
  CREMA_FORMULA float operator()(float dy, float) const { return dy; }
};

// Calls run(formula) with the activation's.
template <typename Run>
void WithFormula(const Activation& activation, const Run& run) {
  switch (activation.kind) {
    case Kind::kNone:
      return run(Identity{});
    case Kind::kRelu:
      return activation.parameter == 0 ? run(formula::Relu{}) : run(formula::LeakyRelu{activation.parameter});
    case Kind::kRelu6:
      return run(formula::Relu6{});
    case Kind::kSigmoid:
      return run(formula::Sigmoid{});
    case Kind::kTanh:
      return run(formula::HyperbolicTangent{});
    case Kind::kSwish:
      return run(formula::Swish{activation.parameter});
  }
}

template <typename Run>
void WithGradient(const Activation& activation, const Run& run) {
  switch (activation.kind) {
    case Kind::kNone:
      return run(IdentityGradient{});
    case Kind::kRelu:
      return activation.parameter == 0 ? run(formula::ReluGradient{})
                                       : run(formula::LeakyReluGradient{activation.parameter});
    case Kind::kRelu6:
      return run(formula::Relu6Gradient{});
    case Kind::kSigmoid:
      return run(formula::SigmoidGradient{});
    case Kind::kTanh:
      return run(formula::HyperbolicTangentGradient{});
    case Kind::kSwish:
      return run(formula::SwishGradient{activation.parameter});
  }
}

}  // namespace

void RunActivation(const Activation& activation, const Tensor& x, const Tensor& y) {
  WithFormula(activation, [&](const auto& formula) { Map(formula, y, x); });
}

void RunActivationGradient(const Activation& activation, const Tensor& known, const Tensor& dy, const Tensor& dx) {
  WithGradient(activation, [&](const auto& formula) { Map(formula, dx, dy, known); });
}

void ActivateFloats(const Activation& activation, int64_t n, const float* x, float* y) {
  WithFormula(activation, [&](const auto& formula) { internal::MapRange(formula, n, y, x); });
}

void ActivationGradientOfFloats(const Activation& activation, int64_t n, const float* known, const float* dy,
                                float* dx) {
  WithGradient(activation, [&](const auto& formula) { internal::MapRange(formula, n, dx, dy, known); });
}

float ActivateFloat(const Activation& activation, float x) {
  WithFormula(activation, [&](const auto& formula) { x = formula(x); });
  return x;
}

}  // namespace crema
