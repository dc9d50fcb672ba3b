// LRN: local response normalisation across neighbouring channels or within a window of each channel.
// lrn_param.engine chose between Caffe's own kernels and has no effect here.
#include "crema/layer.h"
#include "layers/plan_kernel.h"
#include "ops/operations.h"

namespace crema {

namespace {

class LrnLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const LRNParameter& param = setup.param().lrn_param();
    const Shape& shape = setup.bottom_shape(0);
    if (shape.axes() != 4) {
      setup.Fail("bottom", "takes num x channels x height x width, but \"" + setup.param().bottom(0) + "\" is " +
                               shape.ToString());
    }
    if (param.local_size() % 2 != 1) {
      setup.Fail("lrn_param.local_size",
                 "local_size must be odd, so that the window has a centre, got " + std::to_string(param.local_size()));
    }
    if (param.local_size() > INT32_MAX) {
      setup.Fail("lrn_param.local_size", "local_size is " + std::to_string(param.local_size()) +
                                             ", more than there can be channels or pixels; 5 is usual");
    }
    const bool across = param.norm_region() == LRNParameter::ACROSS_CHANNELS;
    if (!across && param.has_k())
      setup.Warn("lrn_param.k", "k has no effect with norm_region: WITHIN_CHANNEL (it is 1)");
    problem_ = {};
    problem_.region = across ? LrnProblem::Region::kAcrossChannels : LrnProblem::Region::kWithinChannel;
    problem_.batch = shape[0];
    problem_.channels = shape[1];
    problem_.height = shape[2];
    problem_.width = shape[3];
    problem_.size = param.local_size();
    problem_.alpha = param.alpha();
    problem_.beta = param.beta();
    problem_.k = param.k();
    setup.SetTop(0, shape);
    setup.KeepCoordinates();
    setup.AllowSplitBatch();
    if (across) {
      setup.AllowChannelsLast();
      setup.AllowHalfPrecision();
    }
    const double window = static_cast<double>(across ? problem_.size : problem_.size * problem_.size);
    setup.SetFlops(static_cast<double>(shape.count()) * (2 * window + 3));
  }

  void Plan(LayerPlan& plan) override {
    problem_.backward = plan.backward();
    problem_.layout = plan.bottom(0).layout;
    problem_.dtype = plan.bottom(0).dtype;
    kernel_ = PlanKernel(plan, &Operations::MakeLrn, problem_);
    if (problem_.backward) plan.BackwardReadsBottom(0);
    plan.Workspace(kernel_->forward_workspace(), kernel_->backward_workspace());
  }

  void Forward(const LayerRun& run) override {
    kernel_->Forward(run.bottoms[0].raw(), run.tops[0].raw(), run.workspace);
  }

  void Backward(const LayerRun& run) override {
    kernel_->Backward(run.bottoms[0].raw(), run.top_grads[0].raw(), run.bottom_grads[0].raw(), run.workspace);
  }

 private:
  LrnProblem problem_;
  std::unique_ptr<LrnKernel> kernel_;
};

}  // namespace

REGISTER_LAYER(LRN, LrnLayer, "lrn_param");

}  // namespace crema
