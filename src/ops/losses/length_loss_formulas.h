// Lengths of differences, shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_LOSSES_LENGTH_LOSS_FORMULAS_H_
#define CREMA_OPS_LOSSES_LENGTH_LOSS_FORMULAS_H_

#include <cmath>

#include "ops/arrays/elementary_functions.h"
#include "ops/losses/length_loss.h"

namespace crema::length_loss {

CREMA_FORMULA bool IsKnown(float d) { return d == d; }

// Of single differences.
struct Size {
  float plateau;
  CREMA_FORMULA float operator()(float d) const {
    const float size = std::fabs(d);
    return size >= plateau ? size : 0.0f;  // 0 of a NaN, too
  }
  CREMA_FORMULA float operator()(float a, float b) const { return (*this)(a - b); }
  CREMA_FORMULA float Gradient(float d) const {
    const float sign = (d > 0.0f ? 1.0f : 0.0f) - (d < 0.0f ? 1.0f : 0.0f);
    return std::fabs(d) >= plateau ? sign : 0.0f;
  }
};

struct Known {
  CREMA_FORMULA float operator()(float d) const { return IsKnown(d) ? 1.0f : 0.0f; }
  CREMA_FORMULA float operator()(float a, float b) const { return (*this)(a - b); }
};

// Of a place.
struct Place {
  LengthLoss loss;
  LengthInputs inputs;
  int64_t first;  // the offset of its first class

  CREMA_FORMULA float Difference(int64_t c) const {
    const int64_t at = first + c * loss.axis.inner;
    return inputs.b ? inputs.a[at] - inputs.b[at] : inputs.a[at];
  }
  CREMA_FORMULA float Squares() const {
    float sum = 0;
    for (int64_t c = 0; c < loss.axis.classes; ++c) {
      const float d = Difference(c);
      sum += IsKnown(d) ? d * d : 0.0f;
    }
    return loss.scale * sum;
  }
  CREMA_FORMULA bool IsFlat(float squares) const { return squares < loss.plateau * loss.plateau; }
  CREMA_FORMULA float Length() const {
    const float squares = Squares();
    const float sum = (IsFlat(squares) ? 0.0f : squares) + loss.epsilon;
    return loss.power == 0.5f ? std::sqrt(sum) : std::pow(sum, loss.power);
  }
  // What differences are multiplied by in the gradient.
  CREMA_FORMULA float Slope() const {
    const float squares = Squares(), sum = squares + loss.epsilon;
    if (IsFlat(squares) || sum == 0.0f) return 0.0f;
    if (loss.power == 0.5f) return loss.scale / std::sqrt(sum);
    return 2.0f * loss.scale * loss.power * std::pow(sum, loss.power - 1.0f);
  }
};

// What the sum is divided by where that depends on what is known.
CREMA_FORMULA float NormalizerOf(double known, int64_t classes) {
  const double vectors = known / static_cast<double>(classes);
  return static_cast<float>(vectors > 1 ? vectors : 1.0);
}

}  // namespace crema::length_loss

#endif  // CREMA_OPS_LOSSES_LENGTH_LOSS_FORMULAS_H_
