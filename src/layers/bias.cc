// Bias: adds a vector that is stretched over the other axes: learnt, a blob of shape [extents of its axes], or
// bottom 1.
#include "crema/layer.h"
#include "graph/filler.h"
#include "layers/stretched_vector.h"
#include "ops/operations.h"

namespace crema {

namespace {

class BiasLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1, 2);
    setup.ExpectTops(1);
    const BiasParameter& param = setup.param().bias_param();
    vector_ = ReadStretchedVector(setup, "bias_param", param.axis(), param.num_axes());
    if (vector_.learnt) AddFilledParam(setup, "bias_param.filler", vector_.shape, param.filler());
    setup.SetTop(0, setup.bottom_shape(0));
    setup.AllowInPlace();
    setup.AllowSplitBatch();
    setup.SetFlops(static_cast<double>(setup.bottom_shape(0).count()));
  }

  void Plan(LayerPlan& plan) override {
    grid_ = vector_.GridFor(plan.bottom(0));
    plan.PassGradient(0);
    const size_t scratch = OperationsOf(*plan.context().device).ChannelWorkspace(grid_);
    plan.Workspace(scratch, scratch);
  }

  void Forward(const LayerRun& run) override {
    const Tensor& bias = vector_.learnt ? run.params[0] : run.bottoms[1];
    run.ops->ChannelAffine(grid_, {.x = run.bottoms[0].raw(), .shift = bias.f32(), .y = run.tops[0].raw()},
                           run.workspace);
  }

  void Backward(const LayerRun& run) override {
    const Tensor& bias = vector_.learnt ? run.param_grads[0] : run.bottom_grads[1];
    if (!bias.defined()) return;
    run.ops->ChannelGradientSums(grid_, {.dy = run.top_grads[0].raw()}, nullptr, nullptr, bias.f32(), nullptr,
                                 run.workspace);
  }

 private:
  StretchedVector vector_;
  ChannelGrid grid_;
};

}  // namespace

REGISTER_LAYER(Bias, BiasLayer, "bias_param");

}  // namespace crema
