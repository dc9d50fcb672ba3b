// Reduction: one number for everything from an axis on.
#include <algorithm>
#include <vector>

#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

namespace {

class ReductionLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const ReductionParameter& param = setup.param().reduction_param();
    const Shape& bottom = setup.bottom_shape(0);
    const int axis = setup.CanonicalAxis("reduction_param.axis", param.axis());
    reduction_.outer = bottom.count(0, axis);
    reduction_.reduced = bottom.count(axis);
    reduction_.factor = param.coeff();
    switch (param.operation()) {
      case ReductionParameter::SUM:
        break;
      case ReductionParameter::ASUM:
        reduction_.term = ReducedTerm::kMagnitude;
        break;
      case ReductionParameter::SUMSQ:
        reduction_.term = ReducedTerm::kSquare;
        break;
      case ReductionParameter::MEAN:
        reduction_.factor /= static_cast<float>(std::max<int64_t>(1, reduction_.reduced));
        break;
    }
    setup.SetTop(0, Shape(std::vector<int64_t>(bottom.dims().begin(), bottom.dims().begin() + axis)));
    setup.SetFlops(static_cast<double>(bottom.count()));
  }

  void Plan(LayerPlan& plan) override {
    if (plan.backward() && reduction_.term != ReducedTerm::kValue) plan.BackwardReadsBottom(0);
  }

  void Forward(const LayerRun& run) override { run.ops->Reduce(reduction_, run.bottoms[0].f32(), run.tops[0].f32()); }

  void Backward(const LayerRun& run) override {
    run.ops->ReduceGradient(reduction_, run.top_grads[0].f32(), run.bottoms[0].f32(), run.bottom_grads[0].f32());
  }

 private:
  Reduction reduction_;
};

}  // namespace

REGISTER_LAYER(Reduction, ReductionLayer, "reduction_param");

}  // namespace crema
