// CtcLoss: connectionist temporal classification (ops/sequences/ctc.h): the mean over sequences of -log(probability of
// its labels). Bottoms: scores T x N x C, of which the softmax is taken, and labels N x L. Top: the loss.
#include <string>

#include "crema/layer.h"
#include "layers/label_sequences.h"
#include "layers/labels.h"
#include "ops/operations.h"
#include "ops/sequences/ctc_formulas.h"

namespace crema {

namespace {

class CtcLossLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    const CtcLossParameter& param = setup.param().ctc_loss_param();
    CheckSequenceScores(setup, "ctc_loss_param", param.blank_label(), "T x N x C");
    if (!param.has_blank_label()) {
      setup.Warn("ctc_loss_param",
                 "blank_label is not set, so that class 0 is the blank, and labels of 0 count as none; set it in all "
                 "layers that read these scores, to 0 where that is meant");
    }
    const Shape& scores = setup.bottom_shape(0);
    ExpectExtent(setup, "time_step", param.time_step(), 0, "steps");
    ExpectExtent(setup, "alphabet_size", param.alphabet_size(), 2, "classes");
    problem_ = {
        scores[0], scores[1], scores[2], LongestSequence(setup, scores[1]), param.blank_label(), param.zero_infinity()};
    labels_.SetupSequences(setup, problem_.classes, problem_.longest, ctc::NoLabel());
    setup.MakeLoss();
    setup.NoGradient(1);
    setup.SetTop(0, Shape());
    setup.SetFlops(4.0 * static_cast<double>(scores.count()) +
                   80.0 * static_cast<double>(problem_.rows() * problem_.states()));
  }

  void Plan(LayerPlan& plan) override {
    Operations& ops = OperationsOf(*plan.context().device);
    forward_workspace_ = ops.CtcForwardWorkspace(problem_);
    if (plan.backward()) {
      plan.BackwardReadsBottom(0);
      plan.Save({{TapeNumbers()}, DType::kF32});
      plan.Workspace(forward_workspace_, ops.CtcBackwardWorkspace(problem_));
    } else {
      plan.Workspace(forward_workspace_ + static_cast<size_t>(TapeNumbers()) * sizeof(float), 0);
    }
  }

  void Forward(const LayerRun& run) override {
    const float* labels = run.bottoms[1].f32();
    const int64_t bad = run.ops->FindBadSequence(problem_, labels);
    if (bad >= 0) OnBadValue(bad, labels[bad]);
    run.ops->CtcLossForward(problem_, run.bottoms[0].f32(), labels, TapeOf(run), run.tops[0].f32(), run.workspace);
  }

  void Backward(const LayerRun& run) override {
    run.ops->CtcLossBackward(problem_, run.top_grads[0].f32(), run.bottoms[0].f32(), TapeOf(run),
                             run.bottom_grads[0].f32(), run.workspace);
  }

  void OnBadValue(int64_t position, float value) const override {
    if (!ctc::IsLabel(problem_, value)) labels_.Refuse(position, value);
    throw BadItem(1, position / problem_.longest,
                  "the labels up to number " + std::to_string(position % problem_.longest + 1) +
                      " take more than the " + std::to_string(problem_.steps) +
                      " steps of the scores, as each takes one, and one more where it is the label before again; "
                      "leave the sequence out, give more steps, or count such sequences with loss 0 by "
                      "ctc_loss_param { zero_infinity: true }");
  }

 private:
  void ExpectExtent(const LayerSetup& setup, const std::string& field, uint32_t expected, int axis,
                    const std::string& what) const {
    const int64_t extent = setup.bottom_shape(0)[axis];
    if (expected == 0 || expected == extent) return;
    setup.Fail("ctc_loss_param." + field, field + " is " + std::to_string(expected) + ", but " +
                                              setup.DescribeBottom(0) + " has " + std::to_string(extent) + " " + what +
                                              " (T x N x C); correct it, or leave it out");
  }

  int64_t TapeNumbers() const {
    const int64_t rows = problem_.rows(), states = problem_.states();
    return rows * (states + 2) + problem_.batch * (states + 1);
  }

  CtcTape TapeOf(const LayerRun& run) const {
    float* const numbers =
        run.saved.empty() ? reinterpret_cast<float*>(run.workspace + forward_workspace_) : run.saved[0].f32();
    float* const alphas = numbers + 2 * problem_.rows();
    auto* const classes = reinterpret_cast<int32_t*>(alphas + problem_.rows() * problem_.states());
    return {reinterpret_cast<CtcRow*>(numbers), alphas, classes, classes + problem_.batch * problem_.states()};
  }

  CtcProblem problem_;
  LabelCheck labels_;
  size_t forward_workspace_ = 0;
};

}  // namespace

REGISTER_LAYER(CtcLoss, CtcLossLayer, "ctc_loss_param");

}  // namespace crema
