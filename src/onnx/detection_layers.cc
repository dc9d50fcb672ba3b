// Layers of detectors.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/layer_table.h"

namespace crema::onnx {

namespace {

// The boxes depend on shapes alone: a constant, which another layer of that type writes, as the net's own writes into
// each place once only.
void PriorBox(LayerWriter& layer) {
  for (int i = 0; i < 2; ++i) layer.ExpectFixedFrom(i, 2);
  LayerSetup setup(layer.param(), TEST, {{layer.bottom_shape(0)}, {layer.bottom_shape(1)}},
                   [](std::string_view) { return Location{}; });
  const std::unique_ptr<Layer> writer = layer.node().type->create();
  writer->Setup(setup);
  std::vector<float> boxes(layer.top_shape(0).count());
  const Tensor top(boxes.data(), {layer.top_shape(0)});
  LayerRun run;
  run.tops = {&top, 1};
  writer->Forward(run);
  layer.SetTop(0, layer.Floats("boxes", layer.top_shape(0), boxes));
}

std::string Rectangles(LayerWriter& layer) {
  return layer.bottom_shape(1).axes() == 2 ? layer.bottom(1)
                                           : layer.Reshape(layer.bottom(1), {layer.bottom_dims(1)[0], 5});
}

void RoiPooling(LayerWriter& layer) {
  const ROIPoolingParameter& param = layer.param().roi_pooling_param();
  layer.SetTop(0, layer.Add("MaxRoiPool", {layer.bottom(0), Rectangles(layer)},
                            {Ints("pooled_shape", {param.pooled_h(), param.pooled_w()}),
                             Float("spatial_scale", param.spatial_scale())}));
}

void RoiAlign(LayerWriter& layer) {
  const ROIAlignParameter& param = layer.param().roi_align_param();
  const std::vector<std::string> parts =
      layer.AddMany("Split", {Rectangles(layer), layer.Integers("parts", {1, 4})}, 2, {Int("axis", 1)});
  const std::string images =
      layer.Add("Cast", {layer.Reshape(parts[0], {layer.bottom_dims(1)[0]})}, {Int("to", TensorProto::INT64)});
  layer.SetTop(0, layer.Add("RoiAlign", {layer.bottom(0), parts[1], images},
                            {Int("output_height", param.pooled_h()), Int("output_width", param.pooled_w()),
                             Int("sampling_ratio", std::max(0, param.sampling_ratio())),
                             Float("spatial_scale", param.spatial_scale())}));
}

}  // namespace

LayerTable DetectionLayers() {
  return {{"DetectionOutput", WriteDetectionOutput},
          {"PriorBox", PriorBox},
          {"ROIAlign", RoiAlign},
          {"ROIPooling", RoiPooling}};
}

}  // namespace crema::onnx
