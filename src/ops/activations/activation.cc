#include "ops/activations/activation.h"

#include "ops/activations/activation_formulas.h"
#include "ops/arrays/elementwise.h"

namespace crema {

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

}  // namespace crema
