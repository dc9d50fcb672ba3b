#include "layers/group_normalization.h"

#include "layers/field_range.h"
#include "ops/operations.h"

namespace crema {

void GroupNormalization::SetupRows(LayerSetup& setup, const std::string& block, float eps,
                                   const GroupNormProblem& problem) {
  setup.ExpectTops(1);
  const Shape& shape = setup.bottom_shape(0);
  problem_ = problem;
  problem_.eps =
      ReadInRange(setup, block + ".eps", eps, kNotNegative, "it keeps the division by the deviation away from 0");
  if (problem_.width() == 1) {
    setup.Warn("bottom", "\"" + setup.param().bottom(0) + "\" is " + shape.ToString() +
                             ", where every mean is of one number, so that nothing of it is left");
  }
  setup.SetTop(0, shape);
  setup.AllowInPlace();
  setup.SetFlops(static_cast<double>(shape.count()) * 8);
}

void GroupNormalization::Plan(LayerPlan& plan) {
  keeps_ = plan.backward();
  if (!keeps_) return;
  plan.BackwardReadsBottom(0);
  static_assert(sizeof(RowMoments) == 3 * sizeof(float));
  plan.Save({Shape{problem_.rows(), 3}, DType::kF32});
  plan.Workspace(0, OperationsOf(*plan.context().device).GroupNormBackwardWorkspace(problem_));
}

void GroupNormalization::Forward(const LayerRun& run) {
  run.ops->GroupNormForward(problem_, run.bottoms[0].f32(), has_scale_ ? run.params[0].f32() : nullptr,
                            has_bias_ ? run.params[1].f32() : nullptr, run.tops[0].f32(),
                            keeps_ ? reinterpret_cast<RowMoments*>(run.saved[0].f32()) : nullptr);
}

void GroupNormalization::Backward(const LayerRun& run) {
  const GroupNormGradients gradients = {.dx = run.bottom_grads[0].f32(),
                                        .scale = has_scale_ ? run.param_grads[0].f32() : nullptr,
                                        .shift = has_bias_ ? run.param_grads[1].f32() : nullptr};
  run.ops->GroupNormBackward(problem_, run.bottoms[0].f32(), has_scale_ ? run.params[0].f32() : nullptr,
                             reinterpret_cast<const RowMoments*>(run.saved[0].f32()), run.top_grads[0].f32(), gradients,
                             run.workspace);
}

}  // namespace crema
