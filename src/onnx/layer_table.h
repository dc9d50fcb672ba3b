// Which function writes which type of layer.
#ifndef CREMA_ONNX_LAYER_TABLE_H_
#define CREMA_ONNX_LAYER_TABLE_H_

#include <map>
#include <string>

#include "onnx/graph_writer.h"

namespace crema::onnx {

using LayerFunction = void (*)(LayerWriter& layer);
using LayerTable = std::map<std::string, LayerFunction>;

// One for each file of layers.
LayerTable ActivationLayers();
LayerTable DenseLayers();
LayerTable DetectionLayers();
LayerTable NormalizationLayers();
LayerTable PoolingLayers();
LayerTable RecurrentLayers();
LayerTable StructureLayers();
LayerTable VisionLayers();
LayerTable YoloLayers();

// Of a type that takes a file of its own.
void WriteDetectionOutput(LayerWriter& layer);

// Whether all sequences of a recurrent layer begin with the pass in crema, too.
bool BeginsInEachPass(const Graph& graph, const Node& node);

// Null where ONNX has no form of the type.
LayerFunction FindLayerFunction(const std::string& type);
// What the user can do about such a layer.
std::string RemedyFor(const Node& node);

}  // namespace crema::onnx

#endif  // CREMA_ONNX_LAYER_TABLE_H_
