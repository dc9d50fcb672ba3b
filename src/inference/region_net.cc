#include "inference/region_net.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "base/listed.h"
#include "compiler/compiler.h"
#include "compiler/selection.h"
#include "crema/error.h"
#include "device/device.h"
#include "inference/image_runner.h"

namespace crema {

namespace {

constexpr float kMostOverlap = 0.3f;
constexpr int kMostObjects = 300;
// What images are compiled as to learn shapes, where neither file nor options say.
constexpr int64_t kChannels = 3, kSide = 600;

bool HasLayer(const ScoringNet& scoring, const NetState& state, std::string_view type) {
  const auto& layers = scoring.file.net.layer();
  return std::any_of(layers.begin(), layers.end(),
                     [&](const auto& layer) { return layer.type() == type && TakesPart(state, layer); });
}

// Whether softmax made the value, but for its shape.
bool IsProbability(const Graph& graph, const Value& value) {
  const Node& node = graph.nodes[value.producer];
  if (node.type->name == std::string_view("Softmax")) return true;
  return node.setup->is_view() && IsProbability(graph, graph.values[node.bottoms[0]]);
}

// What the pooling of regions reads them from; empty where nothing does.
std::string RegionsOf(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    const std::string_view type = node.type->name;
    if (type == "ROIPooling" || type == "ROIAlign" || type == "PSROIPooling") return graph.values[node.bottoms[1]].name;
  }
  return {};
}

[[noreturn]] void Fail(const Graph& graph) {
  std::vector<std::string> outputs;
  for (const int v : graph.outputs) {
    outputs.push_back(graph.values[v].name + " " + graph.values[v].spec.shape.ToString());
  }
  throw UserError("the net has a Proposal layer but no DetectionOutput, and its outputs are " +
                  Listed(outputs, {.quoted = true}) +
                  "; expected the probabilities of classes (of a Softmax layer) and offsets of boxes for each region, "
                  "or add a layer of type DetectionOutput (docs/detection.md)");
}

}  // namespace

void AddDetectionOutput(const NetOptions& options, ScoringNet* scoring) {
  const NetState state = StateOf(scoring->file.net, options);
  if (!HasLayer(*scoring, state, "Proposal") || HasLayer(*scoring, state, "DetectionOutput")) return;
  NetOptions compiled_with = options;
  compiled_with.context.device = &CpuDevice();  // shapes are the same everywhere
  const auto has_shape = [&](const auto& entry) { return entry.first == scoring->input; };
  if (!scoring->has_shape && std::none_of(options.shapes.begin(), options.shapes.end(), has_shape)) {
    compiled_with.shapes.emplace_back(scoring->input, Shape{1, kChannels, kSide, kSide});
  }
  const std::unique_ptr<CompiledNet> net = Compile(scoring->file, compiled_with);
  const Graph& graph = net->graph;

  const std::string regions = RegionsOf(graph);
  const Value *scores = nullptr, *offsets = nullptr;
  for (const int v : graph.outputs) {
    const Value& value = graph.values[v];
    (IsProbability(graph, value) ? scores : offsets) = &value;
  }
  if (regions.empty() || graph.outputs.size() != 2 || scores == nullptr || offsets == nullptr ||
      scores->spec.shape.axes() < 2) {
    Fail(graph);
  }
  LayerParameter* layer = scoring->file.net.add_layer();
  layer->set_name("detection_out");
  layer->set_type("DetectionOutput");
  for (const std::string& bottom : {offsets->name, scores->name, regions, scoring->image_info}) {
    layer->add_bottom(bottom);
  }
  layer->add_top("detection_out");
  DetectionOutputParameter* param = layer->mutable_detection_output_param();
  param->set_num_classes(static_cast<uint32_t>(scores->spec.shape[1]));
  param->mutable_nms_param()->set_nms_threshold(kMostOverlap);
  param->set_keep_top_k(kMostObjects);
}

}  // namespace crema
