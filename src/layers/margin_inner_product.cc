// MarginInnerProduct: scores of classes by the angles between vectors and rows of the blob [num_output, length], where
// while training that of a vector's own class has a margin (SphereFace). Gradients are the derivatives; SphereFace's
// own layer shortens that of the own class's score by the vector, and leaves the margin out of that by the rows, which
// it writes back with length 1.
#include <string>
#include <vector>

#include "base/aligned_memory.h"
#include "crema/layer.h"
#include "graph/filler.h"
#include "layers/field_range.h"
#include "layers/labels.h"
#include "layers/plan_kernel.h"
#include "layers/unit_rows.h"
#include "ops/operations.h"

namespace crema {

namespace {

class MarginInnerProductLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    has_labels_ = setup.phase() == TRAIN || setup.bottoms() > 1;
    setup.ExpectBottoms(setup.phase() == TRAIN ? 2 : 1, 2);
    setup.ExpectTops(1, 2);
    if (has_labels_) setup.NoGradient(1);
    const MarginInnerProductParameter& param = setup.param().margin_inner_product_param();
    const Shape& shape = setup.bottom_shape(0);
    if (param.num_output() < 1) {
      setup.Fail(param.has_num_output() ? "margin_inner_product_param.num_output" : "margin_inner_product_param",
                 "num_output must be at least 1; it is the number of classes");
    }
    const int axis = setup.CanonicalAxis("margin_inner_product_param.axis", param.axis());
    problem_.rows = shape.count(0, axis);
    problem_.inputs = shape.count(axis);
    problem_.outputs = param.num_output();
    problem_.bias = false;
    if (problem_.inputs < 1) {
      setup.Fail("bottom", setup.DescribeBottom(0) + " holds no values from axis " + std::to_string(axis) + " on");
    }
    margin_.kind = LabelMargin::Kind::kAngleTimes;
    margin_.rows = problem_.rows;
    margin_.classes = problem_.outputs;
    margin_.times = 1 + static_cast<int32_t>(param.type());
    ReadLambda(setup);
    has_margin_ = setup.phase() == TRAIN && margin_.times > 1;
    if (has_labels_) labels_.SetupOwnClasses(setup, problem_.rows, problem_.outputs, "num_output");
    AddFilledParam(setup, "margin_inner_product_param.weight_filler", {problem_.outputs, problem_.inputs},
                   param.weight_filler());
    rows_.Setup(problem_.outputs, problem_.inputs);
    UnitRows::CheckFiller(setup, "margin_inner_product_param", param.weight_filler());
    std::vector<int64_t> top(shape.dims().begin(), shape.dims().begin() + axis);
    top.push_back(problem_.outputs);
    setup.SetTop(0, Shape(std::move(top)));
    has_lambda_top_ = setup.tops() == 2;
    if (has_lambda_top_) setup.SetTop(1, Shape{1});
    setup.SetFlops(2.0 * static_cast<double>(problem_.rows) * static_cast<double>(problem_.inputs) *
                   static_cast<double>(problem_.outputs));
  }

  void Plan(LayerPlan& plan) override {
    problem_.factors = plan.factors();
    problem_.source_gradient = plan.bottom_grad(0);
    problem_.weights_gradient = plan.param_grad(0);
    kernel_ = PlanKernel(plan, &Operations::MakeInnerProduct, problem_);
    rows_.Plan(plan);
    size_t of_rows = 0;  // bytes that a number for each row takes
    if (has_margin_) {
      of_rows = AlignedBytesOf<float>(problem_.rows);
      if (plan.backward()) {
        plan.BackwardReadsBottom(1);
        plan.OverwriteTopGradient();
        plan.Save({Shape{2, problem_.rows}});
      }
    }
    if (problem_.weights_gradient || (has_margin_ && problem_.source_gradient)) plan.BackwardReadsBottom(0);
    kernel_at_ = of_rows;
    plan.Workspace(of_rows + kernel_->forward_workspace(), of_rows + kernel_->backward_workspace());
  }

  void Forward(const LayerRun& run) override {
    const float* x = run.bottoms[0].f32();
    if (has_labels_) labels_.Run(run);
    kernel_->Forward(x, rows_.Forward(run, run.params[0].f32()), nullptr, run.tops[0].f32(),
                     run.workspace + kernel_at_);
    float* const lambda = has_lambda_top_ ? run.tops[1].f32() : nullptr;
    if (!has_margin_) {
      if (lambda) run.ops->Fill(0, run.tops[1]);
      return;
    }
    Reduction squares;
    squares.term = ReducedTerm::kSquare;
    squares.outer = problem_.rows;
    squares.reduced = problem_.inputs;
    auto* const of_row = reinterpret_cast<float*>(run.workspace);
    run.ops->Reduce(squares, x, of_row);
    MarginTape tape = TapeOf(run);
    tape.lambda = lambda;
    run.ops->ApplyMargin(margin_, run.pass, run.bottoms[1].f32(), of_row, run.tops[0].f32(), tape);
  }

  void Backward(const LayerRun& run) override {
    const float *x = run.bottoms[0].f32(), *weights = run.params[0].f32();
    float *dx = run.bottom_grads[0].f32(), *dweights = run.param_grads[0].f32();
    float* const dy = run.top_grads[0].f32();
    auto* const multiples = reinterpret_cast<float*>(run.workspace);
    if (has_margin_) run.ops->MarginGradient(margin_, run.bottoms[1].f32(), TapeOf(run), dy, multiples);
    kernel_->Backward(x, rows_.unit(), dy, dx, dweights, nullptr, run.workspace + kernel_at_);
    if (has_margin_ && dx) run.ops->AddScaledRows(problem_.rows, problem_.inputs, multiples, x, dx);
    if (dweights) rows_.Backward(run, weights, dweights);
  }

  void OnBadValue(int64_t position, float value) const override { labels_.Refuse(position, value); }

 private:
  void ReadLambda(LayerSetup& setup) {
    const MarginInnerProductParameter& param = setup.param().margin_inner_product_param();
    const auto number = [&](const char* field, float value) {
      return double{ReadInRange(setup, std::string("margin_inner_product_param.") + field, value, kNotNegative)};
    };
    margin_.base = number("base", param.base());
    margin_.gamma = number("gamma", param.gamma());
    margin_.power = number("power", param.power());
    margin_.least = number("lambda_min", param.lambda_min());
    margin_.first = 1 + number("iteration", static_cast<float>(param.iteration()));
  }

  MarginTape TapeOf(const LayerRun& run) const {
    if (run.saved.empty()) return {};
    float* const first = run.saved[0].f32();
    return {first, first + problem_.rows, nullptr};
  }

  InnerProductProblem problem_;
  LabelMargin margin_;
  LabelCheck labels_;
  UnitRows rows_;
  bool has_labels_ = true, has_margin_ = false, has_lambda_top_ = false;
  size_t kernel_at_ = 0;  // its memory in the workspace, behind a number for each row
  std::unique_ptr<InnerProductKernel> kernel_;
};

}  // namespace

REGISTER_LAYER(MarginInnerProduct, MarginInnerProductLayer, "margin_inner_product_param");

}  // namespace crema
