// Adam (Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015), in the form of the remark that ends
// its section 2: the bias corrections are folded into the rate. beta1 is momentum, beta2 is momentum2, t counts from 1.
//   m <- beta1 * m + (1 - beta1) * g
//   v <- beta2 * v + (1 - beta2) * g^2
//   w <- w - rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + delta)
// AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019): g has no weight decay, and w loses
// rate * weight_decay * w besides, which is not corrected.
#include <cmath>

#include "solver/rules/update_loop.h"

namespace crema {

namespace {

CREMA_MULTIVERSION void UpdateAdam(const UpdateChunk& chunk, AdamFormula formula) { UpdateWith<2>(chunk, formula); }

class Adam : public UpdateRule {
 public:
  Adam(const SolverParameter& solver, bool decouples_decay)
      : formula_{solver.momentum(), solver.momentum2(), solver.delta()}, decouples_decay_(decouples_decay) {}
  int histories() const override { return 2; }
  float RateFactor(int iteration) const override {
    const double t = iteration + 1.0;
    return static_cast<float>(std::sqrt(1.0 - std::pow(double{formula_.beta2}, t)) /
                              (1.0 - std::pow(double{formula_.beta1}, t)));
  }
  bool decouples_decay() const override { return decouples_decay_; }
  UpdateFormula formula() const override { return formula_; }
  void Update(const UpdateChunk& chunk) const override { UpdateAdam(chunk, formula_); }

 private:
  AdamFormula formula_;
  bool decouples_decay_;
};

}  // namespace

std::unique_ptr<UpdateRule> MakeAdam(const SolverParameter& solver) { return std::make_unique<Adam>(solver, false); }

std::unique_ptr<UpdateRule> MakeAdamW(const SolverParameter& solver) { return std::make_unique<Adam>(solver, true); }

}  // namespace crema
