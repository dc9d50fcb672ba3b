// Scale: multiplies by a vector that is stretched over the other axes: learnt, a blob of shape [extents of its axes],
// or bottom 1; then adds a learnt vector of the same shape with bias_term.
#include "base/aligned_memory.h"
#include "crema/layer.h"
#include "graph/filler.h"
#include "layers/stretched_vector.h"
#include "ops/operations.h"

namespace crema {

namespace {

class ScaleLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1, 2);
    setup.ExpectTops(1);
    const ScaleParameter& param = setup.param().scale_param();
    vector_ = ReadStretchedVector(setup, "scale_param", param.axis(), param.num_axes());
    has_bias_ = param.bias_term();
    FillerParameter ones = param.filler();
    if (!param.has_filler()) ones.set_value(1);
    if (vector_.learnt) AddFilledParam(setup, "scale_param.filler", vector_.shape, ones);
    if (has_bias_) AddFilledParam(setup, "scale_param.bias_filler", vector_.shape, param.bias_filler());
    setup.SetTop(0, setup.bottom_shape(0));
    setup.AllowInPlace();
    setup.AllowSplitBatch();
    setup.SetFlops(static_cast<double>(setup.bottom_shape(0).count()) * (has_bias_ ? 2 : 1));
  }

  void Plan(LayerPlan& plan) override {
    grid_ = vector_.GridFor(plan.bottom(0));
    scale_grad_ = vector_.learnt ? plan.param_grad(0) : plan.bottom_grad(1);
    if (scale_grad_) plan.BackwardReadsBottom(0);
    if (!vector_.learnt && plan.bottom_grad(0)) plan.BackwardReadsBottom(1);
    sum_bytes_ = AlignedBytesOf<float>(grid_.channels);
    const size_t scratch = OperationsOf(*plan.context().device).ChannelWorkspace(grid_);
    plan.Workspace(scratch, sum_bytes_ + scratch);
  }

  void Forward(const LayerRun& run) override {
    run.ops->ChannelAffine(grid_,
                           {.x = run.bottoms[0].raw(),
                            .scale = ScaleOf(run),
                            .shift = has_bias_ ? run.params[bias_index()].f32() : nullptr,
                            .y = run.tops[0].raw()},
                           run.workspace);
  }

  void Backward(const LayerRun& run) override {
    const void* dy = run.top_grads[0].raw();
    std::byte* scratch = run.workspace + sum_bytes_;
    const Tensor bias_grad = has_bias_ ? run.param_grads[bias_index()] : Tensor();
    float* sum = bias_grad.defined() ? bias_grad.f32() : reinterpret_cast<float*>(run.workspace);
    if (scale_grad_) {
      float* product = (vector_.learnt ? run.param_grads[0] : run.bottom_grads[1]).f32();
      run.ops->ChannelGradientSums(grid_, {.dy = dy}, run.bottoms[0].raw(), nullptr, sum, product, scratch);
    } else if (bias_grad.defined()) {
      run.ops->ChannelGradientSums(grid_, {.dy = dy}, nullptr, nullptr, sum, nullptr, scratch);
    }
    if (!run.bottom_grads[0].defined()) return;
    run.ops->ChannelGradientMap(grid_, {.g = {.dy = dy}, .a = ScaleOf(run), .dx = run.bottom_grads[0].raw()}, scratch);
  }

 private:
  int bias_index() const { return vector_.learnt ? 1 : 0; }
  const float* ScaleOf(const LayerRun& run) const { return (vector_.learnt ? run.params[0] : run.bottoms[1]).f32(); }

  StretchedVector vector_;
  ChannelGrid grid_;
  bool has_bias_ = false, scale_grad_ = false;
  size_t sum_bytes_ = 0;
};

}  // namespace

REGISTER_LAYER(Scale, ScaleLayer, "scale_param");

}  // namespace crema
