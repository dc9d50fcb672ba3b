#include "onnx/object_rows.h"

#include <algorithm>
#include <cfloat>

namespace crema::onnx {

namespace {

class ObjectWriter {
 public:
  ObjectWriter(LayerWriter& layer, const ObjectCandidates& candidates)
      : layer_(layer),
        c_(candidates),
        rows_(layer.top_shape(0)[2] / c_.images),
        kept_(std::min(rows_, c_.classes * c_.priors)) {}

  void Write() {
    const std::vector<std::string> best =
        layer_.AddMany("TopK", {Suppress(), layer_.Integers("keep", {kept_})}, 2, {Int("axis", 1)});
    layer_.SetTop(0, Rows(best[0], best[1]));
  }

 private:
  std::string Pair(const std::string& op, const std::string& a, const std::string& b) { return layer_.Add(op, {a, b}); }

  // The scores of what is kept, images x (classes x priors).
  std::string Suppress() {
    std::vector<int64_t> shape = {c_.images, c_.classes, c_.priors};
    std::string boxes = c_.boxes, scores = c_.scores;
    if (c_.own_boxes) {
      shape = {c_.images * c_.classes, 1, c_.priors};
      boxes = layer_.Reshape(boxes, {c_.images * c_.classes, c_.priors, 4});
      scores = layer_.Reshape(scores, shape);
    }
    if (!c_.in_order) {
      // A box whose corners have changed places covers nothing; ONNX would put them right.
      const auto corners = layer_.AddMany("Split", {boxes}, 2, {Int("axis", -1)});
      boxes = layer_.Add("Concat", {corners[0], layer_.Add("Max", {corners[0], corners[1]})}, {Int("axis", -1)});
    }
    const std::string kept =
        layer_.Add("NonMaxSuppression", {boxes, scores, layer_.Integers("most", {c_.top_k}),
                                         layer_.Floats("nms_threshold", {1}, {c_.most_overlap}),
                                         layer_.Floats("confidence_threshold", {1}, {c_.score_above})});
    const std::string spread =
        layer_.Add("ScatterND", {NoScores(layer_, shape), kept, layer_.Add("GatherND", {scores, kept})});
    return layer_.Reshape(spread, {c_.images, c_.classes * c_.priors});
  }

  // From the best of each image, falling, and their places, by image, then class, then falling score, with -1 behind.
  std::string Rows(const std::string& scores, const std::string& places) {
    const auto integer = [&](const std::string& role, int64_t value) { return layer_.Integer(role, value); };
    std::vector<int64_t> image(c_.images * kept_), rank(c_.images * kept_);
    for (size_t i = 0; i < image.size(); ++i) {
      image[i] = static_cast<int64_t>(i) / kept_;
      rank[i] = static_cast<int64_t>(i);
    }
    const int64_t count = c_.images * kept_;
    const std::string images = layer_.Integers("images", image);
    const std::string score = layer_.Reshape(scores, {count}), place = layer_.Reshape(places, {count});
    const std::string found = layer_.Add("Greater", {score, layer_.Number("none", -FLT_MAX)});
    const std::string of_class = Pair("Div", place, integer("priors", c_.priors));

    // Rows are sorted by one number each; what was not found comes last.
    const std::string list = Pair("Add", Pair("Mul", images, integer("classes", c_.classes)), of_class);
    const std::string key = Pair("Add", Pair("Mul", list, integer("count", count)), layer_.Integers("rank", rank));
    const std::string last = integer("last", c_.images * c_.classes * count + count);
    const auto order =
        layer_.AddMany("TopK", {layer_.Add("Where", {found, key, last}), layer_.Integers("rows", {count})}, 2,
                       {Int("axis", 0), Int("largest", 0)});

    const std::string of_image = integer("boxes_of_image", c_.own_boxes ? c_.classes * c_.priors : c_.priors);
    const std::string in_image = c_.own_boxes ? place : Pair("Mod", place, integer("priors", c_.priors));
    const std::string at = Pair("Add", Pair("Mul", images, of_image), in_image);
    const std::string box = layer_.Add("Gather", {layer_.Reshape(c_.boxes, {-1, 4}), at});
    const std::string label = c_.labels_of_priors
                                  ? layer_.Add("Gather", {layer_.Reshape(c_.labels, {c_.images * c_.priors}), at})
                                  : layer_.Add("Gather", {c_.labels, of_class});
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
      const int64_t rest = c_.images * (rows_ - kept_);
      const std::string absent = layer_.Floats("rest", {rest, 7}, std::vector<float>(rest * 7, -1));
      rows = layer_.Add("Concat", {rows, absent}, {Int("axis", 0)});
    }
    return layer_.Reshape(rows, layer_.top_dims(0));
  }

  LayerWriter& layer_;
  const ObjectCandidates& c_;
  int64_t rows_, kept_;  // of an image: in the top, and those that can be filled
};

}  // namespace

std::string NoScores(LayerWriter& layer, const std::vector<int64_t>& shape) {
  return layer.Add("Expand", {layer.Number("none", -FLT_MAX), layer.Integers("shape", shape)});
}

void WriteObjects(LayerWriter& layer, const ObjectCandidates& candidates) { ObjectWriter(layer, candidates).Write(); }

}  // namespace crema::onnx
