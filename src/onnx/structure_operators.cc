// Operators that join, cut, rearrange and measure.
#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "onnx/folding.h"
#include "onnx/operator_table.h"

namespace crema::onnx {

namespace {

void PassThrough(NodeReader& node) { node.Set(0, node.operand(0)); }

void ShapeOf(NodeReader& node) {
  const Shape shape = node.shape(0);
  const int64_t axes = shape.axes();
  const auto bound = [&](const char* name, int64_t fallback) {
    const int64_t at = node.Int(name, fallback);
    return std::clamp<int64_t>(at < 0 ? at + axes : at, 0, axes);
  };
  const int64_t start = bound("start", 0), end = std::max(start, bound("end", axes));
  node.SetConstant(0, Integers({shape.dims().begin() + start, shape.dims().begin() + end}));
}

void Size(NodeReader& node) {
  Constant size = Integers({node.shape(0).count()});
  size.shape = {};
  node.SetConstant(0, std::move(size));
}

// Numbers are floats here; where rows are looked up whole ones are taken as such.
void Cast(NodeReader& node) {
  const int64_t type = node.Int("to", TensorProto::FLOAT);
  const bool floats = type == TensorProto::FLOAT || type == TensorProto::FLOAT16 || type == TensorProto::DOUBLE ||
                      type == TensorProto::BFLOAT16;
  if (!floats && node.Follower("Gather") == nullptr) node.Refuse("would round what is computed; crema has floats only");
  PassThrough(node);
}

// Whether all items of the batch hold the same numbers.
bool RepeatsItems(const Constant& value) {
  const int64_t size = value.shape.count(1);
  for (int64_t i = size; i < value.count(); ++i) {
    if (value.value(i) != value.value(i % size)) return false;
  }
  return true;
}

// A constant that is joined to every item of a batch, as a token of classes: added to zeros that are made of another
// part, so that it holds for any batch, and is trained where it is a weight.
std::optional<Operand> TokenOf(NodeReader& node, int i, int axis) {
  const Constant& constant = node.constant(i, "its input");
  if (axis == 0 || constant.whole || constant.shape.axes() < 2 || !RepeatsItems(constant)) return std::nullopt;
  for (int k = 0; k < node.inputs(); ++k) {
    if (node.is_constant(k) || node.shape(k).count() == 0) continue;
    Shape fits = node.shape(k);
    if (fits.axes() != constant.shape.axes()) continue;
    fits.set(axis, constant.shape[axis]);
    if (fits != constant.shape) continue;
    const Operand zeros = node.Power(node.Cut(node.blob(k), axis, 0, 1, "like"), 0, 0, 1, "zeros");
    std::vector<int64_t> item(constant.shape.dims().begin() + 1, constant.shape.dims().end());
    LayerParameter layer = LayerOf("Bias");
    if (item.size() != 1) layer.mutable_bias_param()->set_num_axes(static_cast<int32_t>(item.size()));
    if (constant.name.empty()) Freeze(1, &layer);
    const Shape shape(item);
    std::vector<float> values(constant.floats.begin(), constant.floats.begin() + shape.count());
    return node.Add(std::move(layer), {node.Stretched(zeros, constant.shape)}, {Floats(shape, std::move(values))},
                    "token");
  }
  return std::nullopt;
}

void Concat(NodeReader& node) {
  std::vector<Operand> parts;
  for (int i = 0; i < node.inputs(); ++i) {
    if (node.shape(i).count() == 0) continue;
    std::optional<Operand> token;
    if (node.is_constant(i)) token = TokenOf(node, i, node.Axis(node.Int("axis", 1), node.shape(i).axes()));
    parts.push_back(token ? *token : node.blob(i));
  }
  if (parts.empty()) node.Refuse("joins nothing");
  const int axis = node.Axis(node.Int("axis", 1), parts[0].shape.axes());
  if (parts.size() == 1) return node.Set(0, parts[0]);
  LayerParameter layer = LayerOf("Concat");
  if (axis != 1) layer.mutable_concat_param()->set_axis(axis);
  node.Set(0, node.Add(std::move(layer), parts));
}

void Split(NodeReader& node) {
  const Operand value = node.blob(0);
  const int axis = node.Axis(node.Int("axis", 0), value.shape.axes()), parts = node.outputs();
  std::vector<int64_t> extents = node.List("split", 1).value_or(std::vector<int64_t>());
  const int64_t whole = value.shape[axis];
  if (extents.empty()) {
    const int64_t most = (whole + parts - 1) / parts;
    for (int i = 0; i < parts; ++i) extents.push_back(std::clamp<int64_t>(whole - i * most, 0, most));
  }
  int64_t sum = 0;
  for (const int64_t extent : extents) {
    if (extent < 1 || extent > whole)
      node.Refuse("makes a part of " + std::to_string(extent) + " of " + value.shape.ToString());
    sum += extent;
  }
  if (static_cast<int>(extents.size()) != parts || sum != whole) {
    node.Refuse("its parts do not make up " + value.shape.ToString());
  }
  if (parts == 1) return node.Set(0, value);
  LayerParameter layer = LayerOf("Slice");
  SliceParameter* param = layer.mutable_slice_param();
  if (axis != 1) param->set_axis(axis);
  const bool equal = std::all_of(extents.begin(), extents.end(), [&](int64_t extent) { return extent == extents[0]; });
  for (int i = 0, end = 0; i + 1 < parts && !equal; ++i) {
    end += static_cast<int>(extents[i]);
    param->add_slice_point(end);
  }
  const std::vector<Operand> results = node.AddMany(std::move(layer), {value}, parts);
  std::vector<Operand> rest;
  for (int i = 0; i < parts; ++i) {
    if (!node.wanted(i)) rest.push_back(results[i]);
    if (!node.node().output(i).empty()) node.Set(i, results[i]);
  }
  if (!rest.empty()) node.AddMany(LayerOf("Silence"), rest, 0, {}, "rest");
}

// Every step-th element of an axis, from the first on. Of height and width that is the maximum of one pixel; of another
// axis the first of each group of elements, and the last element where its group is not whole.
Operand Thinned(NodeReader& node, const Operand& value, int axis, int64_t step) {
  const Shape& shape = value.shape;
  if (shape.axes() == 4 && axis >= 2 && step <= (1 << 20)) {
    LayerParameter layer = LayerOf("Pooling");
    PoolingParameter* param = layer.mutable_pooling_param();
    param->add_kernel_size(1);
    param->set_stride_h(axis == 2 ? static_cast<uint32_t>(step) : 1);
    param->set_stride_w(axis == 3 ? static_cast<uint32_t>(step) : 1);
    return node.Add(std::move(layer), {value}, {}, "step");
  }
  if (axis == 0) node.Refuse("takes the batch in steps of " + std::to_string(step) + ", which crema cannot");
  const int64_t groups = shape[axis] / step;
  std::vector<Operand> parts;
  if (groups > 0) {
    std::vector<int64_t> dims = shape.dims();
    dims[axis] = groups;
    dims.insert(dims.begin() + axis + 1, step);
    const Operand firsts = node.Cut(
        node.Reshape(node.Cut(value, axis, 0, groups * step, "groups"), Shape(dims), "axes"), axis + 1, 0, 1, "step");
    dims.erase(dims.begin() + axis + 1);
    parts.push_back(node.Reshape(firsts, Shape(dims), "axes"));
  }
  if (groups * step < shape[axis]) parts.push_back(node.Cut(value, axis, groups * step, 1, "last"));
  if (parts.size() == 1) return parts[0];
  LayerParameter layer = LayerOf("Concat");
  if (axis != 1) layer.mutable_concat_param()->set_axis(axis);
  return node.Add(std::move(layer), parts, {}, "step");
}

Operand Backwards(NodeReader& node, const Operand& value, int axis) {
  LayerParameter layer = LayerOf("Reverse");
  if (axis != 0) layer.mutable_reverse_param()->set_axis(axis);
  return node.Add(std::move(layer), {value}, {}, "reverse");
}

void Slice(NodeReader& node) {
  Operand value = node.blob(0);
  for (const SliceRange& range : SliceRanges(node)) {
    if (range.count == 0) node.Refuse("leaves nothing of axis " + std::to_string(range.axis));
    const int64_t extent = (range.count - 1) * std::abs(range.step) + 1;
    value = node.Cut(value, range.axis, range.step < 0 ? range.start - extent + 1 : range.start, extent, "");
    if (range.count == 1 || range.step == 1) continue;
    if (range.step < 0) value = Backwards(node, value, range.axis);
    if (std::abs(range.step) > 1) value = Thinned(node, value, range.axis, std::abs(range.step));
  }
  node.Set(0, value);
}

void Flatten(NodeReader& node) {
  const Operand value = node.blob(0);
  const int axis = node.Axis(node.Int("axis", 1), value.shape.axes(), true);
  node.Set(0, node.Reshape(value, {value.shape.count(0, axis), value.shape.count(axis)}));
}

void Reshape(NodeReader& node) {
  const Operand value = node.blob(0);
  const std::vector<int64_t>& dims = node.integers(1, "the shape");
  node.Set(0, node.Reshape(value, ReshapedTo(node, value.shape, dims, node.Int("allowzero", 0) != 0)));
}

void Squeeze(NodeReader& node) {
  const Operand value = node.blob(0);
  node.Set(0, node.Reshape(value, SqueezedShape(node, value.shape)));
}

void Unsqueeze(NodeReader& node) {
  const Operand value = node.blob(0);
  node.Set(0, node.Reshape(value, UnsqueezedShape(node, value.shape)));
}

void Transpose(NodeReader& node) {
  const Operand value = node.blob(0);
  node.Set(0, node.Permute(value, TransposeOrder(node, value.shape.axes())));
}

void Tile(NodeReader& node) {
  Operand value = node.blob(0);
  const std::vector<int64_t>& repeats = node.integers(1, "the repeats");
  if (static_cast<int>(repeats.size()) != value.shape.axes())
    node.Refuse("its repeats do not fit " + value.shape.ToString());
  for (int axis = 0; axis < value.shape.axes(); ++axis) {
    if (repeats[axis] == 1) continue;
    if (repeats[axis] < 1 || repeats[axis] > (1 << 24))
      node.Refuse("repeats axis " + std::to_string(axis) + " " + std::to_string(repeats[axis]) + " times");
    LayerParameter layer = LayerOf("Tile");
    if (axis != 1) layer.mutable_tile_param()->set_axis(axis);
    layer.mutable_tile_param()->set_tiles(static_cast<int32_t>(repeats[axis]));
    value = node.Add(std::move(layer), {value});
  }
  node.Set(0, value);
}

// Blocks of pixels to channels and back, by two Reshapes and a Permute.
void SpaceToDepth(NodeReader& node) {
  const Operand value = node.blob(0);
  const int64_t block = node.Int("blocksize", 0);
  const Shape& s = value.shape;
  if (s.axes() != 4 || block < 1 || s[2] % block != 0 || s[3] % block != 0)
    node.Refuse("its blocks do not fit " + s.ToString());
  const Operand parts = node.Reshape(value, {s[0], s[1], s[2] / block, block, s[3] / block, block}, "blocks");
  node.Set(0, node.Reshape(node.Permute(parts, {0, 3, 5, 1, 2, 4}, "permute"),
                           {s[0], s[1] * block * block, s[2] / block, s[3] / block}));
}

void DepthToSpace(NodeReader& node) {
  const Operand value = node.blob(0);
  const int64_t block = node.Int("blocksize", 0);
  const Shape& s = value.shape;
  if (s.axes() != 4 || block < 1 || block > 1 << 15 || s[1] % (block * block) != 0)
    node.Refuse("its blocks do not fit " + s.ToString());
  const int64_t channels = s[1] / (block * block);
  const bool pixels_first = node.String("mode", "DCR") == "DCR";
  const Operand parts = node.Reshape(
      value,
      pixels_first ? Shape{s[0], block, block, channels, s[2], s[3]} : Shape{s[0], channels, block, block, s[2], s[3]},
      "blocks");
  const std::vector<int> order = pixels_first ? std::vector<int>{0, 3, 4, 1, 5, 2} : std::vector<int>{0, 1, 4, 2, 5, 3};
  node.Set(0, node.Reshape(node.Permute(parts, order, "permute"), {s[0], channels, s[2] * block, s[3] * block}));
}

}  // namespace

std::vector<SliceRange> SliceRanges(const NodeReader& node) {
  const Shape shape = node.shape(0);
  const auto list = [&](const char* name, int i) { return node.List(name, i); };
  const auto starts = list("starts", 1), ends = list("ends", 2), steps = list("steps", 4);
  auto axes = list("axes", 3);
  if (!starts || !ends) node.Refuse("says no starts and ends");
  if (!axes) {
    axes.emplace(starts->size());
    std::iota(axes->begin(), axes->end(), 0);
  }
  if (ends->size() != starts->size() || axes->size() != starts->size() || (steps && steps->size() != starts->size())) {
    node.Refuse("its starts, ends, axes and steps are not equally many");
  }
  node.Axes(*axes, shape.axes());
  std::vector<SliceRange> ranges;
  for (size_t i = 0; i < starts->size(); ++i) {
    const int axis = node.Axis((*axes)[i], shape.axes());
    const int64_t extent = shape[axis], step = steps ? (*steps)[i] : 1;
    if (step == 0 || step == std::numeric_limits<int64_t>::min()) node.Refuse("has a step of " + std::to_string(step));
    // Counted from the end where negative, and kept inside.
    const auto place = [&](int64_t at, int64_t least, int64_t most) {
      return std::clamp(at < 0 ? std::max(at, -extent - 1) + extent : at, least, most);
    };
    const int64_t start = step > 0 ? place((*starts)[i], 0, extent) : place((*starts)[i], 0, extent - 1);
    const int64_t end = step > 0 ? place((*ends)[i], 0, extent) : place((*ends)[i], -1, extent - 1);
    const int64_t way = step > 0 ? end - start : start - end, stride = std::abs(step);
    ranges.push_back({axis, start, step, way <= 0 ? 0 : (way - 1) / stride + 1});
  }
  return ranges;
}

Shape ReshapedTo(const NodeReader& node, const Shape& from, const std::vector<int64_t>& dims, bool allow_zero) {
  std::vector<int64_t> result = dims;
  int left = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !allow_zero) {
      if (i >= static_cast<size_t>(from.axes()))
        node.Refuse("its shape keeps axis " + std::to_string(i) + " of " + from.ToString());
      result[i] = from[static_cast<int>(i)];
    }
    if (dims[i] != -1) continue;
    if (left >= 0) node.Refuse("its shape has more than one -1");
    left = static_cast<int>(i);
    result[i] = 1;
  }
  const int64_t count = CheckedCount(result);
  if (left >= 0 && count > 0) result[left] = from.count() / count;
  if (count < 0 || CheckedCount(result) != from.count()) {
    node.Refuse("cannot give " + from.ToString() + " the shape " + Shape(dims).ToString());
  }
  return Shape(result);
}

