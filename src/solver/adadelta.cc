// AdaDelta (Zeiler, "ADADELTA: an adaptive learning rate method", arXiv 1212.5701, 2012), with momentum as its rho and
// a rate, which the paper does not have:
//   a <- momentum * a + (1 - momentum) * g^2
//   d  = g * sqrt((b + delta) / (a + delta))
//   b <- momentum * b + (1 - momentum) * d^2
//   w <- w - rate * d
#include <cmath>

#include "solver/update_loop.h"

namespace crema {

namespace {

struct AdaDeltaFormula {
  float momentum, delta;
  CREMA_INLINE float operator()(float g, float rate, float& a, float& b) const {
    a = momentum * a + (1 - momentum) * (g * g);
    const float d = g * std::sqrt((b + delta) / (a + delta));
    b = momentum * b + (1 - momentum) * (d * d);
    return rate * d;
  }
};

CREMA_MULTIVERSION void UpdateAdaDelta(const UpdateChunk& chunk, AdaDeltaFormula formula) {
  UpdateWith<2>(chunk, formula);
}

class AdaDelta : public UpdateRule {
 public:
  explicit AdaDelta(AdaDeltaFormula formula) : formula_(formula) {}
  int histories() const override { return 2; }
  void Update(const UpdateChunk& chunk) const override { UpdateAdaDelta(chunk, formula_); }

 private:
  AdaDeltaFormula formula_;
};

}  // namespace

std::unique_ptr<UpdateRule> MakeAdaDelta(const SolverParameter& solver) {
  return std::make_unique<AdaDelta>(AdaDeltaFormula{solver.momentum(), solver.delta()});
}

}  // namespace crema
