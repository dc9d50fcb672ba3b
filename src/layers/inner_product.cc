// InnerProduct: a fully connected layer over everything from `axis` on; blobs [num_output, inputs] (transposed with
// `transpose`) and, with bias_term, [num_output]. With `normalize` rows of the weights count by their directions.
#include "crema/fusion.h"
#include "graph/filler.h"
#include "layers/elementwise_chain.h"
#include "layers/plan_kernel.h"
#include "layers/unit_rows.h"
#include "ops/operations.h"

namespace crema {

namespace {

class InnerProductLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const InnerProductParameter& param = setup.param().inner_product_param();
    const Shape& shape = setup.bottom_shape(0);
    if (param.num_output() < 1) {
      setup.Fail(param.has_num_output() ? "inner_product_param.num_output" : "inner_product_param",
                 "num_output must be at least 1; it is the number of outputs");
    }
    const int axis = setup.CanonicalAxis("inner_product_param.axis", param.axis());
    problem_ = {};
    problem_.rows = shape.count(0, axis);
    problem_.inputs = shape.count(axis);
    problem_.outputs = param.num_output();
    problem_.transpose = param.transpose();
    has_bias_ = param.bias_term();
    normalizes_ = param.normalize();
    if (normalizes_ && problem_.transpose) {
      setup.Fail("inner_product_param.normalize",
                 "normalize is not for weights with transpose: true; keep one of them");
    }
    if (normalizes_) {
      unit_rows_.Setup(problem_.outputs, problem_.inputs);
      UnitRows::CheckFiller(setup, "inner_product_param", param.weight_filler());
    }
    followers_.Setup(setup, 1);
    // What follows walks over the result anyway and takes the bias along.
    problem_.bias = has_bias_ && followers_.chain().empty();
    if (problem_.inputs < 1) {
      setup.Fail("bottom", setup.DescribeBottom(0) + " holds no values from axis " + std::to_string(axis) + " on");
    }
    std::vector<int64_t> top(shape.dims().begin(), shape.dims().begin() + axis);
    top.push_back(problem_.outputs);
    setup.SetTop(0, Shape(std::move(top)));
    AddFilledParam(
        setup, "inner_product_param.weight_filler",
        problem_.transpose ? Shape{problem_.inputs, problem_.outputs} : Shape{problem_.outputs, problem_.inputs},
        param.weight_filler());
    if (has_bias_) AddFilledParam(setup, "inner_product_param.bias_filler", {problem_.outputs}, param.bias_filler());
    setup.SetFlops(2.0 * static_cast<double>(problem_.rows) * static_cast<double>(problem_.inputs) *
                   static_cast<double>(problem_.outputs));
  }

  void Plan(LayerPlan& plan) override {
    problem_.factors = plan.factors();
    problem_.source_gradient = plan.bottom_grad(0);
    problem_.weights_gradient = plan.param_grad(0);
    problem_.bias_gradient = has_bias_ && plan.param_grad(1);
    kernel_ = PlanKernel(plan, &Operations::MakeInnerProduct, problem_);
    if (normalizes_) unit_rows_.Plan(plan);
    if (problem_.weights_gradient) plan.BackwardReadsBottom(0);
    if (!followers_.chain().empty()) {
      followers_.Plan(plan, problem_.rows * problem_.outputs);
      if (plan.backward()) plan.OverwriteTopGradient();
    }
    plan.Workspace(kernel_->forward_workspace(), kernel_->backward_workspace());
  }

  void Forward(const LayerRun& run) override {
    const float* bias = has_bias_ ? run.params[1].f32() : nullptr;
    const float* weights = run.params[0].f32();
    if (normalizes_) weights = unit_rows_.Forward(run, weights);
    kernel_->Forward(run.bottoms[0].f32(), weights, bias, run.tops[0].f32(), run.workspace);
    if (followers_.chain().empty()) return;
    run.ops->ChainForwardWithBias(followers_.chain(), followers_.Streams(run), bias, problem_.rows, problem_.outputs,
                                  run.tops[0].f32(), followers_.Masks(run));
  }

  void Backward(const LayerRun& run) override {
    if (!followers_.chain().empty()) {
      run.ops->ChainBackward(followers_.chain(), run.tops[0].raw(), followers_.Masks(run), run.top_grads[0],
                             run.top_grads[0]);
    }
    const float* const weights = run.params[0].f32();
    float* const gradient = run.param_grads[0].f32();
    kernel_->Backward(run.bottoms[0].f32(), normalizes_ ? unit_rows_.unit() : weights, run.top_grads[0].f32(),
                      run.bottom_grads[0].f32(), gradient, has_bias_ ? run.param_grads[1].f32() : nullptr,
                      run.workspace);
    if (normalizes_ && gradient) unit_rows_.Backward(run, weights, gradient);
  }

 private:
  InnerProductProblem problem_;
  MemberChain followers_;  // done on the product's result
  UnitRows unit_rows_;
  bool has_bias_ = true, normalizes_ = false;
  std::unique_ptr<InnerProductKernel> kernel_;
};

bool AcceptsGradient(std::span<const LayerSetup* const> members, std::string* why_not) {
  if (!AcceptsChain(members, why_not)) return false;
  // The product itself is not kept.
  if (ReadChain(members.subspan(1)).gradient_reads_input()) *why_not = "the gradient needs the InnerProduct's result";
  return why_not->empty();
}

}  // namespace

REGISTER_LAYER(InnerProduct, InnerProductLayer, "inner_product_param");
REGISTER_FUSION(InnerProductChain, InnerProductLayer, .types = {"InnerProduct", CREMA_CHAIN_LINKS "+"},
                .most_members = ElementwiseChain::kMostLinks, .accepts = AcceptsGradient);
REGISTER_FUSION(InnerProductAnyChain, InnerProductLayer, .types = {"InnerProduct", CREMA_CHAIN_LINKS "+"},
                .most_members = ElementwiseChain::kMostLinks, .inference_only = true, .accepts = AcceptsChain);

}  // namespace crema
