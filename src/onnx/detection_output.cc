// DetectionOutput: NonMaxSuppression, with what SSD does before and after it in operators of their own. Every tensor
// has a fixed shape but the list of what NonMaxSuppression keeps, which is spread over an array of all candidates at
// once.
#include <algorithm>
#include <cfloat>
#include <numeric>
#include <string>
#include <vector>

#include "onnx/layer_table.h"

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
    rows_ = layer.top_shape(0)[2] / images_;
    kept_ = std::min(rows_, classes_ * priors_);
    top_k_ = nms.top_k() < 0 ? priors_ : std::min<int64_t>(nms.top_k(), priors_);
  }

  void Write() {
    const std::string boxes = Boxes();
    const std::string scores = Candidates();
    const std::string found = Suppress(boxes, scores);
    const std::vector<std::string> best =
        layer_.AddMany("TopK", {found, layer_.Integers("keep", {kept_})}, 2, {Int("axis", 1)});
    layer_.SetTop(0, Rows(boxes, best[0], best[1]));
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
    return layer_.Add("ScatterElements", {Nothing({images_, classes_, priors_}), best[1], best[0]}, {Int("axis", 2)});
  }

  // No scores.
  std::string Nothing(const std::vector<int64_t>& shape) {
    return layer_.Add("Expand", {layer_.Number("none", -FLT_MAX), layer_.Integers("shape", shape)});
  }

  // The scores of what is kept, images x (classes x priors).
  std::string Suppress(std::string boxes, std::string scores) {
    std::vector<int64_t> shape = {images_, classes_, priors_};
    if (!shared()) {
      shape = {images_ * classes_, 1, priors_};
      boxes = layer_.Reshape(boxes, {images_ * classes_, priors_, 4});
      scores = layer_.Reshape(scores, shape);
    }
    if (param_.code_type() != PriorBoxParameter::CENTER_SIZE) {
      // Corners may have changed places. Such a box covers nothing; ONNX would put them right.
      const auto corners = Halves(boxes);
      boxes = layer_.Add("Concat", {corners[0], layer_.Add("Max", {corners[0], corners[1]})}, {Int("axis", -1)});
    }
    const float above = param_.has_confidence_threshold() ? param_.confidence_threshold() : -FLT_MAX;
    const std::string kept =
        layer_.Add("NonMaxSuppression", {boxes, scores, layer_.Integers("most", {top_k_}),
                                         layer_.Floats("nms_threshold", {1}, {param_.nms_param().nms_threshold()}),
                                         layer_.Floats("confidence_threshold", {1}, {above})});
    const std::string spread = layer_.Add("ScatterND", {Nothing(shape), kept, layer_.Add("GatherND", {scores, kept})});
    return layer_.Reshape(spread, {images_, classes_ * priors_});
  }

  // From the best of each image, falling, and their places, by image, then class, then falling score, with -1 behind.
  std::string Rows(const std::string& boxes, const std::string& scores, const std::string& places) {
    const auto integer = [&](const std::string& role, int64_t value) { return layer_.Integer(role, value); };
    std::vector<int64_t> image(images_ * kept_), rank(images_ * kept_);
    for (size_t i = 0; i < image.size(); ++i) {
      image[i] = static_cast<int64_t>(i) / kept_;
      rank[i] = static_cast<int64_t>(i);
    }
    const int64_t count = images_ * kept_;
    const std::string images = layer_.Integers("images", image);
    const std::string score = layer_.Reshape(scores, {count}), place = layer_.Reshape(places, {count});
    const std::string found = layer_.Add("Greater", {score, layer_.Number("none", -FLT_MAX)});
    const std::string of_class = Pair("Div", place, integer("priors", priors_));

    // Rows are sorted by one number each; what was not found comes last.
    const std::string list = Pair("Add", Pair("Mul", images, integer("classes", classes_)), of_class);
    const std::string key = Pair("Add", Pair("Mul", list, integer("count", count)), layer_.Integers("rank", rank));
    const std::string last = integer("last", images_ * classes_ * count + count);
    const auto order =
        layer_.AddMany("TopK", {layer_.Add("Where", {found, key, last}), layer_.Integers("rows", {count})}, 2,
                       {Int("axis", 0), Int("largest", 0)});

    const std::string of_image = integer("boxes_of_image", shared() ? priors_ : classes_ * priors_);
    const std::string in_image = shared() ? Pair("Mod", place, integer("priors", priors_)) : place;
    const std::string box =
        layer_.Add("Gather", {layer_.Reshape(boxes, {-1, 4}), Pair("Add", Pair("Mul", images, of_image), in_image)});
    const std::string label = layer_.Add("Gather", {layer_.Integers("labels", labels_), of_class});
    std::vector<std::string> columns;
    for (const std::string& integers : {images, label}) {
      columns.push_back(layer_.Reshape(layer_.Add("Cast", {integers}, {Int("to", TensorProto::FLOAT)}), {count, 1}));
    }
    columns.push_back(layer_.Reshape(score, {count, 1}));
    columns.push_back(box);
    const std::string filled =
        layer_.Add("Where", {layer_.Reshape(found, {count, 1}), layer_.Add("Concat", columns, {Int("axis", 1)}),
                             layer_.Number("absent", -1)});
    std::string rows = layer_.Add("Gather", {filled, order[1]});
    if (kept_ < rows_) {
      const int64_t rest = images_ * (rows_ - kept_);
      const std::string absent = layer_.Floats("rest", {rest, 7}, std::vector<float>(rest * 7, -1));
      rows = layer_.Add("Concat", {rows, absent}, {Int("axis", 0)});
    }
    return layer_.Reshape(rows, layer_.top_dims(0));
  }

  LayerWriter& layer_;
  const DetectionOutputParameter& param_;
  std::vector<int64_t> labels_;  // of the classes, without the background
  int64_t images_ = 1, priors_ = 1, classes_ = 1;
  int64_t rows_ = 1, kept_ = 1;  // of an image: in the top, and those that can be filled
  int64_t top_k_ = 1;
};

}  // namespace

void WriteDetectionOutput(LayerWriter& layer) { Objects(layer).Write(); }

}  // namespace crema::onnx
