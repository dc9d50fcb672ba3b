// Dropout: while training, zeroes each element with probability dropout_ratio and scales the others by
// 1 / (1 - dropout_ratio); while testing, its top is its bottom.
#include "ops/dropout.h"

#include "crema/layer.h"

namespace crema {

namespace {

class DropoutLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    ratio_ = setup.param().dropout_param().dropout_ratio();
    if (!(ratio_ >= 0 && ratio_ < 1)) {
      setup.Fail("dropout_param.dropout_ratio", "dropout_ratio is " + std::to_string(ratio_) +
                                                    "; give the share of elements to drop, at least 0 and below 1");
    }
    setup.SetTop(0, setup.bottom_shape(0));
    setup.AllowChannelsLast();
    setup.AllowBFloat16();
    if (setup.phase() == TEST || ratio_ == 0) {
      setup.MakeView();
    } else {
      setup.AllowInPlace();
    }
  }

  void Plan(LayerPlan& plan) override { plan.Save({plan.bottom(0).shape, DType::kU8}); }

  void Forward(const LayerRun& run) override {
    const RandomStream random(run.context->seed, StreamId(static_cast<uint32_t>(run.layer_index), run.pass));
    const Tensor &bottom = run.bottoms[0], &top = run.tops[0];
    if (top.dtype() == DType::kBF16) {
      DropoutForward(random, ratio_, top.count(), bottom.bf16(), run.saved[0].u8(), top.bf16());
    } else {
      DropoutForward(random, ratio_, top.count(), bottom.f32(), run.saved[0].u8(), top.f32());
    }
  }

  void Backward(const LayerRun& run) override {
    const Tensor &dy = run.top_grads[0], &dx = run.bottom_grads[0];
    if (dx.dtype() == DType::kBF16) {
      DropoutBackward(ratio_, dx.count(), dy.bf16(), run.saved[0].u8(), dx.bf16());
    } else {
      DropoutBackward(ratio_, dx.count(), dy.f32(), run.saved[0].u8(), dx.f32());
    }
  }

 private:
  float ratio_ = 0.5f;
};

}  // namespace

REGISTER_LAYER(Dropout, DropoutLayer, "dropout_param");

}  // namespace crema
