// MatMul: scale times the products of the matrices in the last two axes of two bottoms, one for each place of the axes
// before them, as attention takes them (Vaswani et al., "Attention Is All You Need", 2017).
#include <algorithm>
#include <string>

#include "crema/layer.h"
#include "layers/field_range.h"
#include "layers/plan_kernel.h"
#include "ops/operations.h"

namespace crema {

namespace {

class MatMulLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    const MatMulParameter& param = setup.param().matmul_param();
    ReadInRange(setup, "matmul_param.scale", param.scale(), kFinite, "for attention it is 1 / sqrt(K)");
    const Shape &a = setup.bottom_shape(0), &b = setup.bottom_shape(1);
    for (int i = 0; i < 2; ++i) {
      if (setup.bottom_shape(i).axes() >= 2) continue;
      setup.Fail("bottom", "multiplies the matrices in the last two axes, but " + setup.BottomIs(i) +
                               ", which has fewer; put a Reshape before it");
    }
    const std::vector<int64_t> before(a.dims().begin(), a.dims().end() - 2);
    if (before != std::vector<int64_t>(b.dims().begin(), b.dims().end() - 2)) {
      setup.Fail(
          "bottom",
          Both(setup) + "; the axes before the last two must be the same in both. Reshape or Tile makes them so");
    }
    product_ = {.batches = a.count(0, a.axes() - 2),
                .m = param.transpose_a() ? a[-1] : a[-2],
                .n = param.transpose_b() ? b[-2] : b[-1],
                .k = param.transpose_a() ? a[-2] : a[-1],
                .transpose_a = param.transpose_a(),
                .transpose_b = param.transpose_b(),
                .alpha = param.scale()};
    const int64_t k_of_b = param.transpose_b() ? b[-1] : b[-2];
    if (product_.k != k_of_b) FailForK(setup, k_of_b);
    if (product_.m < 1 || product_.n < 1 || product_.k < 1) {
      setup.Fail("bottom", Both(setup) + "; matrices must have at least one row and one column");
    }
    std::vector<int64_t> top = before;
    top.insert(top.end(), {product_.m, product_.n});
    setup.SetTop(0, Shape(std::move(top)));
    setup.SetFlops(2.0 * static_cast<double>(product_.batches) * static_cast<double>(product_.m) *
                   static_cast<double>(product_.n) * static_cast<double>(product_.k));
  }

  void Plan(LayerPlan& plan) override {
    product_.factors = plan.factors();
    forward_ = PlanKernel(plan, &Operations::MakeBatchedProduct, product_);
    size_t backward_workspace = 0;
    for (int i = 0; i < 2; ++i) {
      if (!plan.bottom_grad(i)) continue;
      gradient_[i] = PlanGradientKernel(plan, &Operations::MakeBatchedProduct,
                                        i == 0 ? GradientOfA(product_) : GradientOfB(product_));
      plan.BackwardReadsBottom(1 - i);
      backward_workspace = std::max(backward_workspace, gradient_[i]->workspace());
    }
    plan.Workspace(forward_->workspace(), backward_workspace);
  }

  void Forward(const LayerRun& run) override {
    forward_->Run(run.bottoms[0].f32(), run.bottoms[1].f32(), run.tops[0].f32(), run.workspace);
  }

  void Backward(const LayerRun& run) override {
    const float *a = run.bottoms[0].f32(), *b = run.bottoms[1].f32(), *dc = run.top_grads[0].f32();
    if (run.bottom_grads[0].defined()) {
      gradient_[0]->Run(product_.transpose_a ? b : dc, product_.transpose_a ? dc : b, run.bottom_grads[0].f32(),
                        run.workspace);
    }
    if (run.bottom_grads[1].defined()) {
      gradient_[1]->Run(product_.transpose_b ? dc : a, product_.transpose_b ? a : dc, run.bottom_grads[1].f32(),
                        run.workspace);
    }
  }

 private:
  static std::string Both(const LayerSetup& setup) { return setup.BottomIs(0) + " and " + setup.BottomIs(1); }

  [[noreturn]] void FailForK(const LayerSetup& setup, int64_t k_of_b) const {
    const Shape &a = setup.bottom_shape(0), &b = setup.bottom_shape(1);
    std::string message =
        "cannot multiply " + Matrix(product_.m, product_.k) + " by " + Matrix(k_of_b, product_.n) + ": " + Both(setup);
    if (a[-1] == b[-1]) {
      message += Remedy(false, true);
    } else if (a[-1] == b[-2]) {
      message += Remedy(false, false);
    } else if (a[-2] == b[-2]) {
      message += Remedy(true, false);
    } else if (a[-2] == b[-1]) {
      message += Remedy(true, true);
    } else {
      message += ", which share no extent to sum over; change the layers that make them";
    }
    setup.Fail("bottom", message);
  }
  static std::string Matrix(int64_t rows, int64_t columns) {
    return std::to_string(rows) + "x" + std::to_string(columns);
  }
  static std::string Remedy(bool transpose_a, bool transpose_b) {
    return std::string("; they fit with transpose_a: ") + (transpose_a ? "true" : "false") +
           " transpose_b: " + (transpose_b ? "true" : "false");
  }

  BatchedProductProblem product_;
  std::unique_ptr<BatchedProductKernel> forward_, gradient_[2];
};

}  // namespace

REGISTER_LAYER(MatMul, MatMulLayer, "matmul_param");

}  // namespace crema
