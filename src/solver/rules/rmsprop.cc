// RMSProp (Tieleman and Hinton, "RMSProp: divide the gradient by a running average of its recent magnitude", Coursera
// lecture 6.5, 2012):
//   h <- rms_decay * h + (1 - rms_decay) * g^2
//   w <- w - rate * g / (sqrt(h) + delta)

#include "solver/rules/update_loop.h"

namespace crema {

namespace {

CREMA_MULTIVERSION void UpdateRmsProp(const UpdateChunk& chunk, RmsPropFormula formula) {
  UpdateWith<1>(chunk, formula);
}

class RmsProp : public UpdateRule {
 public:
  explicit RmsProp(RmsPropFormula formula) : formula_(formula) {}
  UpdateFormula formula() const override { return formula_; }
  void Update(const UpdateChunk& chunk) const override { UpdateRmsProp(chunk, formula_); }

 private:
  RmsPropFormula formula_;
};

}  // namespace

std::unique_ptr<UpdateRule> MakeRmsProp(const SolverParameter& solver) {
  return std::make_unique<RmsProp>(RmsPropFormula{solver.rms_decay(), solver.delta()});
}

}  // namespace crema
