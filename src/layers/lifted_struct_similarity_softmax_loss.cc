// LiftedStructSimilaritySoftmaxLoss: draws vectors of one kind together and pushes all others of the batch away (Song
// et al., "Deep Metric Learning via Lifted Structured Feature Embedding", 2016). Bottoms: vectors, and the label of
// each. Of forks of Caffe.
#include <string>

#include "crema/layer.h"
#include "layers/field_range.h"
#include "layers/loss.h"
#include "ops/operations.h"

namespace crema {

namespace {

class LiftedStructureLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    setup.NoGradient(1);
    const float margin = ReadInRange(setup, "lifted_struct_sim_softmax_loss_param.margin",
                                     setup.param().lifted_struct_sim_softmax_loss_param().margin(), kPositive,
                                     "by so much other kinds are to be farther than the own one");
    const ClassAxis rows = ItemsAsRows(setup.bottom_shape(0));
    if (setup.bottom_shape(1).count() != rows.outer) {
      setup.Fail("bottom", "takes one label for each of the " + std::to_string(rows.outer) + " vectors of \"" +
                               setup.param().bottom(0) + "\", but " + setup.BottomIs(1));
    }
    loss_ = {rows.outer, rows.classes, margin};
    setup.SetTop(0, Shape());
    setup.MakeLoss();
    const auto pairs = static_cast<double>(rows.outer * rows.outer);
    setup.SetFlops(pairs * (1.5 * static_cast<double>(rows.classes) + 20));
  }

  void Plan(LayerPlan& plan) override {
    const Shape distances = {loss_.items, loss_.items}, rows = {kLiftedRows * loss_.items + 1};
    if (!plan.backward()) {
      return plan.Workspace(static_cast<size_t>(distances.count() + rows.count()) * sizeof(float), 0);
    }
    plan.BackwardReadsBottom(0);
    plan.BackwardReadsBottom(1);
    plan.Save({distances});
    plan.Save({rows});
    plan.Workspace(0, static_cast<size_t>(distances.count()) * sizeof(float));
  }

  void Forward(const LayerRun& run) override {
    run.ops->LiftedStructureForward(loss_, run.bottoms[0].f32(), run.bottoms[1].f32(), Tape(run), run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    run.ops->LiftedStructureBackward(loss_, run.top_grads[0].f32(), run.bottoms[0].f32(), run.bottoms[1].f32(),
                                     Tape(run), reinterpret_cast<float*>(run.workspace), run.bottom_grads[0].f32());
  }

 private:
  LiftedTape Tape(const LayerRun& run) const {
    const bool saved = !run.saved.empty();
    float* const distance = saved ? run.saved[0].f32() : reinterpret_cast<float*>(run.workspace);
    float* const rows = saved ? run.saved[1].f32() : distance + loss_.items * loss_.items;
    return {distance, rows, rows + kLiftedRows * loss_.items};
  }

  LiftedStructure loss_;
};

}  // namespace

REGISTER_LAYER(LiftedStructSimilaritySoftmaxLoss, LiftedStructureLayer, "lifted_struct_sim_softmax_loss_param");

}  // namespace crema
