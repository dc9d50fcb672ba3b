// Adam (Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015), in the form of the remark that ends
// its section 2: the bias corrections are folded into the rate. beta1 is momentum, beta2 is momentum2, t counts from 1.
//   m <- beta1 * m + (1 - beta1) * g
//   v <- beta2 * v + (1 - beta2) * g^2
//   w <- w - rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + delta)
#include <cmath>

#include "solver/update_loop.h"

namespace crema {

namespace {

CREMA_MULTIVERSION void UpdateAdam(const UpdateChunk& chunk, AdamFormula formula) { UpdateWith<2>(chunk, formula); }

class Adam : public UpdateRule {
 public:
  explicit Adam(AdamFormula formula) : formula_(formula) {}
  int histories() const override { return 2; }
  float RateFactor(int iteration) const override {
    const double t = iteration + 1.0;
    return static_cast<float>(std::sqrt(1.0 - std::pow(double{formula_.beta2}, t)) /
                              (1.0 - std::pow(double{formula_.beta1}, t)));
  }
  UpdateFormula formula() const override { return formula_; }
  void Update(const UpdateChunk& chunk) const override { UpdateAdam(chunk, formula_); }

 private:
  AdamFormula formula_;
};

}  // namespace

std::unique_ptr<UpdateRule> MakeAdam(const SolverParameter& solver) {
  return std::make_unique<Adam>(AdamFormula{solver.momentum(), solver.momentum2(), solver.delta()});
}

}  // namespace crema
