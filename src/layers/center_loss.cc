// CenterLoss: half the mean square of the distance of vectors from the centres of their classes, which are learnt;
// blob: the centres [num_output, length].

#include "graph/filler.h"
#include "layers/labels.h"
#include "ops/operations.h"

namespace crema {

namespace {

class CenterLossLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    setup.NoGradient(1);
    const CenterLossParameter& param = setup.param().center_loss_param();
    const Shape& shape = setup.bottom_shape(0);
    if (param.num_output() < 1) {
      setup.Fail(param.has_num_output() ? "center_loss_param.num_output" : "center_loss_param",
                 "num_output must be at least 1; it is the number of classes");
    }
    const int axis = setup.CanonicalAxis("center_loss_param.axis", param.axis());
    problem_ = {shape.count(0, axis), param.num_output(), shape.count(axis)};
    if (shape.count() < 1) setup.Fail("bottom", setup.DescribeBottom(0) + " holds no values");
    labels_.SetupOwnClasses(setup, problem_.indices, problem_.rows, "num_output");
    loss_.divisor = static_cast<double>(problem_.indices);
    AddFilledParam(setup, "center_loss_param.center_filler", {problem_.rows, problem_.width}, param.center_filler());
    const float weight = setup.param().loss_weight_size() > 0 ? setup.param().loss_weight(0) : 1.0f;
    per_loss_weight_ = weight != 0 ? 1 / weight : 0;
    setup.SetTop(0, Shape());
    setup.MakeLoss();
    setup.SetFlops(4.0 * static_cast<double>(shape.count()));
  }

  void Plan(LayerPlan& plan) override {
    const TensorSpec of_items{Shape{problem_.indices, problem_.width}};
    if (plan.param_grad(0)) plan.BackwardReadsBottom(1);
    if (plan.backward()) {
      plan.BackwardReadsBottom(0);
      plan.Save(of_items);
    } else {
      plan.Workspace(of_items.bytes(), 0);
    }
  }

  void Forward(const LayerRun& run) override {
    labels_.Run(run);
    float* const centers = CentersOfItems(run);
    run.ops->EmbedForward(problem_, run.bottoms[1].f32(), run.params[0].f32(), nullptr, centers);
    run.ops->DifferenceLossForward(loss_, Differences(run, centers), run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    const float* const factor = run.top_grads[0].f32();
    if (run.bottom_grads[0].defined()) {
      run.ops->DifferenceLossBackward(loss_, factor, Differences(run, CentersOfItems(run)), run.bottom_grads[0], {});
    }
    if (!run.param_grads[0].defined()) return;
    // Not by the loss_weight; but the gradient of the top also has what the whole net's gradients are scaled by.
    run.ops->CenterGradient(problem_, per_loss_weight_, factor, run.bottoms[1].f32(), run.bottoms[0].f32(),
                            run.params[0].f32(), run.param_grads[0].f32());
  }

  void OnBadValue(int64_t position, float value) const override { labels_.Refuse(position, value); }

 private:
  static float* CentersOfItems(const LayerRun& run) {
    return run.saved.empty() ? reinterpret_cast<float*>(run.workspace) : run.saved[0].f32();
  }
  static DifferenceInputs Differences(const LayerRun& run, float* centers) {
    const Tensor& x = run.bottoms[0];
    return {x, Tensor(reinterpret_cast<std::byte*>(centers), {x.shape()}), {}, {}};
  }

  EmbedProblem problem_;
  DifferenceLoss loss_;
  LabelCheck labels_;
  float per_loss_weight_ = 1;
};

}  // namespace

REGISTER_LAYER(CenterLoss, CenterLossLayer, "center_loss_param");

}  // namespace crema
