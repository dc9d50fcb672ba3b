#include "layers/yolo_loss.h"

#include "base/aligned_memory.h"
#include "ops/operations.h"

namespace crema {

namespace {

// As one channel.
ChannelGrid All(const Shape& shape) { return {1, 1, shape.count()}; }

}  // namespace

void YoloLossLayer::BeginSetup(LayerSetup& setup) {
  setup.ExpectBottoms(2);
  setup.ExpectTops(1);
  setup.NoGradient(1);
}

void YoloLossLayer::EndSetup(LayerSetup& setup, const std::string& classes) {
  loss_.objects = TrueObjectRows(setup, 1);
  object_check_.Setup(setup, 1, loss_.rows(), classes);
  setup.SetTop(0, Shape());
  setup.MakeLoss();
  setup.SetFlops(5.0 * static_cast<double>(setup.bottom_shape(0).count()));
}

void YoloLossLayer::Plan(LayerPlan& plan) {
  const Shape& shape = plan.bottom(0).shape;
  losses_at_ = 0;
  if (plan.backward()) {
    gradient_ = plan.Save({shape});
  } else {
    losses_at_ = AlignedBytesOf<float>(shape.count());
  }
  plan.Workspace(losses_at_ + TensorSpec{Shape{predictions()}}.bytes(),
                 plan.backward() ? OperationsOf(*plan.context().device).ChannelWorkspace(All(shape)) : 0);
}

void YoloLossLayer::Forward(const LayerRun& run) {
  object_check_.Run(run);
  auto* const losses = reinterpret_cast<float*>(run.workspace + losses_at_);
  float* const gradient = losses_at_ > 0 ? reinterpret_cast<float*>(run.workspace) : GradientOf(run);
  run.ops->LearnYolo(loss_, run.pass, run.bottoms[0].f32(), run.bottoms[1].f32(), gradient, losses);
  Reduction sum;
  sum.reduced = predictions();
  sum.factor = 1 / static_cast<float>(loss_.grid.images);
  run.ops->Reduce(sum, losses, run.tops[0].f32());
}

void YoloLossLayer::Backward(const LayerRun& run) {
  ChannelAffine times;
  times.x = GradientOf(run);
  times.scale = run.top_grads[0].f32();
  times.y = run.bottom_grads[0].f32();
  run.ops->ChannelAffine(All(run.bottom_grads[0].shape()), times, run.workspace);
}

}  // namespace crema
