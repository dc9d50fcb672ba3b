// Convolutions, and padding, which becomes a part of what reads it. crema pads both sides alike: where a model does
// not, zeros around the weights make up for the difference.
#include <algorithm>

#include "onnx/operator_table.h"
#include "onnx/window.h"
#include "schema/axis_values.h"

namespace crema::onnx {

namespace {

// The weights with zeros before and after their spatial axis `i`.
Constant Widened(const NodeReader& node, const Constant& weights, int i, int64_t before, int64_t after) {
  Shape shape = weights.shape;
  const int axis = 2 + i;
  const int64_t old = shape[axis], extent = old + before + after;
  shape.set(axis, extent);
  constexpr int64_t kMost = int64_t{1} << 28;
  if (CheckedCount(shape.dims()) < 0 || shape.count() > kMost)
    node.Refuse("pads one side by too much more than the other");
  std::vector<float> values(shape.count(), 0);
  const int64_t inner = shape.count(axis + 1), outer = shape.count(0, axis);
  for (int64_t row = 0; row < outer; ++row) {
    std::copy_n(weights.floats.begin() + row * old * inner, old * inner,
                values.begin() + (row * extent + before) * inner);
  }
  return Floats(shape, std::move(values));
}

// Brings padding before and after each axis to the larger of both. The windows of a convolution then begin farther out
// where there was less before, and weights of zero do not see that; a transpose makes more there, which is cut off.
void EvenPads(const NodeReader& node, Window* window, Constant* weights) {
  for (int i = 0; i < window->axes(); ++i) {
    if (window->kernel[i] == 1) window->dilation[i] = 1;
    const int64_t more = window->after[i] - window->before[i], size = std::abs(more);
    if (more == 0) continue;
    if (size % window->dilation[i] != 0) {
      node.Refuse("pads " + std::to_string(window->before[i]) + " before and " + std::to_string(window->after[i]) +
                  " after, and dilates by " + std::to_string(window->dilation[i]) +
                  "; crema pads both sides alike: export it with equal pads");
    }
    const int64_t taps = size / window->dilation[i];
    *weights = Widened(node, *weights, i, more > 0 ? taps : 0, more > 0 ? 0 : taps);
    window->kernel[i] += taps;
    window->before[i] = window->after[i] = std::max(window->before[i], window->after[i]);
  }
}

template <typename Parameter>
void SetPair(const std::vector<int64_t>& values, int64_t fallback, google::protobuf::RepeatedField<uint32_t>* field,
             Parameter* param, void (Parameter::*height)(uint32_t), void (Parameter::*width)(uint32_t)) {
  if (values.size() != 2 || values[0] == values[1]) return SetAxisValues(values, fallback, field);
  (param->*height)(static_cast<uint32_t>(values[0]));
  (param->*width)(static_cast<uint32_t>(values[1]));
}

// Parameter: ConvolutionParameter or DeformableConvolutionParameter.
template <typename Parameter>
void SetWindow(int64_t outputs, int64_t groups, const Window& window, Parameter* param) {
  using P = Parameter;
  param->set_num_output(static_cast<uint32_t>(outputs));
  SetPair(window.kernel, -1, param->mutable_kernel_size(), param, &P::set_kernel_h, &P::set_kernel_w);
  SetPair(window.stride, 1, param->mutable_stride(), param, &P::set_stride_h, &P::set_stride_w);
  SetPair(window.before, 0, param->mutable_pad(), param, &P::set_pad_h, &P::set_pad_w);
  SetAxisValues(window.dilation, 1, param->mutable_dilation());
  if (groups != 1) param->set_group(static_cast<uint32_t>(groups));
}

LayerParameter ConvolutionLayer(const char* type, int64_t outputs, int64_t groups, const Window& window) {
  LayerParameter layer = LayerOf(type);
  SetWindow(outputs, groups, window, layer.mutable_convolution_param());
  return layer;
}

void AddPads(const Operand& value, Window* window) {
  for (int i = 0; i < window->axes() && !value.before.empty(); ++i) {
    window->before[i] += value.before[2 + i];
    window->after[i] += value.after[2 + i];
  }
}

struct Filters {
  Constant weights;
  int64_t groups = 1;
};

Filters ReadFilters(const NodeReader& node) {
  Filters filters;
  filters.weights = node.constant(1, "the weights");
  node.floats(1, "the weights");
  filters.groups = node.Int("group", 1);
  const Shape& shape = filters.weights.shape;
  if (shape.axes() != node.shape(0).axes() || shape.count() == 0) {
    node.Refuse("its weights are " + shape.ToString() + ", which does not fit " + node.shape(0).ToString());
  }
  if (filters.groups < 1 || filters.groups > (1 << 24)) node.Refuse("its group is " + std::to_string(filters.groups));
  return filters;
}

void Finish(NodeReader& node, LayerParameter layer, const Operand& value, Constant weights) {
  std::vector<Constant> blobs = {std::move(weights)};
  if (node.has(2)) {
    node.floats(2, "the bias");
    blobs.push_back(node.constant(2, "the bias"));
  } else {
    layer.mutable_convolution_param()->set_bias_term(false);
  }
  layer.mutable_convolution_param()->mutable_weight_filler()->set_type("msra");
  Operand bare = value;
  bare.before.clear();
  bare.after.clear();
  node.Set(0, node.Add(std::move(layer), {bare}, std::move(blobs)));
}

void Conv(NodeReader& node) {
  const std::vector<int64_t> input = SpatialExtents(node, node.shape(0));
  Filters filters = ReadFilters(node);
  const std::vector<int64_t>& dims = filters.weights.shape.dims();
  Window window = ReadWindow(node, input, {dims.begin() + 2, dims.end()});
  AddPads(node.operand(0), &window);
  EvenPads(node, &window, &filters.weights);
  const Operand& read = node.operand(0);
  const Operand value = read.is_constant() ? node.blob(0) : read;
  LayerParameter layer = ConvolutionLayer("Convolution", filters.weights.shape[0], filters.groups, window);
  Finish(node, std::move(layer), value, std::move(filters.weights));
}

void ConvTranspose(NodeReader& node) {
  const std::vector<int64_t> input = SpatialExtents(node, node.shape(0));
  Filters filters = ReadFilters(node);
  const std::vector<int64_t>& dims = filters.weights.shape.dims();
  if (node.has_attribute("output_shape")) node.Refuse("output_shape leaves its padding open; export it with pads");
  Window window = ReadWindow(node, input, {dims.begin() + 2, dims.end()}, true);
  const std::vector<int64_t> more = node.Ints("output_padding").value_or(std::vector<int64_t>(input.size(), 0));
  if (more.size() != input.size()) node.Refuse("output_padding has " + std::to_string(more.size()) + " numbers");
  // What is cut off behind; what is cut off less there, weights of zero make.
  for (size_t i = 0; i < more.size(); ++i) {
    if (more[i] < 0 || more[i] > (1 << 20)) node.Refuse("output_padding holds " + std::to_string(more[i]));
    window.after[i] -= more[i];
  }
  EvenPads(node, &window, &filters.weights);
  const int64_t outputs = filters.weights.shape[1] * filters.groups;
  LayerParameter layer = ConvolutionLayer("Deconvolution", outputs, filters.groups, window);
  Finish(node, std::move(layer), node.blob(0), std::move(filters.weights));
}

void DeformConv(NodeReader& node) {
  const std::vector<int64_t> input = SpatialExtents(node, node.shape(0));
  Filters filters = ReadFilters(node);
  if (input.size() != 2) node.Refuse("looks at " + node.shape(0).ToString() + ", but only images have that form here");
  const std::vector<int64_t>& dims = filters.weights.shape.dims();
  const Window window = ReadWindow(node, input, {dims.begin() + 2, dims.end()});
  if (window.before != window.after) {
    node.Refuse("pads one side by more than the other; crema pads both sides alike: export it with equal pads");
  }
  const int64_t deformable_groups = node.Int("offset_group", 1);
  if (deformable_groups < 1 || deformable_groups > (1 << 24)) {
    node.Refuse("its offset_group is " + std::to_string(deformable_groups));
  }
  LayerParameter layer = LayerOf("ModulatedDeformableConvolution");
  DeformableConvolutionParameter* param = layer.mutable_modulated_deformable_convolution_param();
  SetWindow(filters.weights.shape[0], filters.groups, window, param);
  param->mutable_weight_filler()->set_type("msra");
  if (deformable_groups != 1) param->set_deformable_group(static_cast<uint32_t>(deformable_groups));
  std::vector<Operand> bottoms = {node.blob(0), node.blob(2)};
  if (node.has(4)) bottoms.push_back(node.blob(4));
  std::vector<Constant> blobs = {std::move(filters.weights)};
  if (node.has(3)) {
    node.floats(3, "the bias");
    blobs.push_back(node.constant(3, "the bias"));
  } else {
    param->set_bias_term(false);
  }
  node.Set(0, node.Add(std::move(layer), bottoms, std::move(blobs)));
}

}  // namespace

// Each channel by itself through a window that sees one pixel.
Operand NodeReader::Padded(const Operand& value) {
  const auto pads = [](int64_t size) { return size > 0; };
  Operand bare = value;
  bare.before.clear();
  bare.after.clear();
  if (std::none_of(value.before.begin(), value.before.end(), pads) &&
      std::none_of(value.after.begin(), value.after.end(), pads)) {
    return bare;
  }
  const size_t axes = value.shape.axes() - 2;
  Window window{std::vector<int64_t>(axes, 1),
                std::vector<int64_t>(axes, 1),
                std::vector<int64_t>(axes, 1),
                {value.before.begin() + 2, value.before.end()},
                {value.after.begin() + 2, value.after.end()}};
  const int64_t channels = value.shape[1];
  std::vector<int64_t> dims(2 + axes, 1);
  dims[0] = channels;
  Constant weights = onnx::Floats(Shape(dims), std::vector<float>(channels, 1));
  EvenPads(*this, &window, &weights);
  LayerParameter layer = ConvolutionLayer("Convolution", channels, channels, window);
  layer.mutable_convolution_param()->set_bias_term(false);
  Freeze(1, &layer);
  return Add(std::move(layer), {bare}, {std::move(weights)}, "pad");
}

OperatorTable VisionOperators() {
  return {{"Conv", Conv}, {"ConvTranspose", ConvTranspose}, {"DeformConv", DeformConv}};
}

}  // namespace crema::onnx
