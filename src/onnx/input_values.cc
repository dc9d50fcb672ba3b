// What transform_param does to the values of images, as the first nodes of a graph.
#include <algorithm>
#include <string>
#include <vector>

#include "data/databases/mean_file.h"
#include "onnx/graph_writer.h"

namespace crema::onnx {

namespace {

struct ImageValues {
  const TransformationParameter& param;
  const LayerWriter& layer;
  int64_t channels, height, width;

  // One number for each channel.
  std::vector<float> ByChannel(const std::string& field, const google::protobuf::RepeatedField<float>& values,
                               float fallback) const {
    if (values.size() > 1 && values.size() != channels) {
      layer.Refuse("transform_param." + field, "gives " + std::to_string(values.size()) + " numbers for images of " +
                                                   std::to_string(channels) +
                                                   " channel(s); give one for all, or one for each");
    }
    if (values.size() > 1) return {values.begin(), values.end()};
    return std::vector<float>(channels, values.empty() ? fallback : values[0]);
  }

  // The centre of the mean image.
  std::vector<float> Mean() const {
    const MeanImage mean = ReadMean(param.mean_file());
    const int64_t rows = mean.shape[1], columns = mean.shape[2];
    if (mean.shape[0] != channels || rows < height || columns < width) {
      layer.Refuse("transform_param.mean_file",
                   "the mean image in \"" + param.mean_file() + "\" is " + mean.shape.ToString() + ", but images are " +
                       Shape{channels, height, width}.ToString() + "; give one mean_value per channel");
    }
    std::vector<float> values;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t y = 0; y < height; ++y) {
        const auto row = mean.values.begin() + (c * rows + (rows - height) / 2 + y) * columns + (columns - width) / 2;
        values.insert(values.end(), row, row + width);
      }
    }
    return values;
  }
};

}  // namespace

void GraphWriter::WriteInput(const Node& node) {
  for (const int v : node.tops) {
    *out_.add_input() = Info(v);
    if (!transform_ || transform_->input != graph_.values[v].name) continue;
    LayerWriter layer(*this, node);
    const Shape& shape = graph_.values[v].spec.shape;
    if (shape.axes() != 4) {
      layer.Refuse("transform_param", "is for images, num x channels x height x width, but \"" + transform_->input +
                                          "\" is " + shape.ToString());
    }
    const TransformationParameter& param = transform_->param;
    const ImageValues images{param, layer, shape[1], shape[2], shape[3]};
    const std::string given = value_names_[v];
    const Shape by_channel{images.channels, 1, 1};
    const std::string mean =
        param.has_mean_file() ? layer.Floats("mean", {images.channels, images.height, images.width}, images.Mean())
                              : layer.Floats("mean", by_channel, images.ByChannel("mean_value", param.mean_value(), 0));
    std::vector<float> factor = images.ByChannel("std_value", param.std_value(), 1);
    for (float& value : factor) value = param.scale() / value;
    const std::string centred = layer.Add("Sub", {given, mean});
    const std::string ready = layer.Add("Mul", {centred, layer.Floats("factor", by_channel, factor)});
    std::replace(value_names_.begin(), value_names_.end(), given, ready);
  }
}

}  // namespace crema::onnx
