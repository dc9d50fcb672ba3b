// MVN: subtracts the mean of each channel of each image, or of each image, and divides by its standard deviation plus
// eps. As in Caffe the top has four axes at least.
#include <algorithm>
#include <vector>

#include "crema/layer.h"
#include "layers/channel_shape.h"
#include "layers/field_range.h"
#include "ops/operations.h"

namespace crema {

namespace {

class MvnLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const MVNParameter& param = setup.param().mvn_param();
    const Shape& shape = setup.bottom_shape(0);
    ExpectChannels(setup);
    ReadInRange(setup, "mvn_param.eps", param.eps(), kNotNegative,
                "it keeps the division by the deviation away from 0");
    const int first = param.across_channels() ? 1 : 2;
    problem_ = {shape.count(0, first), shape.count(first), param.normalize_variance(), param.eps()};
    if (problem_.width == 1) {
      setup.Warn("bottom", "\"" + setup.param().bottom(0) + "\" is " + shape.ToString() +
                               ", where every mean is of one number and all that is left is 0" +
                               (param.across_channels() ? "" : "; set across_channels: true to take it over channels"));
    }
    std::vector<int64_t> top = shape.dims();
    top.resize(std::max<size_t>(4, top.size()), 1);
    setup.SetTop(0, Shape(std::move(top)));
    if (shape.axes() >= 4) setup.AllowInPlace();
    // Where elements of an image lie means nothing to its mean.
    if (param.across_channels()) setup.AllowChannelsLast();
    setup.SetFlops(static_cast<double>(shape.count()) * 6);
  }

  void Plan(LayerPlan& plan) override {
    keeps_ = plan.backward() && problem_.divide;
    if (!keeps_) return;
    plan.BackwardReadsTop(0);
    plan.Save({Shape{problem_.rows}, DType::kF32});
  }

  void Forward(const LayerRun& run) override {
    run.ops->MvnForward(problem_, run.bottoms[0].f32(), run.tops[0].f32(), keeps_ ? run.saved[0].f32() : nullptr);
  }

  void Backward(const LayerRun& run) override {
    run.ops->MvnBackward(problem_, run.tops[0].f32(), keeps_ ? run.saved[0].f32() : nullptr, run.top_grads[0].f32(),
                         run.bottom_grads[0].f32());
  }

 private:
  MvnProblem problem_;
  bool keeps_ = false;  // what the division was by
};

}  // namespace

REGISTER_LAYER(MVN, MvnLayer, "mvn_param");

}  // namespace crema
