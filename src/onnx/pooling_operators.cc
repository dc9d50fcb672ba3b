// Operators that take the maximum or the mean of windows. What a model does otherwise than Caffe is made up for by
// cutting windows off, and by a factor for each.
#include <algorithm>
#include <optional>

#include "import/pooled_windows.h"
#include "onnx/operator_table.h"
#include "onnx/window.h"
#include "ops/pooling/pooling.h"

namespace crema::onnx {

namespace {

std::vector<PooledAxis> ReadAxes(const NodeReader& node, const Operand& value, bool counts_padding) {
  const std::vector<int64_t> input = SpatialExtents(node, node.shape(0));
  if (input.size() != 2 && input.size() != 3) {
    node.Refuse("reads " + node.shape(0).ToString() + "; crema pools over height and width, and depth of volumes");
  }
  const Window window = ReadWindow(node, input, {});
  const bool ceil = node.Int("ceil_mode", 0) != 0;
  std::vector<PooledAxis> axes(input.size());
  for (int i = 0; i < window.axes(); ++i) {
    PooledAxis& axis = axes[i];
    if (window.dilation[i] != 1) node.Refuse("dilates its windows, which crema's poolings do not");
    axis.input = value.shape[2 + i];
    axis.kernel = window.kernel[i];
    axis.stride = window.stride[i];
    const int64_t before = value.before.empty() ? 0 : value.before[2 + i],
                  after = value.after.empty() ? 0 : value.after[2 + i];
    axis.before = before + window.before[i];
    axis.after = after + window.after[i];
    axis.counted_before = counts_padding ? axis.before : before;
    axis.counted_after = counts_padding ? axis.after : after;
    const int64_t room = axis.input + axis.before + axis.after - axis.kernel;
    if (room < 0) node.Refuse("its window of " + std::to_string(axis.kernel) + " is larger than what it reads");
    axis.results = room / axis.stride + 1;
    // A last window must begin in the input, or before it.
    if (ceil && room % axis.stride != 0 && axis.results * axis.stride < axis.input + axis.before) ++axis.results;
    if (axis.before >= axis.kernel) node.Refuse("pads by its whole window, so that one sees nothing");
  }
  return axes;
}

// For each window what Caffe's mean of it is to be multiplied by.
std::vector<float> Factors(const PooledAxis& axis) {
  std::vector<float> factors;
  for (int64_t i = 0; i < axis.results; ++i) {
    const int64_t start = i * axis.stride - axis.before;
    const int64_t counted =
        std::min(start + axis.kernel, axis.input + axis.counted_after) - std::max(start, -axis.counted_before);
    const int64_t divisor = RangeOf(axis.input, axis.window(), i + axis.first).padded;
    factors.push_back(counted <= 0 ? 1
                                   : static_cast<float>(static_cast<double>(divisor) / static_cast<double>(counted)));
  }
  return factors;
}

Operand Pool(NodeReader& node, Operand value, PoolingParameter::PoolMethod method,
             const std::vector<PooledAxis>& axes) {
  value.before.clear();
  value.after.clear();
  const std::optional<PooledWindows> windows = FitPooling(node.Int("ceil_mode", 0) != 0, axes);
  if (!windows) node.Refuse("pads more behind than Caffe's windows reach; export it with equal pads");
  std::vector<float> factors{1};
  std::vector<int64_t> results;
  for (const PooledAxis& axis : windows->axes) {
    std::vector<float> products;
    for (const float before : factors) {
      for (const float factor : Factors(axis)) products.push_back(before * factor);
    }
    factors = std::move(products);
    results.push_back(axis.results);
  }
  const bool scales = method == PoolingParameter::AVE &&
                      std::any_of(factors.begin(), factors.end(), [](float factor) { return factor != 1; });
  const bool cuts = windows->cuts_off();
  value = node.Add(PoolingLayerOf(method, *windows), {value}, {}, cuts || scales ? "pool" : "");
  const int count = static_cast<int>(windows->axes.size());
  for (int i = 0; i < count; ++i) {
    value = node.Cut(value, 2 + i, windows->axes[i].first, windows->axes[i].results, "cut");
  }
  if (!scales) return value;
  LayerParameter layer = LayerOf("Scale");
  layer.mutable_scale_param()->set_axis(2);
  layer.mutable_scale_param()->set_num_axes(count);
  Freeze(1, &layer);
  return node.Add(std::move(layer), {value}, {Floats(Shape(results), std::move(factors))});
}

void MaxPool(NodeReader& node) {
  if (node.wanted(1)) node.Refuse("its positions are read, which ONNX counts otherwise than crema");
  // Zeros in front are values like others here.
  const Operand value = node.blob(0);
  node.Set(0, Pool(node, value, PoolingParameter::MAX, ReadAxes(node, value, false)));
}

void AveragePool(NodeReader& node) {
  const Operand value = node.operand(0).is_constant() ? node.blob(0) : node.operand(0);
  node.Set(0, Pool(node, value, PoolingParameter::AVE, ReadAxes(node, value, node.Int("count_include_pad", 0) != 0)));
}

Operand GlobalPool(NodeReader& node, const Operand& value, PoolingParameter::PoolMethod method,
                   const std::string& role) {
  LayerParameter layer = LayerOf("Pooling");
  if (method != PoolingParameter::MAX) layer.mutable_pooling_param()->set_pool(method);
  layer.mutable_pooling_param()->set_global_pooling(true);
  return node.Add(std::move(layer), {value}, {}, role);
}

// --- Whole axes ---

std::vector<int> ReducedLast(int count, const std::vector<int>& axes) {
  std::vector<int> order;
  for (int axis = 0; axis < count; ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) order.push_back(axis);
  }
  order.insert(order.end(), axes.begin(), axes.end());
  return order;
}

Operand Reduced(NodeReader& node, const Operand& value, ReductionParameter::ReductionOp operation,
                const std::vector<int>& axes, const std::string& role) {
  const std::vector<int> order = ReducedLast(value.shape.axes(), axes);
  const int first = value.shape.axes() - static_cast<int>(axes.size());
  LayerParameter layer = LayerOf("Reduction");
  ReductionParameter* param = layer.mutable_reduction_param();
  if (operation != ReductionParameter::SUM) param->set_operation(operation);
  if (first != 0) param->set_axis(first);
  return node.Add(std::move(layer), {node.Permute(value, order, "permute")}, {}, role);
}

// Of all axes where none are named.
std::vector<int> AxesOf(const NodeReader& node, int count) {
  const auto named = node.List("axes", 1);
  if (named && !named->empty()) return node.Axes(*named, count);
  std::vector<int> all;
  for (int axis = 0; axis < count && node.Int("noop_with_empty_axes", 0) == 0; ++axis) all.push_back(axis);
  return all;
}

Shape ReducedShape(const NodeReader& node, const Shape& shape, const std::vector<int>& axes) {
  std::vector<int64_t> dims;
  for (int axis = 0; axis < shape.axes(); ++axis) {
    const bool reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!reduced) dims.push_back(shape[axis]);
    if (reduced && node.Int("keepdims", 1) != 0) dims.push_back(1);
  }
  return Shape(dims);
}

