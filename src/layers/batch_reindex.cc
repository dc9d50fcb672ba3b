// BatchReindex: item i of the top is item index[i] of bottom 0, where bottom 1 holds the indices.
#include <string>

#include "base/number_text.h"
#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

namespace {

class BatchReindexLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    const Shape &items = setup.bottom_shape(0), &index = setup.bottom_shape(1);
    if (items.axes() < 1) setup.Fail("bottom", "\"" + setup.param().bottom(0) + "\" is a single number; give a batch");
    if (index.axes() != 1) {
      setup.Fail("bottom", "takes a vector of indices as bottom 1, but \"" + setup.param().bottom(1) + "\" is " +
                               index.ToString() + "; flatten it with Reshape");
    }
    Shape top = items;
    top.set(0, index[0]);
    problem_ = {index[0], items[0], items.count(1)};
    for (int i = 0; i < 2; ++i) bottom_[i] = setup.param().bottom(i);
    setup.SetTop(0, std::move(top));
    setup.NoGradient(1);
    setup.MoveElements();
  }

  void Plan(LayerPlan& plan) override {
    if (!plan.backward()) return;
    plan.BackwardReadsBottom(1);
    plan.Workspace(0, OperationsOf(*plan.context().device).EmbedWorkspace(problem_));
  }

  void Forward(const LayerRun& run) override {
    const float* index = run.bottoms[1].f32();
    const int64_t bad = run.ops->FindBadIndex(problem_, index);
    if (bad >= 0) OnBadValue(bad, index[bad]);
    run.ops->EmbedForward(problem_, index, run.bottoms[0].f32(), nullptr, run.tops[0].f32());
  }

  void OnBadValue(int64_t position, float value) const override {
    throw BadItem(1, position,
                  "\"" + bottom_[1] + "\" holds " + FormatNumber(value, "%.9g") + ", but \"" + bottom_[0] +
                      "\" has items 0 to " + std::to_string(problem_.rows - 1) + "; give whole numbers in that range");
  }

  void Backward(const LayerRun& run) override {
    run.ops->EmbedBackward(problem_, run.bottoms[1].f32(), run.top_grads[0].f32(), run.bottom_grads[0].f32(),
                           run.workspace);
  }

 private:
  EmbedProblem problem_;   // the table is bottom 0
  std::string bottom_[2];  // their names, for messages
};

}  // namespace

REGISTER_LAYER(BatchReindex, BatchReindexLayer);

}  // namespace crema
