// Nesterov's accelerated gradient (Nesterov, "A method of solving a convex programming problem with convergence rate
// O(1/k^2)", 1983), in the form of Sutskever et al., ICML 2013, with the look-ahead folded into the stored parameters:
//   h' = momentum * h + rate * g
//   w <- w - ((1 + momentum) * h' - momentum * h)
//   h <- h'
#include "solver/rules/update_loop.h"

namespace crema {

namespace {

CREMA_MULTIVERSION void UpdateNesterov(const UpdateChunk& chunk, NesterovFormula formula) {
  UpdateWith<1>(chunk, formula);
}

class Nesterov : public UpdateRule {
 public:
  explicit Nesterov(float momentum) : formula_{momentum} {}
  void SetMomentum(float momentum) override { formula_.momentum = momentum; }
  UpdateFormula formula() const override { return formula_; }
  void Update(const UpdateChunk& chunk) const override { UpdateNesterov(chunk, formula_); }

 private:
  NesterovFormula formula_;
};

}  // namespace

std::unique_ptr<UpdateRule> MakeNesterov(const SolverParameter& solver) {
  return std::make_unique<Nesterov>(solver.momentum());
}

}  // namespace crema
