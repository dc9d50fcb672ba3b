// TripletLoss: draws a vector, the anchor, nearer to one of its kind than to one of another kind (Schroff, Kalenichenko
// and Philbin, "FaceNet: A Unified Embedding for Face Recognition and Clustering", 2015). Bottoms: anchors, those of
// their kind, those of others. Of forks of Caffe.

#include "crema/layer.h"
#include "layers/field_range.h"
#include "layers/loss.h"
#include "ops/operations.h"

namespace crema {

namespace {

class TripletLossLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    RefuseOtherForms(setup);
    setup.ExpectBottoms(3);
    setup.ExpectTops(1);
    ExpectSameItems(setup, 1);
    ExpectSameItems(setup, 2);
    const float margin = ReadInRange(setup, "triplet_loss_param.margin", setup.param().triplet_loss_param().margin(),
                                     kPositive, "by so much the squared distance to the other kind is to be larger");
    const ClassAxis rows = ItemsAsRows(setup.bottom_shape(0));
    loss_ = {rows.outer, rows.classes, margin};
    setup.SetTop(0, Shape());
    setup.MakeLoss();
    if (AllBottomsAlike(setup)) setup.AllowChannelsLast();
    setup.SetFlops(6.0 * static_cast<double>(rows.outer * rows.classes));
  }

  void Plan(LayerPlan& plan) override {
    if (plan.backward()) {
      for (int i = 0; i < 3; ++i) plan.BackwardReadsBottom(i);
      plan.Save({Shape{loss_.triplets}});  // differences of squared distances
    } else {
      plan.Workspace(loss_.triplets * sizeof(float), 0);
    }
  }

  void Forward(const LayerRun& run) override {
    float* difference = run.saved.empty() ? reinterpret_cast<float*>(run.workspace) : run.saved[0].f32();
    run.ops->TripletLossForward(loss_, Inputs(run), difference, run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    const auto wanted = [&](int i) { return run.bottom_grads[i].defined() ? run.bottom_grads[i].f32() : nullptr; };
    run.ops->TripletLossBackward(loss_, run.top_grads[0].f32(), Inputs(run), run.saved[0].f32(),
                                 {wanted(0), wanted(1), wanted(2)});
  }

 private:
  static void RefuseOtherForms(const LayerSetup& setup) {
    if (setup.bottoms() == 2) {
      setup.Fail("bottom",
                 "two bottoms, vectors with their labels or with the places of triplets among them, are a form of some "
                 "forks that is not supported; give three: anchors, vectors of their kind, vectors of another kind");
    }
    if (setup.bottoms() == 4) {
      setup.Fail("bottom",
                 "a fourth bottom, which some forks have for weights of the triplets, is not supported; remove it, and "
                 "all triplets count alike");
    }
  }

  static Triplets<const float> Inputs(const LayerRun& run) {
    return {run.bottoms[0].f32(), run.bottoms[1].f32(), run.bottoms[2].f32()};
  }

  TripletLoss loss_;
};

}  // namespace

REGISTER_LAYER(TripletLoss, TripletLossLayer, "triplet_loss_param");

}  // namespace crema
