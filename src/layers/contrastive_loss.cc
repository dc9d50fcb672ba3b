// ContrastiveLoss: pulls pairs of vectors of one kind together and others at least a margin apart (Hadsell, Chopra and
// LeCun, "Dimensionality Reduction by Learning an Invariant Mapping", 2006). Bottoms: the vectors, and for each pair
// whether both are of one kind.
#include <string>

#include "base/number_text.h"
#include "crema/layer.h"
#include "layers/field_range.h"
#include "layers/loss.h"
#include "ops/operations.h"

namespace crema {

namespace {

class ContrastiveLossLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(3);
    setup.ExpectTops(1);
    ExpectVectors(setup, 0);
    ExpectVectors(setup, 1);
    ExpectSameItems(setup, 1);
    const ClassAxis rows = ItemsAsRows(setup.bottom_shape(0));
    const Shape& similar = setup.bottom_shape(2);
    if (BatchOf(similar) != rows.outer || similar.count() != rows.outer) {
      setup.Fail("bottom", "\"" + setup.param().bottom(0) + "\" holds " + std::to_string(rows.outer) +
                               " vectors, but \"" + setup.param().bottom(2) + "\" is " + similar.ToString() +
                               "; give one number for each pair: 1 where both are of one kind, else 0");
    }
    const ContrastiveLossParameter& param = setup.param().contrastive_loss_param();
    ReadInRange(setup, "contrastive_loss_param.margin", param.margin(), kPositive,
                "unlike pairs are pushed apart so far");
    loss_ = {rows.outer, rows.classes, param.margin(), param.legacy_version()};
    setup.SetTop(0, Shape());
    setup.MakeLoss();
    setup.NoGradient(2);
    setup.SetFlops(3.0 * static_cast<double>(rows.outer * rows.classes));
  }

  void Plan(LayerPlan& plan) override {
    if (plan.backward()) {
      for (int i = 0; i < 3; ++i) plan.BackwardReadsBottom(i);
      plan.Save({Shape{loss_.pairs}});  // squared distances
    } else {
      plan.Workspace(loss_.pairs * sizeof(float), 0);
    }
  }

  void Forward(const LayerRun& run) override {
    const float* const similar = run.bottoms[2].f32();
    const int64_t bad = run.ops->FindBadTarget(loss_.pairs, similar);
    if (bad >= 0) OnBadValue(bad, similar[bad]);
    float* distance = run.saved.empty() ? reinterpret_cast<float*>(run.workspace) : run.saved[0].f32();
    run.ops->ContrastiveLossForward(loss_, run.bottoms[0].f32(), run.bottoms[1].f32(), run.bottoms[2].f32(), distance,
                                    run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    const auto wanted = [&](int i) { return run.bottom_grads[i].defined() ? run.bottom_grads[i].f32() : nullptr; };
    run.ops->ContrastiveLossBackward(loss_, run.top_grads[0].f32(), run.bottoms[0].f32(), run.bottoms[1].f32(),
                                     run.bottoms[2].f32(), run.saved[0].f32(), wanted(0), wanted(1));
  }

  void OnBadValue(int64_t position, float value) const override {
    throw BadItem(2, position,
                  "a pair is marked by " + FormatNumber(value) +
                      "; give 1 where both are of one kind, and 0, not -1, where they are not");
  }

 private:
  static void ExpectVectors(const LayerSetup& setup, int bottom) {
    const Shape& shape = setup.bottom_shape(bottom);
    if (shape.axes() <= 2 || shape.count(2) == 1) return;
    setup.Fail("bottom", "\"" + setup.param().bottom(bottom) + "\" is " + shape.ToString() +
                             ", but a vector lies along axis 1 alone; put a Flatten layer before");
  }

  ContrastiveLoss loss_;
};

}  // namespace

REGISTER_LAYER(ContrastiveLoss, ContrastiveLossLayer, "contrastive_loss_param");

}  // namespace crema
