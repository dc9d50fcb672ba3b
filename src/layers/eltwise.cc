// Eltwise: the product, weighted sum or maximum of its bottoms, element by element.
#include "crema/fusion.h"
#include "layers/fusable.h"
#include "ops/operations.h"

namespace crema {

namespace {

class EltwiseLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2, -1);
    setup.ExpectTops(1);
    const EltwiseParameter& param = setup.param().eltwise_param();
    operation_ = param.operation();
    relu_ = setup.members().back()->type() == "ReLU";
    stable_ = param.stable_prod_grad();
    coefficients_.assign(param.coeff().begin(), param.coeff().end());
    CheckCoefficients(setup);
    coefficients_.resize(setup.bottoms(), 1.0f);
    const Shape& shape = setup.bottom_shape(0);
    for (int i = 1; i < setup.bottoms(); ++i) {
      if (setup.bottom_shape(i) == shape) continue;
      setup.Fail("bottom", "all bottoms must have one shape, but \"" + setup.param().bottom(0) + "\" is " +
                               shape.ToString() + " and " + setup.BottomIs(i));
    }
    if (operation_ == EltwiseParameter::MAX && setup.bottoms() > 256) {
      setup.Fail("bottom", "operation MAX takes at most 256 bottoms, but " + std::to_string(setup.bottoms()) +
                               " are given; take the maximum in two steps");
    }
    setup.SetTop(0, shape);
    setup.AllowChannelsLast();
    setup.AllowHalfPrecision();
    setup.AllowInPlace();
    setup.AllowSplitBatch();
    setup.SetFlops(static_cast<double>(shape.count()) * (setup.bottoms() - 1));
  }

  void Plan(LayerPlan& plan) override {
    for (int i = 0; i < static_cast<int>(coefficients_.size()); ++i) {
      if (operation_ == EltwiseParameter::SUM && coefficients_[i] == 1) plan.PassGradient(i);
    }
    if (operation_ == EltwiseParameter::MAX && plan.backward()) plan.Save({plan.top(0).shape, DType::kU8});
    if (operation_ != EltwiseParameter::PROD || !plan.backward()) return;
    const int bottoms = static_cast<int>(coefficients_.size());
    for (int read = 0; read < bottoms; ++read) {
      bool wanted = false;
      for (int i = 0; i < bottoms; ++i) wanted |= plan.bottom_grad(i) && (i == read) != stable_;
      if (wanted) plan.BackwardReadsBottom(read);
    }
    if (!stable_) plan.BackwardReadsTop(0);
  }

  void Forward(const LayerRun& run) override {
    const Tensor &top = run.tops[0], &first = run.bottoms[0], &second = run.bottoms[1];
    const bool maximum = operation_ == EltwiseParameter::MAX;
    Operations& ops = *run.ops;
    if (maximum && !run.saved.empty()) {
      uint8_t* from = run.saved[0].u8();
      ops.MaximumOfTwo(first, second, top, from);
      for (size_t i = 2; i < run.bottoms.size(); ++i) {
        ops.MaximumWith(run.bottoms[i], static_cast<uint8_t>(i), top, from);
      }
      return;
    }
    if (maximum) {
      ops.Maximum(first, second, top);
    } else if (operation_ == EltwiseParameter::PROD) {
      ops.Product(first, second, top);
    } else if (relu_) {
      ops.SumRelu(first, second, top);
    } else {
      ops.WeightedSum(coefficients_[0], first, coefficients_[1], second, top);
    }
    for (size_t i = 2; i < run.bottoms.size(); ++i) {
      if (maximum) {
        ops.Maximum(run.bottoms[i], top, top);
      } else if (operation_ == EltwiseParameter::PROD) {
        ops.Product(top, run.bottoms[i], top);
      } else {
        ops.WeightedSum(1, top, coefficients_[i], run.bottoms[i], top);
      }
    }
  }

  void Backward(const LayerRun& run) override {
    const Tensor& dy = run.top_grads[0];
    // Backwards, since the gradient of bottom 0 may lie over that of the top.
    for (int i = static_cast<int>(run.bottom_grads.size()) - 1; i >= 0; --i) {
      const Tensor& dx = run.bottom_grads[i];
      if (!dx.defined()) continue;
      if (operation_ == EltwiseParameter::SUM) {
        run.ops->Multiply(coefficients_[i], dy, dx);
      } else if (operation_ == EltwiseParameter::MAX) {
        run.ops->MaximumBackward(dy, run.saved[0].u8(), static_cast<uint8_t>(i), dx);
      } else if (stable_) {
        MultiplyOthers(run, i);
      } else {
        run.ops->QuotientGradient(dy, run.tops[0], run.bottoms[i], dx);
      }
    }
  }

 private:
  void CheckCoefficients(LayerSetup& setup) const {
    if (coefficients_.empty()) return;
    const std::string count = std::to_string(coefficients_.size());
    if (static_cast<int>(coefficients_.size()) != setup.bottoms()) {
      setup.Fail("eltwise_param.coeff", "has " + count + " coeff for " + std::to_string(setup.bottoms()) +
                                            " bottoms; give one for each, or none");
    }
    if (operation_ == EltwiseParameter::PROD) {
      setup.Fail("eltwise_param.coeff", "operation PROD takes no coeff; use SUM, or scale the bottoms before");
    }
    if (operation_ == EltwiseParameter::MAX) setup.Warn("eltwise_param.coeff", "operation MAX does not read coeff");
  }

  // dx = dy times every bottom but `own`.
  static void MultiplyOthers(const LayerRun& run, int own) {
    const Tensor* factor = &run.top_grads[0];
    for (int i = 0; i < static_cast<int>(run.bottoms.size()); ++i) {
      if (i == own) continue;
      run.ops->Product(*factor, run.bottoms[i], run.bottom_grads[own]);
      factor = &run.bottom_grads[own];
    }
  }

  EltwiseParameter::EltwiseOp operation_ = EltwiseParameter::SUM;
  bool stable_ = true, relu_ = false;
  std::vector<float> coefficients_;
};

bool AcceptsSum(std::span<const LayerSetup* const> members, std::string* why_not) {
  if (!IsSumOfTwo(*members[0])) *why_not = "Eltwise is not a plain sum of two";
  return FollowersAreFusable(members, why_not);
}

}  // namespace

REGISTER_LAYER(Eltwise, EltwiseLayer, "eltwise_param");
REGISTER_FUSION(EltwiseRelu, EltwiseLayer, .types = {"Eltwise", "ReLU"}, .inference_only = true, .accepts = AcceptsSum);

}  // namespace crema
