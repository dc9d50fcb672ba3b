// MMDLoss: how far the vectors of two domains lie apart, by Gaussian kernels of several widths (Long et al., "Learning
// Transferable Features with Deep Adaptation Networks", 2015). It compares all vectors of the batch, where the fork
// draws pairs of them.
#include <cmath>
#include <string>

#include "base/number_text.h"
#include "crema/layer.h"
#include "layers/field_range.h"
#include "layers/loss.h"
#include "ops/operations.h"

namespace crema {

namespace {

class MmdLossLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    ReadKernels(setup, setup.param().mmd_param());
    const ClassAxis first = ItemsAsRows(setup.bottom_shape(0)), second = ItemsAsRows(setup.bottom_shape(1));
    if (first.classes != second.classes) {
      setup.Fail("bottom", "takes vectors of one length, but " + setup.BottomIs(0) + " and " + setup.BottomIs(1));
    }
    for (int i = 0; i < 2; ++i) {
      if (BatchOf(setup.bottom_shape(i)) >= 2) continue;
      setup.Fail("bottom", "takes at least 2 vectors of each domain, but " + setup.BottomIs(i));
    }
    loss_.first_count = first.outer;
    loss_.second_count = second.outer;
    loss_.width = first.classes;
    setup.SetTop(0, Shape());
    setup.MakeLoss();
    const auto pairs = static_cast<double>(loss_.count() * loss_.count());
    setup.SetFlops(pairs * (1.5 * static_cast<double>(loss_.width) + 10.0 * static_cast<double>(loss_.kernels)));
  }

  void Plan(LayerPlan& plan) override {
    const Shape distances = {loss_.count(), loss_.count()};
    const size_t bytes = static_cast<size_t>(distances.count()) * sizeof(float);
    if (!plan.backward()) return plan.Workspace(bytes + sizeof(float), 0);
    plan.BackwardReadsBottom(0);
    plan.BackwardReadsBottom(1);
    plan.Save({distances});
    plan.Save({Shape{1}});  // gamma
    plan.Workspace(0, bytes);
  }

  void Forward(const LayerRun& run) override {
    run.ops->MeanDiscrepancyForward(loss_, run.bottoms[0].f32(), run.bottoms[1].f32(), Tape(run), run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    const auto wanted = [&](int i) { return run.bottom_grads[i].defined() ? run.bottom_grads[i].f32() : nullptr; };
    run.ops->MeanDiscrepancyBackward(loss_, run.top_grads[0].f32(), run.bottoms[0].f32(), run.bottoms[1].f32(),
                                     Tape(run), reinterpret_cast<float*>(run.workspace), wanted(0), wanted(1));
  }

 private:
  void ReadKernels(LayerSetup& setup, const MMDParameter& param) {
    ReadInRange(setup, "mmd_param.kernel_num", param.kernel_num(), {1, 64});
    ReadInRange(setup, "mmd_param.kernel_mul", param.kernel_mul(), kPositive, "2 is usual");
    // The widest kernel's factor, and that of the narrowest one.
    const double span = std::pow(static_cast<double>(param.kernel_mul()), (param.kernel_num() + 1) / 2);
    if (!(span > 1e-15 && span < 1e15)) {
      setup.Fail("mmd_param", "kernel_num " + std::to_string(param.kernel_num()) + " and kernel_mul " +
                                  FormatNumber(param.kernel_mul()) +
                                  " make kernels so wide and so narrow that they tell nothing apart; kernel_num: 5 "
                                  "kernel_mul: 2 are usual");
    }
    if (param.fix_gamma()) {
      setup.Fail("mmd_param.fix_gamma",
                 "fix_gamma: true, the first batch's gamma for all, is not supported; remove it, and each batch has "
                 "its own, as with false");
    }
    loss_.kernels = param.kernel_num();
    loss_.multiple = param.kernel_mul();
  }

  DiscrepancyTape Tape(const LayerRun& run) const {
    if (!run.saved.empty()) return {run.saved[0].f32(), run.saved[1].f32()};
    auto* const distance = reinterpret_cast<float*>(run.workspace);
    return {distance, distance + loss_.count() * loss_.count()};
  }

  MeanDiscrepancy loss_;
};

}  // namespace

REGISTER_LAYER(MMDLoss, MmdLossLayer, "mmd_param");

}  // namespace crema
