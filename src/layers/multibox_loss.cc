// MultiBoxLoss: how wrong the boxes and scores are that a detector predicts for its priors (Liu et al., "SSD: Single
// Shot MultiBox Detector", 2016). The sum of the losses of boxes, times loc_weight, and of scores, divided as
// normalization says. As in SSD's own layer, a term whose bottom has propagate_down: false is left out. With
// encode_variance_in_target the gradient is the derivative, where that layer leaves the variances out.
#include <limits>
#include <string>

#include "base/aligned_memory.h"
#include "crema/layer.h"
#include "layers/field_range.h"
#include "layers/loss.h"
#include "layers/object_check.h"
#include "ops/operations.h"

namespace crema {

namespace {

constexpr const char* kFields = "multibox_loss_param.";

BoxCode CodeOf(PriorBoxParameter::CodeType type) {
  if (type == PriorBoxParameter::CENTER_SIZE) return BoxCode::kCenterSize;
  return type == PriorBoxParameter::CORNER_SIZE ? BoxCode::kCornerSize : BoxCode::kCorner;
}

class MultiBoxLossLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(4);
    setup.ExpectTops(1);
    RefuseUnsupported(setup);
    ReadClasses(setup);
    ReadMatching(setup);
    ReadMining(setup);
    ReadShapes(setup);
    const MultiBoxLossParameter& param = setup.param().multibox_loss_param();
    problem_.logistic = param.conf_loss_type() == MultiBoxLossParameter::LOGISTIC;
    problem_.code = CodeOf(param.code_type());
    problem_.divides_by_variance = param.encode_variance_in_target();
    problem_.divisor =
        static_cast<double>(ReadNormalizer(setup, LossParameter::VALID, problem_.places(), problem_.images, true));
    RefuseSoftmaxSettings(setup);
    RefuseBalance(setup);
    if (setup.param().loss_param().has_ignore_label()) {
      setup.Warn("loss_param.ignore_label", "MultiBoxLoss does not read ignore_label; remove it");
    }

    loc_weight_ = ReadInRange(setup, "multibox_loss_param.loc_weight", param.loc_weight(), kNotNegative);
    const bool squares = param.loc_loss_type() == MultiBoxLossParameter::L2;
    difference_loss_ = {1, squares ? std::numeric_limits<float>::infinity() : 1.0f, 1};
    axis_.outer = problem_.places();
    axis_.classes = problem_.classes;
    softmax_loss_ = {axis_, {true, kUncounted}, 1, nullptr};
    sigmoid_loss_ = {{true, kUncounted}, 1};

    const auto propagates = [&](int i) {
      return i >= setup.param().propagate_down_size() || setup.param().propagate_down(i);
    };
    has_boxes_ = propagates(0);
    has_scores_ = propagates(1);
    if (!has_boxes_) setup.NoGradient(0);
    if (!has_scores_) setup.NoGradient(1);
    setup.NoGradient(2);
    setup.NoGradient(3);
    setup.SetTop(0, Shape());
    setup.MakeLoss();
    setup.SetFlops(5.0 * static_cast<double>(setup.bottom_shape(1).count()));
  }

  void Plan(LayerPlan& plan) override {
    forward_bytes_ = 0;
    const bool of_boxes = plan.bottom_grad(0), of_scores = plan.bottom_grad(1);
    if (of_boxes) plan.BackwardReadsBottom(0);
    if (of_scores && problem_.logistic) plan.BackwardReadsBottom(1);
    const int64_t places = problem_.places();
    share_ = Place(plan, plan.backward(), {1});
    label_ = Place(plan, of_scores && !problem_.logistic, {places});
    (problem_.logistic ? class_target_ : probability_) = Place(plan, of_scores, plan.bottom(1).shape);
    if (problem_.logistic) normalizer_ = Place(plan, of_scores, {1});
    if (has_boxes_) location_ = Place(plan, of_boxes, plan.bottom(0).shape);
    if (has_boxes_ && problem_.divides_by_variance) weight_ = Place(plan, of_boxes, plan.bottom(0).shape);
    best_ = Place(plan, false, {2 * problem_.objects});
    if (problem_.mines) rank_ = Place(plan, false, {2 * places});
    match_ = Place(plan, false, {places});
    overlap_ = Place(plan, false, {places});
    loss_of_boxes_ = Place(plan, false, {1});
    loss_of_scores_ = Place(plan, false, {1});
    plan.Workspace(forward_bytes_, plan.backward() ? 2 * kTensorAlignment : 0);
  }

