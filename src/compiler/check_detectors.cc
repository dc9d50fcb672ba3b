// What layers of detectors must agree on, and none of them sees alone.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>

#include "compiler/compiler.h"

namespace crema {

namespace {

bool IsOneOf(const Node& node, std::initializer_list<std::string_view> types) {
  return std::find(types.begin(), types.end(), node.type->name) != types.end();
}

std::string NamedLayer(const Node& node) { return "layer \"" + node.name() + "\" (" + node.type->name + ")"; }

class ScoresOfDetection {
 public:
  ScoresOfDetection(Compilation& c, const Node& detection)
      : c_(c), detection_(detection), classes_(detection.param->detection_output_param().num_classes()) {}

  // False where it warned: once is enough.
  bool Check(int value) const {
    const int producer = c_.net.graph.values[value].producer;
    if (producer < 0) return true;
    const Node& maker = c_.net.graph.nodes[producer];
    if (!maker.setup) return true;
    if (maker.setup->moves_elements()) {
      for (int i = 0; i < maker.setup->bottoms(); ++i) {
        if (maker.setup->has_gradient(i) && !Check(maker.bottoms[i])) return false;
      }
      return true;
    }
    if (IsOneOf(maker, {"Softmax"})) return CheckSoftmax(maker);
    if (!IsOneOf(maker, {"BatchNorm", "Bias", "Convolution", "InnerProduct", "Scale"})) return true;
    return Warn("but these come from " + NamedLayer(maker) +
                " without a Softmax over the classes (or a Sigmoid) between them, so that they are no probabilities: "
                "put one behind it, or give this layer what that makes");
  }

 private:
  bool CheckSoftmax(const Node& softmax) const {
    const Shape& shape = c_.net.graph.values[softmax.bottoms[0]].spec.shape;
    const int axis = softmax.param->softmax_param().axis();
    const int64_t entries = shape[axis < 0 ? axis + shape.axes() : axis];
    if (entries == classes_) return true;
    return Warn("but their probabilities, of " + NamedLayer(softmax) + ", are of " + std::to_string(entries) +
                ": correct num_classes, or the Reshape in front of that layer, whose last dim must be " +
                std::to_string(classes_));
  }

  bool Warn(const std::string& what) const {
    c_.diagnostics.Warning(
        c_.Where(detection_, "detection_output_param.num_classes"),
        NamedLayer(detection_) + " reads scores of " + std::to_string(classes_) + " classes (num_classes), " + what);
    return false;
  }

  Compilation& c_;
  const Node& detection_;
  const int64_t classes_;
};

// The first image that a layer brings into the net; null where there is none.
const Value* ImageOf(const Graph& graph) {
  for (const Value& value : graph.values) {
    const bool enters = value.producer < 0 || graph.nodes[value.producer].bottoms.empty();
    if (enters && value.shape_known && value.spec.shape.axes() == 4) return &value;
  }
  return nullptr;
}

// Grids end with a whole cell more or less where the image is no multiple of it.
bool FitsCells(const Shape& image, const Shape& grid, int64_t scale) {
  const auto fits = [&](int axis) { return std::abs(grid[axis] * scale - image[axis]) < scale; };
  return fits(2) && fits(3);
}

void CheckCells(Compilation& c, const Node& node, int bottom, int64_t scale, const char* field) {
  const Value* const image = ImageOf(c.net.graph);
  const Value& grid = c.net.graph.values[node.bottoms[bottom]];
  if (!image || !grid.shape_known || FitsCells(image->spec.shape, grid.spec.shape, scale)) return;
  const Shape &sides = image->spec.shape, &cells = grid.spec.shape;
  const auto size = [](int64_t height, int64_t width) {
    return std::to_string(height) + " x " + std::to_string(width);
  };
  c.diagnostics.Warning(c.Where(node, field),
                        NamedLayer(node) + ": anchors_scale " + std::to_string(scale) + " times the " +
                            size(cells[2], cells[3]) + " cells of \"" + grid.name +
                            "\" (height x width) is an image of " + size(cells[2] * scale, cells[3] * scale) +
                            " pixels, but \"" + image->name + "\" is of " + size(sides[2], sides[3]) +
                            ", so that anchors have other sides than biases say: anchors_scale is the pixels " +
                            "from cell to cell, " +
                            std::to_string(std::lround(static_cast<double>(sides[3]) / static_cast<double>(cells[3]))) +
                            " here; correct it, or the bottom");
}

}  // namespace

void CheckDetectors(Compilation& c) {
  for (const Node& node : c.net.graph.nodes) {
    if (!node.setup) continue;
    if (IsOneOf(node, {"DetectionOutput"})) ScoresOfDetection(c, node).Check(node.bottoms[1]);
    if (IsOneOf(node, {"Yolov3"})) {
      CheckCells(c, node, 0, node.param->yolov3_param().anchors_scale(), "yolov3_param.anchors_scale");
    }
    if (!IsOneOf(node, {"Yolov3DetectionOutput"})) continue;
    const Yolov3DetectionOutputParameter& param = node.param->yolov3_detection_output_param();
    for (int i = 0; i < param.anchors_scale_size(); ++i) {
      CheckCells(c, node, i, param.anchors_scale(i), "yolov3_detection_output_param.anchors_scale");
    }
  }
}

}  // namespace crema
