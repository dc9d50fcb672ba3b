// Pad. Zeros around images wait for a convolution or pooling that adds them; everything else is joined to what is
// padded.
#include <algorithm>
#include <limits>
#include <numeric>

#include "onnx/operator_table.h"

namespace crema::onnx {

namespace {

constexpr int64_t kMost = 1 << 20;

// What stands before and behind each axis. Before operator set 11 that is an attribute.
struct Pads {
  std::vector<int64_t> before, after;
};

Pads ReadPads(const NodeReader& node, int axes) {
  const std::vector<int64_t> given = node.List("pads", 1).value_or(std::vector<int64_t>());
  std::vector<int> named(axes);
  std::iota(named.begin(), named.end(), 0);
  if (node.has(3)) {
    named.clear();
    for (const int64_t axis : node.integers(3, "the axes")) named.push_back(node.Axis(axis, axes));
  }
  if (given.size() != 2 * named.size()) {
    node.Refuse("has " + std::to_string(given.size()) + " pads for " + std::to_string(named.size()) + " axes");
  }
  Pads pads{std::vector<int64_t>(axes, 0), std::vector<int64_t>(axes, 0)};
  for (size_t i = 0; i < named.size(); ++i) {
    pads.before[named[i]] = given[i];
    pads.after[named[i]] = given[i + named.size()];
    if (std::max(given[i], given[i + named.size()]) > kMost)
      node.Refuse("pads axis " + std::to_string(named[i]) + " by too much");
  }
  return pads;
}

// Pads below zero.
Operand CutOff(NodeReader& node, Operand value, Pads* pads) {
  for (int axis = 0; axis < value.shape.axes(); ++axis) {
    int64_t &before = pads->before[axis], &after = pads->after[axis];
    if (before >= 0 && after >= 0) continue;
    value = node.Padded(value);
    const int64_t start = std::max<int64_t>(0, -std::max(before, -kMost)),
                  end = value.shape[axis] - std::max<int64_t>(0, -std::max(after, -kMost));
    if (start >= end) node.Refuse("cuts everything off axis " + std::to_string(axis));
    value = node.Cut(value, axis, start, end - start, "cut");
    before = std::max<int64_t>(0, before);
    after = std::max<int64_t>(0, after);
  }
  return value;
}

// `count` times the element at `at`, or its place filled with `fill`.
Operand Repeated(NodeReader& node, const Operand& value, int axis, int64_t at, int64_t count, const float* fill) {
  Operand part = node.Cut(value, axis, at, 1, "edge");
  if (fill) part = node.Power(part, 0, *fill, 1, "fill");
  std::vector<int64_t> dims = part.shape.dims();
  dims[axis] = count;
  return node.Stretched(part, Shape(dims));
}

Operand Mirrored(NodeReader& node, const Operand& value, int axis, int64_t start, int64_t count) {
  const Operand part = node.Cut(value, axis, start, count, "edge");
  LayerParameter layer = LayerOf("Reverse");
  if (axis != 0) layer.mutable_reverse_param()->set_axis(axis);
  return node.Add(std::move(layer), {part}, {}, "mirror");
}

Operand Joined(NodeReader& node, const Operand& value, int axis, int64_t before, int64_t after, const std::string& mode,
               float fill) {
  const int64_t extent = value.shape[axis];
  if ((mode == "reflect" && std::max(before, after) >= extent) ||
      (mode == "wrap" && std::max(before, after) > extent)) {
    node.Refuse("pads axis " + std::to_string(axis) + " of " + value.shape.ToString() + " by more than it holds");
  }
  const auto side = [&](bool behind, int64_t count) {
    if (mode == "reflect") return Mirrored(node, value, axis, behind ? extent - 1 - count : 1, count);
    if (mode == "wrap") return node.Cut(value, axis, behind ? 0 : extent - count, count, "edge");
    return Repeated(node, value, axis, behind ? extent - 1 : 0, count, mode == "constant" ? &fill : nullptr);
  };
  std::vector<Operand> parts;
  if (before > 0) parts.push_back(side(false, before));
  parts.push_back(value);
  if (after > 0) parts.push_back(side(true, after));
  LayerParameter layer = LayerOf("Concat");
  if (axis != 1) layer.mutable_concat_param()->set_axis(axis);
  return node.Add(std::move(layer), parts, {}, "pad");
}

void Pad(NodeReader& node) {
  const std::string mode = node.String("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    node.Refuse("mode " + mode + " is none that crema can");
  constexpr double kLargest = std::numeric_limits<float>::max();
  const double given = node.has(2) ? node.number(2, "the value") : node.Float("value", 0);
  const auto fill = static_cast<float>(std::clamp(given, -kLargest, kLargest));
  Operand value = node.operand(0);
  if (value.is_constant()) value = node.blob(0);
  const int axes = value.shape.axes();
  Pads pads = ReadPads(node, axes);
  value = CutOff(node, value, &pads);
  for (int axis = 0; axis < axes; ++axis) {
    int64_t &before = pads.before[axis], &after = pads.after[axis];
    if (before == 0 && after == 0) continue;
    if (axis == 0) node.Refuse("pads the batch");
    if (mode == "constant" && fill == 0 && axis >= 2) continue;
    value = Joined(node, node.Padded(value), axis, before, after, mode, fill);
    before = after = 0;
  }
  if (value.before.empty()) value.before.assign(axes, 0);
  if (value.after.empty()) value.after.assign(axes, 0);
  for (int axis = 0; axis < axes; ++axis) {
    value.before[axis] += pads.before[axis];
    value.after[axis] += pads.after[axis];
  }
  node.Set(0, std::move(value));
}

}  // namespace

OperatorTable PaddingOperators() { return {{"Pad", Pad}}; }

}  // namespace crema::onnx
