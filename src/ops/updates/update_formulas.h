// The formulas of the update rules, each written once: a call takes a gradient, the rate and what the rule remembers of
// the element, changes that, and returns what is subtracted from the element. src/solver/rules/<rule>.cc name the
// papers.
#ifndef CREMA_OPS_UPDATES_UPDATE_FORMULAS_H_
#define CREMA_OPS_UPDATES_UPDATE_FORMULAS_H_

#include <cmath>
#include <variant>

#include "ops/arrays/functors.h"

namespace crema {

struct SgdFormula {
  static constexpr int kHistories = 1;
  float momentum;
  CREMA_FORMULA float operator()(float g, float rate, float& h) const {
    h = momentum * h + rate * g;
    return h;
  }
};

struct NesterovFormula {
  static constexpr int kHistories = 1;
  float momentum;
  CREMA_FORMULA float operator()(float g, float rate, float& h) const {
    const float before = h;
    h = momentum * before + rate * g;
    return (1 + momentum) * h - momentum * before;
  }
};

struct AdaGradFormula {
  static constexpr int kHistories = 1;
  float delta;
  CREMA_FORMULA float operator()(float g, float rate, float& h) const {
    h += g * g;
    return rate * (g / (std::sqrt(h) + delta));
  }
};

struct RmsPropFormula {
  static constexpr int kHistories = 1;
  float decay, delta;
  CREMA_FORMULA float operator()(float g, float rate, float& h) const {
    h = decay * h + (1 - decay) * (g * g);
    return rate * (g / (std::sqrt(h) + delta));
  }
};

struct AdaDeltaFormula {
  static constexpr int kHistories = 2;
  float momentum, delta;
  CREMA_FORMULA float operator()(float g, float rate, float& a, float& b) const {
    a = momentum * a + (1 - momentum) * (g * g);
    const float d = g * std::sqrt((b + delta) / (a + delta));
    b = momentum * b + (1 - momentum) * (d * d);
    return rate * d;
  }
};

struct AdamFormula {
  static constexpr int kHistories = 2;
  float beta1, beta2, delta;
  CREMA_FORMULA float operator()(float g, float rate, float& m, float& v) const {
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * (g * g);
    return rate * (m / (std::sqrt(v) + delta));
  }
};

using UpdateFormula =
    std::variant<SgdFormula, NesterovFormula, AdaGradFormula, RmsPropFormula, AdaDeltaFormula, AdamFormula>;

}  // namespace crema

#endif  // CREMA_OPS_UPDATES_UPDATE_FORMULAS_H_
