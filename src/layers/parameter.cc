// Parameter: a top that is itself learnt; one blob of its shape, zeros at first.
#include "crema/layer.h"
#include "ops/operations.h"
#include "schema/blob_shape.h"

namespace crema {

namespace {

class ParameterLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(0);
    setup.ExpectTops(1);
    const ParameterParameter& param = setup.param().parameter_param();
    if (!param.has_shape()) {
      setup.Fail("parameter_param", "shape is not set; give the top's, as shape { dim: 10 }");
    }
    for (const int64_t extent : param.shape().dim()) {
      if (extent >= 1) continue;
      setup.Fail("parameter_param.shape",
                 "shape holds " + std::to_string(extent) + "; every extent must be at least 1");
    }
    const Shape shape = ShapeOf(param.shape());
    setup.AddParam({shape, {}});
    setup.SetTop(0, shape);
  }

  void Forward(const LayerRun& run) override {
    run.ops->Copy(run.params[0].raw(), run.tops[0].raw(), run.tops[0].bytes());
  }

  void Backward(const LayerRun& run) override {
    if (!run.param_grads[0].defined()) return;
    run.ops->Copy(run.top_grads[0].raw(), run.param_grads[0].raw(), run.top_grads[0].bytes());
  }
};

}  // namespace

REGISTER_LAYER(Parameter, ParameterLayer, "parameter_param");

}  // namespace crema
