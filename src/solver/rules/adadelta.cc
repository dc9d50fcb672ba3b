// AdaDelta (Zeiler, "ADADELTA: an adaptive learning rate method", arXiv 1212.5701, 2012), with momentum as its rho and
// a rate, which the paper does not have:
//   a <- momentum * a + (1 - momentum) * g^2
//   d  = g * sqrt((b + delta) / (a + delta))
//   b <- momentum * b + (1 - momentum) * d^2
//   w <- w - rate * d

#include "solver/rules/update_loop.h"

namespace crema {

namespace {

CREMA_MULTIVERSION void UpdateAdaDelta(const UpdateChunk& chunk, AdaDeltaFormula formula) {
  UpdateWith<2>(chunk, formula);
}

class AdaDelta : public UpdateRule {
 public:
  explicit AdaDelta(AdaDeltaFormula formula) : formula_(formula) {}
  int histories() const override { return 2; }
  UpdateFormula formula() const override { return formula_; }
  void Update(const UpdateChunk& chunk) const override { UpdateAdaDelta(chunk, formula_); }

 private:
  AdaDeltaFormula formula_;
};

}  // namespace

std::unique_ptr<UpdateRule> MakeAdaDelta(const SolverParameter& solver) {
  return std::make_unique<AdaDelta>(AdaDeltaFormula{solver.momentum(), solver.delta()});
}

}  // namespace crema