template <ReductionParameter::ReductionOp operation, bool root = false>
void Reduce(NodeReader& node) {
  Operand value = node.blob(0);
  const std::vector<int> axes = AxesOf(node, value.shape.axes());
  if (axes.empty()) return node.Set(0, value);
  const Shape shape = ReducedShape(node, value.shape, axes);
  const bool plane = operation == ReductionParameter::MEAN && value.shape.axes() == 4 && axes == std::vector<int>{2, 3};
  value = plane ? GlobalPool(node, value, PoolingParameter::AVE, "")
                : Reduced(node, value, operation, axes, root ? "sum" : "");
  if (root) value = node.Power(value, 1, 0, 0.5F);
  node.Set(0, node.Reshape(value, shape, "shape"));
}

// Of axes other than height and width by a window as high as all their elements.
template <bool maximum>
void ReduceExtreme(NodeReader& node) {
  Operand value = node.blob(0);
  const std::vector<int> axes = AxesOf(node, value.shape.axes());
  if (axes.empty()) return node.Set(0, value);
  const Shape shape = ReducedShape(node, value.shape, axes);
  if (!maximum) value = node.Power(value, -1, 0, 1, "minus");
  if (value.shape.axes() != 4 || axes != std::vector<int>{2, 3}) {
    const std::vector<int> order = ReducedLast(value.shape.axes(), axes);
    const auto kept = value.shape.axes() - static_cast<int>(axes.size());
    value = node.Permute(value, order, "permute");
    const int64_t batch = kept > 0 ? value.shape[0] : 1;
    value = node.Reshape(value, {batch, value.shape.count(0, kept) / batch, value.shape.count(kept), 1}, "window");
  }
  value = GlobalPool(node, value, PoolingParameter::MAX, maximum ? "" : "max");
  if (!maximum) value = node.Power(value, -1, 0);
  node.Set(0, node.Reshape(value, shape, "shape"));
}

template <bool maximum>
void Global(NodeReader& node) {
  const Operand value = node.blob(0);
  if (value.shape.axes() == 4 || value.shape.axes() == 5)
    return node.Set(0, GlobalPool(node, value, maximum ? PoolingParameter::MAX : PoolingParameter::AVE, ""));
  if (value.shape.axes() < 3 || maximum)
    node.Refuse("reads " + value.shape.ToString() +
                "; N x channels x height x width, or x depth x height x width, is possible");
  std::vector<int> axes;
  std::vector<int64_t> dims(value.shape.axes(), 1);
  for (int axis = 2; axis < value.shape.axes(); ++axis) axes.push_back(axis);
  std::copy_n(value.shape.dims().begin(), 2, dims.begin());
  node.Set(0, node.Reshape(Reduced(node, value, ReductionParameter::MEAN, axes, ""), Shape(dims), "shape"));
}

}  // namespace

OperatorTable PoolingOperators() {
  return {{"AveragePool", AveragePool},
          {"GlobalAveragePool", Global<false>},
          {"GlobalMaxPool", Global<true>},
          {"MaxPool", MaxPool},
          {"ReduceL1", Reduce<ReductionParameter::ASUM>},
          {"ReduceL2", Reduce<ReductionParameter::SUMSQ, true>},
          {"ReduceMax", ReduceExtreme<true>},
          {"ReduceMin", ReduceExtreme<false>},
          {"ReduceMean", Reduce<ReductionParameter::MEAN>},
          {"ReduceSum", Reduce<ReductionParameter::SUM>},
          {"ReduceSumSquare", Reduce<ReductionParameter::SUMSQ>}};
}

}  // namespace crema::onnx
