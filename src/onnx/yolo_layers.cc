// YOLO's layers: predictions become boxes, scores and classes, of which objects are made as of DetectionOutput's.
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/yolo_grid.h"
#include "onnx/layer_table.h"
#include "onnx/object_rows.h"

namespace crema::onnx {

namespace {

// Of one grid or all: images x predictions x 4, images x predictions, and integers of that shape; with scores of each
// class images x classes x predictions, and no labels.
struct Predictions {
  std::string boxes, scores, labels;
};

class YoloObjects {
 public:
  YoloObjects(LayerWriter& layer, std::vector<YoloGrid> grids, bool softmax, bool each_class)
      : layer_(layer), grids_(std::move(grids)), softmax_(softmax), each_class_(each_class) {}

  void Write(float score_above, float most_overlap) {
    std::vector<std::string> boxes, scores, labels;
    ObjectCandidates candidates;
    candidates.images = grids_[0].images;
    candidates.priors = 0;
    for (size_t i = 0; i < grids_.size(); ++i) {
      const Predictions made = Decoded(static_cast<int>(i));
      boxes.push_back(made.boxes);
      scores.push_back(made.scores);
      labels.push_back(made.labels);
      candidates.priors += grids_[i].of_image();
    }
    candidates.boxes = Joined(boxes, 1);
    if (each_class_) {
      candidates.classes = grids_[0].classes;
      candidates.scores = Joined(scores, 2);
      std::vector<int64_t> numbers(static_cast<size_t>(candidates.classes));
      std::iota(numbers.begin(), numbers.end(), 1);
      candidates.labels = layer_.Integers("labels", numbers);
    } else {
      candidates.scores = layer_.Reshape(Joined(scores, 1), {candidates.images, 1, candidates.priors});
      candidates.labels = Joined(labels, 1);
      candidates.labels_of_priors = true;
    }
    candidates.top_k = candidates.priors;
    candidates.score_above = score_above;
    candidates.most_overlap = most_overlap;
    WriteObjects(layer_, candidates);
  }

 private:
  std::string Joined(const std::vector<std::string>& values, int64_t axis) {
    return values.size() == 1 ? values[0] : layer_.Add("Concat", values, {Int("axis", axis)});
  }

  // Numbers `first` to `end` - 1 of all predictions, images x anchors x numbers x cells.
  std::string Part(const std::string& all, int64_t first, int64_t end) {
    return layer_.Add(
        "Slice", {all, layer_.Integers("first", {first}), layer_.Integers("end", {end}), layer_.Integers("axis", {2})});
  }

  // Sides in those of the anchors.
  std::string OfAnchors(const std::string& numbers, const YoloGrid& grid) {
    if (!grid.squared_sides) return layer_.Add("Exp", {numbers});
    const std::string doubled = layer_.Affine(layer_.Add("Sigmoid", {numbers}), 2, 0);
    return layer_.Add("Mul", {doubled, doubled});
  }

  Predictions Decoded(int i) {
    const YoloGrid& grid = grids_[static_cast<size_t>(i)];
    const int64_t cells = grid.cells(), anchors = grid.anchors;
    std::vector<float> corner, extent, sides;
    for (int64_t c = 0; c < cells; ++c) corner.push_back(static_cast<float>(c % grid.width));
    for (int64_t c = 0; c < cells; ++c) corner.push_back(static_cast<float>(c / grid.width));
    for (int32_t a = 0; a < grid.anchors; ++a) {
      sides.push_back(grid.anchor_width[grid.own[a]]);
      sides.push_back(grid.anchor_height[grid.own[a]]);
    }
    extent = {static_cast<float>(grid.width), static_cast<float>(grid.height)};

    const std::string all = layer_.Reshape(layer_.bottom(i), {grid.images, anchors, grid.numbers(), cells});
    std::string in_cell = layer_.Add("Sigmoid", {Part(all, 0, 2)});
    if (grid.centre_range != 1) in_cell = layer_.Affine(in_cell, grid.centre_range, (1 - grid.centre_range) / 2);
    const std::string centre =
        layer_.Add("Div", {layer_.Add("Add", {in_cell, layer_.Floats("cell", {2, cells}, corner)}),
                           layer_.Floats("cells", {2, 1}, extent)});
    const std::string half = layer_.Affine(
        layer_.Add("Mul", {OfAnchors(Part(all, 2, 4), grid), layer_.Floats("sides", {anchors, 2, 1}, sides)}), 0.5f, 0);
    const std::string corners =
        layer_.Add("Concat", {layer_.Add("Sub", {centre, half}), layer_.Add("Add", {centre, half})}, {Int("axis", 2)});

    Predictions made;
    const int64_t predictions = grid.of_image();
    made.boxes =
        layer_.Reshape(layer_.Add("Transpose", {corners}, {Ints("perm", {0, 1, 3, 2})}), {grid.images, predictions, 4});
    const std::string of_classes = Part(all, YoloGrid::kOfBox, grid.numbers());
    const std::string likely =
        softmax_ ? layer_.Add("Softmax", {of_classes}, {Int("axis", 2)}) : layer_.Add("Sigmoid", {of_classes});
    const std::string surely = layer_.Add("Sigmoid", {Part(all, 4, 5)});
    if (each_class_) {
      const std::string by_anchor = layer_.Add("Mul", {likely, surely});
      made.scores = layer_.Reshape(layer_.Add("Transpose", {by_anchor}, {Ints("perm", {0, 2, 1, 3})}),
                                   {grid.images, grid.classes, predictions});
      return made;
    }
    const std::string likeliest = layer_.Add("ReduceMax", {likely}, {Ints("axes", {2}), Int("keepdims", 1)});
    made.scores = layer_.Reshape(layer_.Add("Mul", {likeliest, surely}), {grid.images, predictions});
    const std::string label = layer_.Add("ArgMax", {of_classes}, {Int("axis", 2), Int("keepdims", 0)});
    made.labels =
        layer_.Reshape(layer_.Add("Add", {label, layer_.Integer("first_label", 1)}), {grid.images, predictions});
    return made;
  }

  LayerWriter& layer_;
  std::vector<YoloGrid> grids_;
  bool softmax_, each_class_;
};

template <typename Param>
void WriteYolo(LayerWriter& layer, const Param& param, bool softmax) {
  std::vector<TensorSpec> bottoms;
  for (int i = 0; i < layer.bottoms(); ++i) {
    layer.ExpectFixedFrom(i, 0);
    bottoms.push_back({layer.bottom_shape(i)});
  }
  const LayerSetup setup(layer.param(), TEST, bottoms, [](std::string_view) { return Location{}; });
  YoloObjects(layer, YoloGridsOf(setup, param), softmax, param.each_class())
      .Write(param.confidence_threshold(), param.nms_threshold());
}

void Yolov3DetectionOutput(LayerWriter& layer) {
  WriteYolo(layer, layer.param().yolov3_detection_output_param(), false);
}

void YoloDetectionOutput(LayerWriter& layer) { WriteYolo(layer, layer.param().yolo_detection_output_param(), true); }

}  // namespace

LayerTable YoloLayers() {
  return {{"YoloDetectionOutput", YoloDetectionOutput}, {"Yolov3DetectionOutput", Yolov3DetectionOutput}};
}

}  // namespace crema::onnx
