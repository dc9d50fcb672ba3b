// LabelSpecificAdd: scores of classes, of which while training that of an item's own class has a margin (AM-Softmax,
// ArcFace).
#include "layers/field_range.h"
#include "layers/labels.h"
#include "layers/loss.h"
#include "ops/operations.h"

namespace crema {

namespace {

class LabelSpecificAddLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    const LabelSpecificAddParameter& param = setup.param().label_specific_add_param();
    const bool adds = setup.phase() == TRAIN || param.transform_test();
    setup.ExpectBottoms(adds ? 2 : 1, 2);
    setup.ExpectTops(1);
    if (setup.bottoms() > 1) setup.NoGradient(1);
    const ClassAxis items = ItemsAsRows(setup.bottom_shape(0));
    if (setup.bottoms() > 1) labels_.Setup(setup, items);
    margin_.rows = items.outer;
    margin_.classes = items.classes;
    constexpr float kMostAngle = 1.5707964f;
    ReadInRange(setup, "label_specific_add_param.bias", param.bias(), kFinite);
    ReadInRange(setup, "label_specific_add_param.angle", param.angle(), {0, kMostAngle},
                "it is in radians, at most pi / 2");
    if (param.angle() > 0 && param.bias() != 0) {
      setup.Fail("label_specific_add_param.angle", "angle and bias are both set; keep one of them");
    }
    if (param.angle() > 0) margin_.kind = LabelMargin::Kind::kAngleAdded;
    margin_.amount = param.angle() > 0 ? param.angle() : param.bias();
    setup.SetTop(0, setup.bottom_shape(0));
    setup.AllowInPlace();
    if (margin_.amount == 0 || !adds) {
      margin_.kind = LabelMargin::Kind::kAdded;
      setup.MakeView();
    }
  }

  void Plan(LayerPlan& plan) override {
    const bool changes_gradient = margin_.kind != LabelMargin::Kind::kAdded;
    if (!changes_gradient) plan.PassGradient(0);
    if (!plan.backward() || !changes_gradient) return;
    plan.BackwardReadsBottom(1);
    plan.Save({Shape{margin_.rows}});
  }

  void Forward(const LayerRun& run) override {
    labels_.Run(run);
    CopyUnlessThere(run, run.bottoms[0], run.tops[0]);
    run.ops->ApplyMargin(margin_, run.pass, run.bottoms[1].f32(), nullptr, run.tops[0].f32(), TapeOf(run));
  }

  void Backward(const LayerRun& run) override {
    if (!run.bottom_grads[0].defined()) return;
    CopyUnlessThere(run, run.top_grads[0], run.bottom_grads[0]);
    run.ops->MarginGradient(margin_, run.bottoms[1].f32(), TapeOf(run), run.bottom_grads[0].f32(), nullptr);
  }

  void OnBadValue(int64_t position, float value) const override { labels_.Refuse(position, value); }

 private:
  static void CopyUnlessThere(const LayerRun& run, const Tensor& from, const Tensor& to) {
    if (from.raw() != to.raw()) run.ops->Copy(from.raw(), to.raw(), to.bytes());
  }

  static MarginTape TapeOf(const LayerRun& run) {
    MarginTape tape;
    if (!run.saved.empty()) tape.slope = run.saved[0].f32();
    return tape;
  }

  LabelMargin margin_;
  LabelCheck labels_;
};

}  // namespace

REGISTER_LAYER(LabelSpecificAdd, LabelSpecificAddLayer, "label_specific_add_param");

}  // namespace crema
