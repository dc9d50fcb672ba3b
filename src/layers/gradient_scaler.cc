// GradientScaler: passes values on, and gradients with a negative factor that grows (Ganin and Lempitsky, "Unsupervised
// Domain Adaptation by Backpropagation", 2015, and the authors' fork of Caffe).
#include <string>

#include "crema/layer.h"
#include "layers/field_range.h"
#include "ops/operations.h"
#include "ops/updates/gradient_scale.h"

namespace crema {

namespace {

class GradientScalerLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const GradientScalerParameter& param = setup.param().gradient_scaler_param();
    const auto number = [&](const char* field, float value, const NumberRange& range) {
      return ReadInRange(setup, std::string("gradient_scaler_param.") + field, value, range);
    };
    scale_.lower = number("lower_bound", param.lower_bound(), kFinite);
    scale_.upper = number("upper_bound", param.upper_bound(), {.low = param.lower_bound()});
    scale_.steepness = number("alpha", param.alpha(), kNotNegative);
    scale_.passes = number("max_iter", param.max_iter(), {.low = 1});
    setup.SetTop(0, setup.bottom_shape(0));
    setup.AllowChannelsLast();
    setup.AllowHalfPrecision();
    setup.AllowInPlace();
    setup.AllowSplitBatch();
  }

  void Forward(const LayerRun& run) override {
    const Tensor &x = run.bottoms[0], &y = run.tops[0];
    if (y.raw() != x.raw()) run.ops->Copy(x.raw(), y.raw(), x.bytes());
  }

  void Backward(const LayerRun& run) override {
    run.ops->ReverseGradient(scale_, run.pass, run.top_grads[0], run.bottom_grads[0]);
  }

 private:
  GradientScale scale_;
};

}  // namespace

REGISTER_LAYER(GradientScaler, GradientScalerLayer, "gradient_scaler_param");

}  // namespace crema