  void Forward(const LayerRun& run) override {
    Operations& ops = *run.ops;
    const float *scores = run.bottoms[1].f32(), *priors = run.bottoms[2].f32(), *objects = run.bottoms[3].f32();
    object_check_.Run(run);

    auto* const rank = reinterpret_cast<uint64_t*>(rank_.On(run).raw());
    const Tensor match = match_.On(run), overlap = overlap_.On(run), share = share_.On(run), label = label_.On(run);
    ops.MatchPriors(problem_, priors, objects, reinterpret_cast<uint64_t*>(best_.On(run).raw()), match.i32(),
                    overlap.f32());
    if (!problem_.logistic) {
      ops.SoftmaxForward(axis_, scores, probability_.On(run).f32());
      scores = probability_.On(run).f32();
    }
    if (problem_.mines) ops.RankNegatives(problem_, scores, match.i32(), overlap.f32(), rank);
    const MultiBoxMatches matches = {priors, objects, run.bottoms[0].f32(), match.i32(), rank};
    ops.MakeMultiBoxTargets(
        problem_, matches,
        {label.f32(), class_target_.On(run).f32(), location_.On(run).f32(), weight_.On(run).f32(), share.f32()});

    const Tensor of_boxes = loss_of_boxes_.On(run), of_scores = loss_of_scores_.On(run);
    if (!has_boxes_) {
      ops.Fill(0, of_boxes);
    } else {
      ops.DifferenceLossForward(difference_loss_, Differences(run), of_boxes.f32());
    }
    if (!has_scores_) {
      ops.Fill(0, of_scores);
    } else if (problem_.logistic) {
      ops.SigmoidLossForward(sigmoid_loss_, {run.bottoms[1], class_target_.On(run)}, {normalizer_.On(run).f32()},
                             of_scores.f32());
    } else {
      ops.SoftmaxLossForward(softmax_loss_, scores, label.f32(), of_scores.f32());
    }
    ops.WeightedSum(loc_weight_, of_boxes, 1, of_scores, of_scores);
    ops.Product(of_scores, share, run.tops[0].Reshaped({1}));
  }

  void Backward(const LayerRun& run) override {
    Operations& ops = *run.ops;
    const Tensor of_scores(run.workspace, {Shape{1}}), of_boxes(run.workspace + kTensorAlignment, {Shape{1}});
    ops.Product(run.top_grads[0].Reshaped({1}), share_.On(run), of_scores);
    if (run.bottom_grads[0].defined()) {
      ops.Multiply(loc_weight_, of_scores, of_boxes);
      ops.DifferenceLossBackward(difference_loss_, of_boxes.f32(), Differences(run), run.bottom_grads[0], {});
    }
    if (!run.bottom_grads[1].defined()) return;
    if (problem_.logistic) {
      ops.SigmoidLossBackward(sigmoid_loss_, of_scores.f32(), {normalizer_.On(run).f32()},
                              {run.bottoms[1], class_target_.On(run)}, run.bottom_grads[1]);
    } else {
      ops.SoftmaxLossBackward(softmax_loss_, of_scores.f32(), probability_.On(run).f32(), label_.On(run).f32(),
                              run.bottom_grads[1].f32());
    }
  }

  void OnBadValue(int64_t position, float value) const override { object_check_.Refuse(position, value); }

 private:
  // Floats, or numbers of as many bytes, that are kept for the backward pass or lie in the workspace of the forward
  // one.
  struct Array {
    Shape shape = {0};
    int saved = -1;     // which of the saved tensors
    size_t offset = 0;  // in the workspace

    // Undefined where there is none.
    Tensor On(const LayerRun& run) const {
      if (saved >= 0) return run.saved[static_cast<size_t>(saved)];
      return shape.count() > 0 ? Tensor(run.workspace + offset, {shape}) : Tensor();
    }
  };

  Array Place(LayerPlan& plan, bool keep, const Shape& shape) {
    if (keep) return {shape, plan.Save({shape}), 0};
    const size_t offset = forward_bytes_;
    forward_bytes_ += AlignedBytesOf<float>(shape.count());
    return {shape, -1, offset};
  }

  DifferenceInputs Differences(const LayerRun& run) const {
    return {run.bottoms[0], location_.On(run), weight_.On(run), {}};
  }

  static void RefuseUnsupported(const LayerSetup& setup) {
    const MultiBoxLossParameter& param = setup.param().multibox_loss_param();
    const auto refuse = [&](const std::string& field, const std::string& message) {
      setup.Fail(kFields + field, message);
    };
    if (!param.share_location()) {
      refuse("share_location",
             "share_location: false is not supported: all classes of a prior share one box; remove it");
    }
    if (!param.use_prior_for_matching()) {
      refuse("use_prior_for_matching",
             "use_prior_for_matching: false is not supported: objects are matched with the priors; remove it");
    }
    if (param.mining_type() == MultiBoxLossParameter::HARD_EXAMPLE) {
      refuse("mining_type", "mining_type: HARD_EXAMPLE is not supported; use MAX_NEGATIVE, or NONE for all priors");
    }
    if (param.bp_inside()) {
      refuse("bp_inside", "bp_inside: true is not supported: corners outside of the image are learnt, too; remove it");
    }
    if (param.has_nms_param() && param.nms_param().nms_threshold() > 0) {
      refuse("nms_param", "nms_param is not supported: negatives are those of the largest losses; remove it");
    }
  }

