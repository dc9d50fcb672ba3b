// ContinuationIndicator: the T x N indicators of recurrent layers for batches of whole sequences: 0 at the first step,
// 1 at the others. Bottom: none, or one of T x N x ...
#include <string>

#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

namespace {

class ContinuationIndicatorLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(0, 1);
    setup.ExpectTops(1);
    const ContinuationIndicatorParameter& param = setup.param().continuation_indicator_param();
    int64_t steps = param.time_step(), batch = param.batch_size();
    if (setup.bottoms() == 1) {
      const Shape& sequence = setup.bottom_shape(0);
      if (sequence.axes() < 2) {
        setup.Fail("bottom", "takes T x N and more, but is given " + setup.DescribeBottom(0));
      }
      CheckGiven(setup, "time_step", steps, sequence[0]);
      CheckGiven(setup, "batch_size", batch, sequence[1]);
      steps = sequence[0];
      batch = sequence[1];
    } else if (steps == 0 || batch == 0) {
      setup.Fail("continuation_indicator_param",
                 "the extents of its top are not known; give time_step and batch_size, or the sequence as its bottom");
    }
    setup.MakeNonDifferentiable();
    setup.SetTop(0, {steps, batch});
  }

  void Forward(const LayerRun& run) override {
    const Tensor& top = run.tops[0];
    run.ops->Fill(1, top);
    run.ops->Fill(0, Tensor(top.raw(), {Shape{top.shape()[1]}, DType::kF32}));
  }

 private:
  static void CheckGiven(const LayerSetup& setup, const std::string& field, int64_t given, int64_t extent) {
    if (given == 0 || given == extent) return;
    setup.Fail("continuation_indicator_param." + field, field + " is " + std::to_string(given) + ", but " +
                                                            setup.DescribeBottom(0) + " has " + std::to_string(extent) +
                                                            " (T x N x ...); correct it, or leave it out");
  }
};

}  // namespace

REGISTER_LAYER(ContinuationIndicator, ContinuationIndicatorLayer, "continuation_indicator_param");

}  // namespace crema
