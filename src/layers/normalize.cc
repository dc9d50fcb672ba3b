// Normalize: x divided by its length. With norm_param, as in SSD, times a learnt scale; blob: the scale, a scalar with
// channel_shared, else [channels]. Gradients are the derivatives; SSD's own layer leaves the scales out of its sum over
// channels, which is the same as long as they are equal. With normalize_param, as in NormFace, nothing is learnt; so it
// is in L2Norm, L2Normalization, Normalization and NormalizationL2 of other forks, which take the length of whole
// items.

#include "crema/layer.h"
#include "device/device.h"
#include "graph/filler.h"
#include "layers/channel_shape.h"
#include "layers/field_range.h"
#include "ops/operations.h"

namespace crema {

namespace {

class NormalizeLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    const LayerParameter& param = setup.param();
    const bool of_another_name = param.type() != "Normalize";
    learns_ = !of_another_name && !param.has_normalize_param();
    if (!learns_ && setup.tops() == 2) {
      setup.Fail("top", "makes 1 top, without the lengths that a second one has in NormFace's fork; remove it");
    }
    setup.ExpectTops(1);
    ExpectChannels(setup);
    const Shape& shape = setup.bottom_shape(0);
    problem_ = {shape[0], shape[1], shape.count(2)};
    if (learns_) {
      SetUpScale(setup);
    } else if (of_another_name) {
      WarnOfPixels(setup);
    } else {
      ReadUnitLength(setup);
    }
    setup.SetTop(0, shape);
    setup.AllowInPlace();
    if (!problem_.whole || problem_.shared) setup.AllowChannelsLast();
    setup.SetFlops(static_cast<double>(shape.count()) * 4);
  }

  void Plan(LayerPlan& plan) override {
    // Channels last, the channels of each pixel are what a small image is otherwise.
    if (plan.bottom(0).layout == Layout::kChannelsLast && !problem_.whole) {
      problem_.images *= problem_.pixels;
      problem_.pixels = 1;
    }
    if (!learns_) one_.Upload(*plan.context().device, {1});
    keeps_ = plan.backward();
    if (!keeps_) return;
    plan.BackwardReadsBottom(0);
    plan.Save({Shape{problem_.vectors()}, DType::kF32});
  }

  void Forward(const LayerRun& run) override {
    run.ops->NormalizeForward(problem_, run.bottoms[0].f32(), Scale(run), run.tops[0].f32(),
                              keeps_ ? run.saved[0].f32() : nullptr);
  }

  void Backward(const LayerRun& run) override {
    run.ops->NormalizeBackward(problem_, run.bottoms[0].f32(), Scale(run), run.saved[0].f32(), run.top_grads[0].f32(),
                               run.bottom_grads[0].f32(), learns_ ? run.param_grads[0].f32() : nullptr);
  }

 private:
  const float* Scale(const LayerRun& run) const { return learns_ ? run.params[0].f32() : one_.data(); }

  void SetUpScale(LayerSetup& setup) {
    if (!setup.param().has_norm_param()) {
      setup.Warn("type",
                 "has neither norm_param nor normalize_param: crema multiplies by a learnt scale, as SSD's layer does, "
                 "where NormFace's and others of this name only divide by the length; write norm_param { } for the "
                 "former, normalize_param { } for the latter");
    }
    const NormalizeParameter& param = setup.param().norm_param();
    ReadEps(setup, "norm_param.eps", param.eps());
    problem_.whole = param.across_spatial();
    problem_.shared = param.channel_shared();
    FillerParameter filler = param.scale_filler();
    if (!param.has_scale_filler()) filler.set_value(1);
    AddFilledParam(setup, "norm_param.scale_filler", problem_.shared ? Shape() : Shape{problem_.channels}, filler);
  }

  void ReadUnitLength(LayerSetup& setup) {
    if (setup.param().has_norm_param()) {
      setup.Fail("norm_param", "has norm_param, of SSD's layer, and normalize_param, of NormFace's; keep one of them");
    }
    const UnitLengthParameter& param = setup.param().normalize_param();
    if (param.normalize_type() != "L2" && param.normalize_type() != "L1") {
      setup.Fail("normalize_param.normalize_type",
                 "normalize_type is \"" + param.normalize_type() + "\"; there are \"L2\" and \"L1\"");
    }
    if (param.fix_gradient()) {
      setup.Fail("normalize_param.fix_gradient",
                 "fix_gradient: true leaves a part of the gradient out, and gradients are the derivatives here; remove "
                 "it");
    }
    ReadEps(setup, "normalize_param.eps", param.eps());
    problem_.whole = param.across_spatial();
    problem_.absolute = param.normalize_type() == "L1";
  }

  void ReadEps(const LayerSetup& setup, const char* field, float eps) {
    problem_.eps = ReadInRange(setup, field, eps, kNotNegative, "it keeps the division by the length away from 0");
  }

  // Where forks that have the type disagree.
  void WarnOfPixels(LayerSetup& setup) const {
    if (problem_.pixels <= 1) return;
    setup.Warn("type",
               "takes the length over all channels and pixels of an item, as most forks do that have this "
               "type; some take that of each pixel: write type: \"Normalize\" with normalize_param { }, or, to "
               "keep what it does, with normalize_param { across_spatial: true }");
  }

  NormalizeProblem problem_;
  bool learns_ = true;  // a scale
  bool keeps_ = false;  // lengths
  DeviceTable<float> one_;
};

}  // namespace

REGISTER_LAYER(Normalize, NormalizeLayer, "norm_param", "normalize_param");
REGISTER_LAYER(L2Norm, NormalizeLayer);
REGISTER_LAYER(L2Normalization, NormalizeLayer);
REGISTER_LAYER(Normalization, NormalizeLayer);
REGISTER_LAYER(NormalizationL2, NormalizeLayer);

}  // namespace crema