Shape UnsqueezedShape(const NodeReader& node, const Shape& from) {
  const auto named = node.List("axes", 1);
  if (!named) node.Refuse("names no axes");
  const int axes = from.axes() + static_cast<int>(named->size());
  const std::vector<int> inserted = node.Axes(*named, axes);
  std::vector<int64_t> dims = from.dims();
  for (const int axis : inserted) dims.insert(dims.begin() + axis, 1);
  return Shape(dims);
}

Shape SqueezedShape(const NodeReader& node, const Shape& from) {
  const auto named = node.List("axes", 1);
  std::vector<int64_t> dims;
  const std::vector<int> removed = named ? node.Axes(*named, from.axes()) : std::vector<int>();
  for (int axis = 0; axis < from.axes(); ++axis) {
    const bool goes = named ? std::find(removed.begin(), removed.end(), axis) != removed.end() : from[axis] == 1;
    if (goes && from[axis] != 1) node.Refuse("takes away axis " + std::to_string(axis) + " of " + from.ToString());
    if (!goes) dims.push_back(from[axis]);
  }
  return Shape(dims);
}

std::vector<int> TransposeOrder(const NodeReader& node, int axes) {
  const auto given = node.Ints("perm");
  std::vector<int> order;
  for (int i = 0; i < axes && !given; ++i) order.push_back(axes - 1 - i);
  if (!given) return order;
  if (static_cast<int>(given->size()) != axes) node.Refuse("its perm does not fit " + std::to_string(axes) + " axes");
  node.Axes(*given, axes);
  for (const int64_t axis : *given) order.push_back(node.Axis(axis, axes));
  return order;
}

OperatorTable StructureOperators() {
  return {{"Cast", Cast},
          {"Concat", Concat},
          {"DepthToSpace", DepthToSpace},
          {"Flatten", Flatten},
          {"Identity", PassThrough},
          {"Reshape", Reshape},
          {"Shape", ShapeOf},
          {"Size", Size},
          {"Slice", Slice},
          {"SpaceToDepth", SpaceToDepth},
          {"Split", Split},
          {"Squeeze", Squeeze},
          {"Tile", Tile},
          {"Transpose", Transpose},
          {"Unsqueeze", Unsqueeze}};
}

}  // namespace crema::onnx
