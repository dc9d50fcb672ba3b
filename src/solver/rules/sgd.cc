// Stochastic gradient descent with momentum; the history holds the rate, so that a change of rate acts on new gradients
// only:
//   h <- momentum * h + rate * g
//   w <- w - h
#include "solver/rules/update_loop.h"

namespace crema {

namespace {

CREMA_MULTIVERSION void UpdateSgd(const UpdateChunk& chunk, SgdFormula formula) { UpdateWith<1>(chunk, formula); }

class Sgd : public UpdateRule {
 public:
  explicit Sgd(float momentum) : formula_{momentum} {}
  void SetMomentum(float momentum) override { formula_.momentum = momentum; }
  UpdateFormula formula() const override { return formula_; }
  void Update(const UpdateChunk& chunk) const override { UpdateSgd(chunk, formula_); }

 private:
  SgdFormula formula_;
};

}  // namespace

std::unique_ptr<UpdateRule> MakeSgd(const SolverParameter& solver) { return std::make_unique<Sgd>(solver.momentum()); }

}  // namespace crema
