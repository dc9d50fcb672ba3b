// AdaGrad (Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic optimization",
// JMLR 2011):
//   h <- h + g^2
//   w <- w - rate * g / (sqrt(h) + delta)

#include "solver/rules/update_loop.h"

namespace crema {

namespace {

CREMA_MULTIVERSION void UpdateAdaGrad(const UpdateChunk& chunk, AdaGradFormula formula) {
  UpdateWith<1>(chunk, formula);
}

class AdaGrad : public UpdateRule {
 public:
  explicit AdaGrad(float delta) : formula_{delta} {}
  UpdateFormula formula() const override { return formula_; }
  void Update(const UpdateChunk& chunk) const override { UpdateAdaGrad(chunk, formula_); }

 private:
  AdaGradFormula formula_;
};

}  // namespace

std::unique_ptr<UpdateRule> MakeAdaGrad(const SolverParameter& solver) {
  return std::make_unique<AdaGrad>(solver.delta());
}

}  // namespace crema
