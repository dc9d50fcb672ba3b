#include "onnx/layer_table.h"

namespace crema::onnx {

namespace {

LayerTable AllLayers() {
  LayerTable all;
  for (LayerTable table : {ActivationLayers(), DenseLayers(), DetectionLayers(), NormalizationLayers(), PoolingLayers(),
                           RecurrentLayers(), StructureLayers(), VisionLayers(), YoloLayers()}) {
    all.merge(table);
  }
  return all;
}

}  // namespace

LayerFunction FindLayerFunction(const std::string& type) {
  static const LayerTable layers = AllLayers();
  const auto at = layers.find(type);
  return at == layers.end() ? nullptr : at->second;
}

std::string RemedyFor(const Node& node) {
  const std::string& type = node.type->name;
  if (node.setup->is_loss() || type == "MixUp" || type == "Accuracy" || type == "MultiLabelAccuracy" ||
      type == "SegAccuracy" || type == "DetectionEvaluate" || type == "DetectNetTransformation" ||
      type == "ScoreDetections" || type == "PrecisionRecall") {
    return "export the deploy net, without labels, losses and measures";
  }
  if (node.bottoms.empty()) return "make it an Input layer, whose tops the user feeds";
  return "leave it out, with what reads it, and do its work in your own program";
}

}  // namespace crema::onnx
