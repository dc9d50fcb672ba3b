// Pooling and SPP. Caffe's windows may reach beyond the padded input: as much padding is given explicitly as makes
// ONNX's windows the same, since runtimes round sizes up in different ways.
#include <algorithm>
#include <string>
#include <vector>

#include "onnx/layer_table.h"

namespace crema::onnx {

namespace {

// The elements of each window: their maximum or mean, as PoolingParameter says.
struct PoolingWindows {
  enum class Method { kMax, kAverage, kStochastic };
  Method method = Method::kMax;
  std::vector<int64_t> kernel, stride, pad, results;  // of each spatial axis

  int axes() const { return static_cast<int>(kernel.size()); }
};

// What Pad takes: so many elements before and after each spatial axis, none at the two before.
std::vector<int64_t> Pads(const std::vector<int64_t>& before, const std::vector<int64_t>& after) {
  std::vector<int64_t> pads{0, 0};
  pads.insert(pads.end(), before.begin(), before.end());
  pads.insert(pads.end(), {0, 0});
  pads.insert(pads.end(), after.begin(), after.end());
  return pads;
}

bool AnyAbove0(const std::vector<int64_t>& values) {
  return std::any_of(values.begin(), values.end(), [](int64_t value) { return value > 0; });
}

// How far the last window of each axis reaches beyond the input and `padding` elements after it.
std::vector<int64_t> Overhang(const LayerWriter& layer, const PoolingWindows& w, const std::vector<int64_t>& padding) {
  std::vector<int64_t> overhang;
  for (int i = 0; i < w.axes(); ++i) {
    const int64_t end = (w.results[i] - 1) * w.stride[i] - w.pad[i] + w.kernel[i];
    overhang.push_back(std::max<int64_t>(0, end - layer.bottom_shape(0)[2 + i] - padding[i]));
  }
  return overhang;
}

std::vector<int64_t> OverhangOfInput(const LayerWriter& layer, const PoolingWindows& w) {
  return Overhang(layer, w, std::vector<int64_t>(w.axes(), 0));
}

std::vector<AttributeProto> WindowAttributes(const PoolingWindows& w, std::vector<int64_t> before,
                                             const std::vector<int64_t>& after) {
  before.insert(before.end(), after.begin(), after.end());
  return {Ints("kernel_shape", w.kernel), Ints("strides", w.stride), Ints("pads", before)};
}

std::string Maximum(LayerWriter& layer, const PoolingWindows& w, std::string* positions) {
  const std::vector<AttributeProto> window = WindowAttributes(w, w.pad, OverhangOfInput(layer, w));
  if (!positions) return layer.Add("MaxPool", {layer.bottom(0)}, window);
  const std::vector<std::string> pooled = layer.AddMany("MaxPool", {layer.bottom(0)}, 2, window);
  // ONNX counts positions through the whole tensor.
  const std::string plane = layer.Integer("plane", layer.bottom_shape(0).count(2));
  *positions = layer.Add("Cast", {layer.Add("Mod", {pooled[1], plane})}, {Int("to", TensorProto::FLOAT)});
  return pooled[0];
}

// Caffe divides by the elements of the window within the padded input.
std::string Mean(LayerWriter& layer, const std::string& value, const PoolingWindows& w) {
  const std::vector<int64_t> beyond = Overhang(layer, w, w.pad);
  const bool reaches_beyond = AnyAbove0(beyond), padded = AnyAbove0(w.pad);
  if (!reaches_beyond || !padded) {
    std::vector<AttributeProto> window = WindowAttributes(w, w.pad, OverhangOfInput(layer, w));
    window.push_back(Int("count_include_pad", padded));
    return layer.Add("AveragePool", {value}, window);
  }
  const std::string pads = layer.Integers("pads", Pads(w.pad, w.pad));
  return layer.Add("AveragePool", {layer.Add("Pad", {value, pads})},
                   WindowAttributes(w, std::vector<int64_t>(w.axes(), 0), beyond));
}

// The mean of a window's elements, each weighed by itself; 0 where their sum is.
std::string WeighedMean(LayerWriter& layer, const PoolingWindows& w) {
  const std::string sum = Mean(layer, layer.bottom(0), w);
  const std::string squares = Mean(layer, layer.Add("Mul", {layer.bottom(0), layer.bottom(0)}), w);
  const std::string zero = layer.Number("zero", 0);
  return layer.Add("Where", {layer.Add("Equal", {sum, zero}), zero, layer.Add("Div", {squares, sum})});
}

// The pooled values, and, where `positions` is not null, the position of each maximum in its plane, as floats.
std::string Pool(LayerWriter& layer, const PoolingWindows& windows, std::string* positions) {
  switch (windows.method) {
    case PoolingWindows::Method::kMax:
      return Maximum(layer, windows, positions);
    case PoolingWindows::Method::kAverage:
      return Mean(layer, layer.bottom(0), windows);
    case PoolingWindows::Method::kStochastic:
      break;
  }
  return WeighedMean(layer, windows);
}

PoolingWindows WindowsOf(const LayerWriter& layer) {
  const PoolingParameter& param = layer.param().pooling_param();
  PoolingWindows w;
  w.method = param.pool() == PoolingParameter::MAX   ? PoolingWindows::Method::kMax
             : param.pool() == PoolingParameter::AVE ? PoolingWindows::Method::kAverage
                                                     : PoolingWindows::Method::kStochastic;
  const std::vector<int64_t>&input = layer.bottom_shape(0).dims(), &output = layer.top_shape(0).dims();
  const int axes = static_cast<int>(input.size()) - 2;
  const auto read = [&](const auto& values, bool pair, int64_t vertical, int64_t horizontal, int64_t fallback) {
    if (pair) return std::vector<int64_t>{vertical, horizontal};
    if (values.size() > 1) return std::vector<int64_t>(values.begin(), values.end());
    return std::vector<int64_t>(axes, values.empty() ? fallback : values[0]);
  };
  w.kernel = param.global_pooling()
                 ? std::vector<int64_t>(input.begin() + 2, input.end())
                 : read(param.kernel_size(), param.has_kernel_h(), param.kernel_h(), param.kernel_w(), 1);
  w.stride = read(param.stride(), param.has_stride_h(), param.stride_h(), param.stride_w(), 1);
  w.pad = read(param.pad(), param.has_pad_h(), param.pad_h(), param.pad_w(), 0);
  w.results.assign(output.begin() + 2, output.end());
  return w;
}

// Takes off the last results of each axis whose windows start behind the input, which ONNX does not allow; returns how
// many these are.
std::vector<int64_t> LeaveOutEmpty(const LayerWriter& layer, PoolingWindows* w) {
  std::vector<int64_t> empty;
  for (int i = 0; i < w->axes(); ++i) {
    const int64_t starts = (layer.bottom_shape(0)[2 + i] + w->pad[i] + w->stride[i] - 1) / w->stride[i];
    empty.push_back(std::max<int64_t>(0, w->results[i] - starts));
    w->results[i] -= empty[i];
  }
  return empty;
}

// Puts `fill`, called `name` in the file, where these windows were.
std::string Refill(LayerWriter& layer, const std::string& pooled, const std::vector<int64_t>& empty,
                   const std::string& name, float fill) {
  if (!AnyAbove0(empty)) return pooled;
  const std::string pads = layer.Integers("empty_windows", Pads(std::vector<int64_t>(empty.size(), 0), empty));
  return layer.Add("Pad", {pooled, pads, layer.Number(name, fill)});
}

void Pooling(LayerWriter& layer) {
  layer.ExpectFixedFrom(0, 2);
  PoolingWindows w = WindowsOf(layer);
  if (layer.param().pooling_param().global_pooling() && w.method != PoolingWindows::Method::kStochastic &&
      layer.tops() == 1) {
    const char* op = w.method == PoolingWindows::Method::kMax ? "GlobalMaxPool" : "GlobalAveragePool";
    return layer.SetTop(0, layer.Add(op, {layer.bottom(0)}));
  }
  const std::vector<int64_t> empty = LeaveOutEmpty(layer, &w);
  std::string positions;
  const std::string pooled = Pool(layer, w, layer.tops() > 1 ? &positions : nullptr);
  layer.SetTop(0, Refill(layer, pooled, empty, "empty_value", 0));
  if (layer.tops() > 1) layer.SetTop(1, Refill(layer, positions, empty, "empty_position", -1));
}

void Spp(LayerWriter& layer) {
  layer.ExpectFixedFrom(0, 2);
  const SPPParameter& param = layer.param().spp_param();
  const Shape& shape = layer.bottom_shape(0);
  std::vector<std::string> levels;
  for (uint32_t level = 0; level < param.pyramid_height(); ++level) {
    PoolingWindows w;
    w.method = param.pool() == SPPParameter::MAX   ? PoolingWindows::Method::kMax
               : param.pool() == SPPParameter::AVE ? PoolingWindows::Method::kAverage
                                                   : PoolingWindows::Method::kStochastic;
    const int64_t bins = int64_t{1} << level;
    for (int i = 0; i < 2; ++i) {
      const int64_t side = (shape[2 + i] + bins - 1) / bins;
      w.results.push_back(bins);
      w.kernel.push_back(side);
      w.stride.push_back(side);
      w.pad.push_back((side * bins - shape[2 + i] + 1) / 2);
    }
    levels.push_back(Pool(layer, w, nullptr));
    if (param.pyramid_height() > 1) levels.back() = layer.Add("Flatten", {levels.back()}, {Int("axis", 1)});
  }
  layer.SetTop(0, levels.size() == 1 ? levels[0] : layer.Add("Concat", levels, {Int("axis", 1)}));
}

}  // namespace

LayerTable PoolingLayers() { return {{"Pooling", Pooling}, {"SPP", Spp}}; }

}  // namespace crema::onnx
