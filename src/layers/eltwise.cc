// Eltwise: the product, weighted sum or maximum of its bottoms, element by element.
#include "base/bfloat16.h"
#include "crema/layer.h"
#include "layers/fusable.h"
#include "ops/elementwise.h"
#include "ops/maximum.h"

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
                               shape.ToString() + " and \"" + setup.param().bottom(i) + "\" is " +
                               setup.bottom_shape(i).ToString());
    }
    if (operation_ == EltwiseParameter::MAX && setup.bottoms() > 256) {
      setup.Fail("bottom", "operation MAX takes at most 256 bottoms, but " + std::to_string(setup.bottoms()) +
                               " are given; take the maximum in two steps");
    }
    setup.SetTop(0, shape);
    setup.AllowChannelsLast();
    setup.AllowBFloat16();
    setup.AllowInPlace();
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
    if (maximum && !run.saved.empty()) {
      return top.dtype() == DType::kBF16 ? TakeMaximum<BFloat16>(run) : TakeMaximum<float>(run);
    }
    if (maximum) {
      Map(formula::Maximum{}, top, first, second);
    } else if (operation_ == EltwiseParameter::PROD) {
      Map(formula::Product{}, top, first, second);
    } else if (relu_) {
      Map(formula::SumRelu{}, top, first, second);
    } else {
      Map(formula::WeightedSum{coefficients_[0], coefficients_[1]}, top, first, second);
    }
    for (size_t i = 2; i < run.bottoms.size(); ++i) {
      if (maximum) {
        Map(formula::Maximum{}, top, run.bottoms[i], top);
      } else if (operation_ == EltwiseParameter::PROD) {
        Map(formula::Product{}, top, top, run.bottoms[i]);
      } else {
        Map(formula::WeightedSum{1, coefficients_[i]}, top, top, run.bottoms[i]);
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
        Map(formula::Multiple{coefficients_[i]}, dx, dy);
      } else if (operation_ == EltwiseParameter::MAX) {
        const uint8_t* from = run.saved[0].u8();
        if (dx.dtype() == DType::kBF16) {
          MaximumBackward(dx.count(), dy.bf16(), from, static_cast<uint8_t>(i), dx.bf16());
        } else {
          MaximumBackward(dx.count(), dy.f32(), from, static_cast<uint8_t>(i), dx.f32());
        }
      } else if (stable_) {
        MultiplyOthers(run, i);
      } else {
        Map(formula::QuotientGradient{}, dx, dy, run.tops[0], run.bottoms[i]);
      }
    }
  }

 private:
  void CheckCoefficients(const LayerSetup& setup) const {
    if (coefficients_.empty()) return;
    const std::string count = std::to_string(coefficients_.size());
    if (static_cast<int>(coefficients_.size()) != setup.bottoms()) {
      setup.Fail("eltwise_param.coeff", "has " + count + " coeff for " + std::to_string(setup.bottoms()) +
                                            " bottoms; give one for each, or none");
    }
    if (operation_ == EltwiseParameter::PROD) {
      setup.Fail("eltwise_param.coeff", "operation PROD takes no coeff; use SUM, or scale the bottoms before");
    }
  }

  template <typename Number>
  static void TakeMaximum(const LayerRun& run) {
    const auto numbers = [](const Tensor& tensor) { return static_cast<Number*>(tensor.raw()); };
    const int64_t n = run.tops[0].count();
    Number* top = numbers(run.tops[0]);
    uint8_t* from = run.saved[0].u8();
    MaximumOfTwo<Number>(n, numbers(run.bottoms[0]), numbers(run.bottoms[1]), top, from);
    for (size_t i = 2; i < run.bottoms.size(); ++i) {
      MaximumWith<Number>(n, numbers(run.bottoms[i]), static_cast<uint8_t>(i), top, from);
    }
  }

  // dx = dy times every bottom but `own`.
  static void MultiplyOthers(const LayerRun& run, int own) {
    const Tensor* factor = &run.top_grads[0];
    for (int i = 0; i < static_cast<int>(run.bottoms.size()); ++i) {
      if (i == own) continue;
      Map(formula::Product{}, run.bottom_grads[own], *factor, run.bottoms[i]);
      factor = &run.bottom_grads[own];
    }
  }

  EltwiseParameter::EltwiseOp operation_ = EltwiseParameter::SUM;
  bool stable_ = true, relu_ = false;
  std::vector<float> coefficients_;
};

bool Accepts(std::span<const LayerSetup* const> members, std::string* why_not) {
  if (!IsSumOfTwo(*members[0])) *why_not = "Eltwise is not a plain sum of two";
  return FollowersAreFusable(members, why_not);
}

}  // namespace

REGISTER_LAYER(Eltwise, EltwiseLayer, "eltwise_param");
REGISTER_FUSION(EltwiseRelu, EltwiseLayer, Accepts, true, "Eltwise", "ReLU");

}  // namespace crema
