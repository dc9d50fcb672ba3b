// LabelsequenceAccuracy: how many sequences, and labels of sequences, CtcDecoder would tell right. Bottoms: scores N x
// T x C and labels N x L. Tops: the share of right sequences; optionally that of right labels
// (ops/sequences/label_sequences.h).
#include "crema/layer.h"
#include "layers/label_sequences.h"
#include "layers/labels.h"
#include "ops/operations.h"
#include "ops/sequences/ctc_formulas.h"

namespace crema {

namespace {

class LabelsequenceAccuracyLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1, 2);
    const int32_t blank = setup.param().labelsequence_accuracy_param().blank_label();
    CheckSequenceScores(setup, "labelsequence_accuracy_param", blank, "N x T x C");
    const Shape& scores = setup.bottom_shape(0);
    scores_ = {scores[1], scores[0], scores[2], blank, true};
    comparison_ = {scores[0], scores[1], LongestSequence(setup, scores[0]), blank};
    labels_.SetupSequences(setup, scores[2], comparison_.longest, ctc::NoLabel());
    has_labels_top_ = setup.tops() == 2;
    setup.MakeNonDifferentiable();
    for (int i = 0; i < setup.tops(); ++i) setup.SetTop(i, Shape());
  }

  void Plan(LayerPlan& plan) override {
    comparison_workspace_ = OperationsOf(*plan.context().device).SequenceComparisonWorkspace(comparison_);
    plan.Workspace(comparison_workspace_ + static_cast<size_t>(scores_.batch * scores_.steps) * sizeof(float), 0);
  }

  void Forward(const LayerRun& run) override {
    labels_.Run(run);
    auto* const sequences = reinterpret_cast<float*>(run.workspace + comparison_workspace_);
    run.ops->DecodeSequences(scores_, run.bottoms[0].f32(), sequences);
    run.ops->CompareSequences(comparison_, sequences, run.bottoms[1].f32(), run.tops[0].f32(),
                              has_labels_top_ ? run.tops[1].f32() : nullptr, run.workspace);
  }

  void OnBadValue(int64_t position, float value) const override { labels_.Refuse(position, value); }

 private:
  SequenceScores scores_;
  SequenceComparison comparison_;
  LabelCheck labels_;
  bool has_labels_top_ = false;
  size_t comparison_workspace_ = 0;
};

}  // namespace

REGISTER_LAYER(LabelsequenceAccuracy, LabelsequenceAccuracyLayer, "labelsequence_accuracy_param");

}  // namespace crema