  void ReadClasses(const LayerSetup& setup) {
    const MultiBoxLossParameter& param = setup.param().multibox_loss_param();
    if (param.num_classes() < 1) {
      setup.Fail(param.has_num_classes() ? "multibox_loss_param.num_classes" : "multibox_loss_param",
                 "num_classes must be given, at least 1; it is the number of classes, the background among them");
    }
    problem_.classes = param.num_classes();
    problem_.background = param.background_label_id();
    problem_.agnostic = param.map_object_to_agnostic();
    if (problem_.background >= problem_.classes) {
      setup.Fail("multibox_loss_param.background_label_id",
                 "background_label_id is " + std::to_string(problem_.background) + ", but num_classes " +
                     std::to_string(problem_.classes) + " gives classes 0 to " + std::to_string(problem_.classes - 1));
    }
    if (problem_.agnostic && (problem_.classes != 2 || problem_.background != 0)) {
      setup.Fail("multibox_loss_param.map_object_to_agnostic",
                 "map_object_to_agnostic: true needs num_classes: 2 and background_label_id: 0, the background and all "
                 "objects, but they are " +
                     std::to_string(problem_.classes) + " and " + std::to_string(problem_.background));
    }
  }

  void ReadMatching(const LayerSetup& setup) {
    const MultiBoxLossParameter& param = setup.param().multibox_loss_param();
    problem_.per_prediction = param.match_type() == MultiBoxLossParameter::PER_PREDICTION;
    problem_.overlap_threshold =
        ReadInRange(setup, "multibox_loss_param.overlap_threshold", param.overlap_threshold(), kFraction);
    problem_.use_difficult = param.use_difficult_gt();
    problem_.whole_only = param.ignore_cross_boundary_bbox();
  }

  void ReadMining(const LayerSetup& setup) {
    const MultiBoxLossParameter& param = setup.param().multibox_loss_param();
    problem_.mines = param.mining_type() == MultiBoxLossParameter::MAX_NEGATIVE;
    if (param.has_do_neg_mining()) {
      if (param.has_mining_type() && param.do_neg_mining() != problem_.mines) {
        setup.Fail("multibox_loss_param.do_neg_mining",
                   "do_neg_mining is the old way to say mining_type and says something else; remove it");
      }
      problem_.mines = param.do_neg_mining();
    }
    problem_.negatives_per_match =
        ReadInRange(setup, "multibox_loss_param.neg_pos_ratio", param.neg_pos_ratio(), kNotNegative);
    problem_.negative_overlap =
        ReadInRange(setup, "multibox_loss_param.neg_overlap", param.neg_overlap(), kNotNegative);
  }

  void ReadShapes(const LayerSetup& setup) {
    const Shape &boxes = setup.bottom_shape(0), &scores = setup.bottom_shape(1), &priors = setup.bottom_shape(2);
    if (priors.axes() != 3 || priors[0] != 1 || priors[1] != 2 || priors[2] % 4 != 0 || priors[2] == 0) {
      setup.Fail("bottom", setup.BottomIs(2) +
                               ", but the priors are 1 x 2 x (4 for each), as PriorBox makes them; give them as "
                               "the third bottom");
    }
    problem_.priors = priors[2] / 4;
    problem_.objects = TrueObjectRows(setup, 3);
    problem_.images = BatchOf(boxes);
    object_check_.Setup(setup, 3, problem_.rows());
    const std::string of_priors =
        " for the " + std::to_string(problem_.priors) + " priors of " + "\"" + setup.param().bottom(2) + "\"";
    if (boxes.axes() < 2 || boxes.count(1) != 4 * problem_.priors) {
      setup.Fail("bottom", setup.BottomIs(0) + ", but predicted boxes are images x " +
                               std::to_string(4 * problem_.priors) + ", 4" + of_priors +
                               "; do Convolution, Permute and Flatten keep that order?");
    }
    if (scores.axes() < 2 || scores.count(1) != problem_.classes * problem_.priors) {
      setup.Fail("bottom", setup.BottomIs(1) + ", but scores are images x " +
                               std::to_string(problem_.classes * problem_.priors) + ", num_classes " +
                               std::to_string(problem_.classes) + of_priors +
                               "; correct num_classes or the layers that make them");
    }
    if (scores[0] != boxes[0]) {
      setup.Fail("bottom", setup.BottomIs(0) + ", but " + setup.BottomIs(1) + "; give both as many images");
    }
  }

  MultiBoxProblem problem_;
  DifferenceLoss difference_loss_;
  ClassAxis axis_;
  SoftmaxLoss softmax_loss_;
  SigmoidLoss sigmoid_loss_;
  float loc_weight_ = 1;
  bool has_boxes_ = true, has_scores_ = true;  // the terms of the loss
  ObjectCheck object_check_;

  size_t forward_bytes_ = 0;
  Array share_, label_, probability_, class_target_, normalizer_, location_, weight_;
  Array best_, rank_, match_, overlap_, loss_of_boxes_, loss_of_scores_;
};

}  // namespace

REGISTER_LAYER(MultiBoxLoss, MultiBoxLossLayer, "multibox_loss_param", "loss_param");

}  // namespace crema
