// DetectionOutput, as SSD does it.
#include <algorithm>
#include <cfloat>
#include <string>
#include <vector>

#include "onnx/layer_table.h"
#include "onnx/object_rows.h"

namespace crema::onnx {

namespace {

class Objects {
 public:
  explicit Objects(LayerWriter& layer) : layer_(layer), param_(layer.param().detection_output_param()) {
    const NonMaximumSuppressionParameter& nms = param_.nms_param();
    if (layer.bottoms() > 3) layer.Refuse("type", "DetectionOutput of regions has no form in ONNX here");
    if (nms.eta() != 1) layer.Refuse("detection_output_param.nms_param.eta", "ONNX has eta: 1 only");
    for (int i = 0; i < 3; ++i) layer.ExpectFixedFrom(i, 0);
    images_ = layer.bottom_shape(0)[0];
    priors_ = layer.bottom_shape(2)[2] / 4;
    for (int64_t c = 0; c < param_.num_classes(); ++c) {
      if (c != param_.background_label_id()) labels_.push_back(c);
    }
    if (labels_.empty()) layer.Refuse("detection_output_param.num_classes", "there is no class but the background");
    classes_ = static_cast<int64_t>(labels_.size());
    top_k_ = nms.top_k() < 0 ? priors_ : std::min<int64_t>(nms.top_k(), priors_);
  }

  void Write() {
    ObjectCandidates candidates;
    candidates.images = images_;
    candidates.classes = classes_;
    candidates.priors = priors_;
    candidates.boxes = Boxes();
    candidates.own_boxes = !shared();
    candidates.in_order = param_.code_type() == PriorBoxParameter::CENTER_SIZE;
    candidates.scores = Candidates();
    candidates.labels = layer_.Integers("labels", labels_);
    candidates.top_k = top_k_;
    candidates.score_above = param_.has_confidence_threshold() ? param_.confidence_threshold() : -FLT_MAX;
    candidates.most_overlap = param_.nms_param().nms_threshold();
    WriteObjects(layer_, candidates);
  }

 private:
  bool shared() const { return param_.share_location(); }

  std::string Pair(const std::string& op, const std::string& a, const std::string& b) { return layer_.Add(op, {a, b}); }

  std::vector<std::string> Halves(const std::string& value) {
    return layer_.AddMany("Split", {value}, 2, {Int("axis", -1)});
  }

  // Corners, images x priors x 4, or, where classes have boxes of their own, images x classes x priors x 4.
  std::string Boxes() {
    const std::vector<int64_t> of_prior =
        shared() ? std::vector<int64_t>{priors_, 4} : std::vector<int64_t>{priors_, 1, 4};
    const auto priors = layer_.AddMany("Split", {layer_.bottom(2)}, 2, {Int("axis", 1)});
    const std::string prior = layer_.Reshape(priors[0], of_prior);
    std::string offsets = shared() ? layer_.Reshape(layer_.bottom(0), {images_, priors_, 4})
                                   : layer_.Reshape(layer_.bottom(0), {images_, priors_, param_.num_classes(), 4});
    if (!param_.variance_encoded_in_target()) offsets = Pair("Mul", offsets, layer_.Reshape(priors[1], of_prior));
    const std::string boxes = Decoded(prior, offsets);
    if (shared()) return boxes;
    return layer_.Add("Transpose",
                      {layer_.Add("Gather", {boxes, layer_.Integers("labels", labels_)}, {Int("axis", 2)})},
                      {Ints("perm", {0, 2, 1, 3})});
  }

  std::string Decoded(const std::string& prior, const std::string& offsets) {
    if (param_.code_type() == PriorBoxParameter::CORNER) return Pair("Add", prior, offsets);
    const auto corners = Halves(prior);
    const std::string size = Pair("Sub", corners[1], corners[0]);
    if (param_.code_type() == PriorBoxParameter::CORNER_SIZE) {
      const std::string sizes = layer_.Add("Concat", {size, size}, {Int("axis", -1)});
      return Pair("Add", prior, Pair("Mul", offsets, sizes));
    }
    const auto parts = Halves(offsets);
    const std::string middle = layer_.Affine(Pair("Add", corners[0], corners[1]), 0.5f, 0);
    const std::string centre = Pair("Add", Pair("Mul", parts[0], size), middle);
    const std::string half = layer_.Affine(Pair("Mul", layer_.Add("Exp", {parts[1]}), size), 0.5f, 0);
    return layer_.Add("Concat", {Pair("Sub", centre, half), Pair("Add", centre, half)}, {Int("axis", -1)});
  }

  // Scores of all but the background, images x classes x priors; below the best top_k of a class none.
  std::string Candidates() {
    const std::string all = layer_.Reshape(layer_.bottom(1), {images_, priors_, param_.num_classes()});
    const std::string wanted = layer_.Add(
        "Gather", {layer_.Add("Transpose", {all}, {Ints("perm", {0, 2, 1})}), layer_.Integers("labels", labels_)},
        {Int("axis", 1)});
    if (top_k_ == priors_) return wanted;
    const auto best = layer_.AddMany("TopK", {wanted, layer_.Integers("top_k", {top_k_})}, 2, {Int("axis", 2)});
    return layer_.Add("ScatterElements", {NoScores(layer_, {images_, classes_, priors_}), best[1], best[0]},
                      {Int("axis", 2)});
  }

  LayerWriter& layer_;
  const DetectionOutputParameter& param_;
  std::vector<int64_t> labels_;  // of the classes, without the background
  int64_t images_ = 1, priors_ = 1, classes_ = 1;
  int64_t top_k_ = 1;
};

}  // namespace

void WriteDetectionOutput(LayerWriter& layer) { Objects(layer).Write(); }

}  // namespace crema::onnx
