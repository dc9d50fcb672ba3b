// L1Loss: the sum of the sizes of the differences of two bottoms, divided by the batch size, as in NVIDIA's fork
// (DetectNet). Its gradient is the difference's sign, 0 where there is no difference. With l1_loss_param as in
// FlowNet's (Fischer et al., 2015): differences that are NaN do not count, and it may be the lengths of the vectors of
// channels that are summed.
#include <limits>
#include <string>

#include "layers/difference_loss.h"
#include "layers/field_range.h"

namespace crema {

namespace {

class L1LossLayer : public DifferenceLossLayer {
 public:
  void Setup(LayerSetup& setup) override {
    of_flow_ = setup.param().has_l1_loss_param();
    if (of_flow_) return SetupFlow(setup, setup.param().l1_loss_param());
    setup.ExpectBottoms(2);
    // SmoothL1Loss with its square so narrow that only a difference of 0 lies in it.
    constexpr float kLimit = std::numeric_limits<float>::min();
    SetupDifference(setup, 1 / kLimit, kLimit);
  }

  void Plan(LayerPlan& plan) override {
    if (!of_flow_) return DifferenceLossLayer::Plan(plan);
    if (!plan.backward()) return plan.Workspace(sizeof(float), 0);
    for (int i = 0; i < bottoms_; ++i) plan.BackwardReadsBottom(i);
    plan.Save({Shape{1}});  // what the sum was divided by
  }

  void Forward(const LayerRun& run) override {
    if (!of_flow_) return DifferenceLossLayer::Forward(run);
    float* const normalizer = run.saved.empty() ? reinterpret_cast<float*>(run.workspace) : run.saved[0].f32();
    run.ops->LengthLossForward(length_, Inputs(run), normalizer, run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    if (!of_flow_) return DifferenceLossLayer::Backward(run);
    const auto wanted = [&](int i) {
      return i < bottoms_ && run.bottom_grads[i].defined() ? run.bottom_grads[i].f32() : nullptr;
    };
    run.ops->LengthLossBackward(length_, run.top_grads[0].f32(), Inputs(run), run.saved[0].f32(), wanted(0), wanted(1));
  }

 private:
  void SetupFlow(LayerSetup& setup, const L1LossParameter& param) {
    setup.ExpectBottoms(1, 2);
    setup.ExpectTops(1);
    bottoms_ = setup.bottoms();
    const Shape& shape = setup.bottom_shape(0);
    if (shape.axes() < 2 || shape.count(1) == 0) {
      setup.Fail("bottom", "takes num x channels x ..., but " + setup.BottomIs(0));
    }
    if (bottoms_ == 2 && setup.bottom_shape(1) != shape) {
      setup.Fail("bottom", "both bottoms must have one shape, but " + setup.BottomIs(0) + " and " + setup.BottomIs(1));
    }
    length_.axis = ClassAxis(shape, 1);
    length_.of_vectors = param.l2_per_location();
    if (param.l2_prescale_by_channels()) length_.scale = 1 / static_cast<float>(shape[1]);
    length_.epsilon = ReadInRange(setup, "l1_loss_param.epsilon", param.epsilon(), kNotNegative);
    length_.power = ReadInRange(setup, "l1_loss_param.power", param.power(), kPositive, "0.5 is a length's");
    length_.plateau = ReadInRange(setup, "l1_loss_param.plateau", param.plateau(), kNotNegative);
    length_.divisor = param.normalize_by_num_entries() ? 0 : static_cast<double>(shape[0] > 0 ? shape[0] : 1);
    if (!length_.of_vectors) {
      WarnAlone(setup, "l2_prescale_by_channels", param.l2_prescale_by_channels());
      WarnAlone(setup, "power", param.has_power());
      WarnAlone(setup, "epsilon", param.has_epsilon());
    }
    setup.SetTop(0, Shape());
    setup.MakeLoss();
    setup.SetFlops(3.0 * static_cast<double>(shape.count()));
  }

  static void WarnAlone(LayerSetup& setup, const std::string& field, bool given) {
    if (given) setup.Warn("l1_loss_param." + field, field + " has no effect without l2_per_location; remove it");
  }

  LengthInputs Inputs(const LayerRun& run) const {
    return {run.bottoms[0].f32(), bottoms_ == 2 ? run.bottoms[1].f32() : nullptr};
  }

  bool of_flow_ = false;
  int bottoms_ = 2;
  LengthLoss length_;
};

}  // namespace

REGISTER_LAYER(L1Loss, L1LossLayer, "l1_loss_param");

}  // namespace crema
