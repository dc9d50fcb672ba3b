// Layers that join, cut, rearrange and summarise.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "onnx/layer_table.h"

namespace crema::onnx {

namespace {

void PassThrough(LayerWriter& layer) {
  for (int i = 0; i < layer.tops(); ++i) layer.SetTop(i, layer.bottom(0));
}

void Dropout(LayerWriter& layer) {
  const DropoutParameter& param = layer.param().dropout_param();
  if (param.scale_train()) return PassThrough(layer);
  layer.SetTop(0, layer.Affine(layer.bottom(0), 1 - param.dropout_ratio(), 0));
}

void LabelSpecificAdd(LayerWriter& layer) {
  if (layer.param().label_specific_add_param().transform_test()) {
    layer.Refuse("label_specific_add_param.transform_test",
                 "a margin in TEST has no form in ONNX; remove transform_test");
  }
  PassThrough(layer);
}

void Nothing(LayerWriter&) {}

void Concat(LayerWriter& layer) {
  const ConcatParameter& param = layer.param().concat_param();
  const int axis =
      param.has_concat_dim() ? static_cast<int>(param.concat_dim()) : layer.bottom_shape(0).CanonicalAxis(param.axis());
  std::vector<std::string> parts;
  for (int i = 0; i < layer.bottoms(); ++i) parts.push_back(layer.bottom(i));
  layer.SetTop(0, layer.Add("Concat", parts, {Int("axis", axis)}));
}

void Slice(LayerWriter& layer) {
  const SliceParameter& param = layer.param().slice_param();
  const int axis =
      param.has_slice_dim() ? static_cast<int>(param.slice_dim()) : layer.bottom_shape(0).CanonicalAxis(param.axis());
  if (layer.tops() == 1) return layer.SetTop(0, layer.bottom(0));
  layer.ExpectFixed(0, axis);
  std::vector<int64_t> extents;
  for (int i = 0; i < layer.tops(); ++i) extents.push_back(layer.top_shape(i)[axis]);
  const std::vector<std::string> parts =
      layer.AddMany("Split", {layer.bottom(0), layer.Integers("split", extents)}, layer.tops(), {Int("axis", axis)});
  for (int i = 0; i < layer.tops(); ++i) layer.SetTop(i, parts[i]);
}

void Flatten(LayerWriter& layer) {
  const FlattenParameter& param = layer.param().flatten_param();
  const Shape& shape = layer.bottom_shape(0);
  const bool matrix = shape.CanonicalAxis(param.axis()) == 1 && layer.top_shape(0).axes() == 2;
  layer.SetTop(0, matrix ? layer.Add("Flatten", {layer.bottom(0)}, {Int("axis", 1)})
                         : layer.Reshape(layer.bottom(0), layer.top_dims(0)));
}

void Reshape(LayerWriter& layer) { layer.SetTop(0, layer.Reshape(layer.bottom(0), layer.top_dims(0))); }

void Permute(LayerWriter& layer) {
  const auto& given =
      layer.type() == "Transpose" ? layer.param().transpose_param().dim() : layer.param().permute_param().order();
  std::vector<int64_t> order(given.begin(), given.end());
  for (int axis = 0; axis < layer.bottom_shape(0).axes(); ++axis) {
    if (std::find(order.begin(), order.end(), axis) == order.end()) order.push_back(axis);
  }
  layer.SetTop(0, layer.Add("Transpose", {layer.bottom(0)}, {Ints("perm", order)}));
}

// Bottom 0 under the shape `dims`, its axes in `order`, under the shape of the top.
void Rearrange(LayerWriter& layer, const std::vector<int64_t>& dims, const std::vector<int64_t>& order) {
  const std::string moved = layer.Add("Transpose", {layer.Reshape(layer.bottom(0), dims)}, {Ints("perm", order)});
  layer.SetTop(0, layer.Reshape(moved, layer.top_dims(0)));
}

void ShuffleChannel(LayerWriter& layer) {
  const int64_t groups = layer.param().shuffle_channel_param().group();
  const Shape& shape = layer.bottom_shape(0);
  layer.ExpectFixedFrom(0, 1);
  Rearrange(layer, {layer.bottom_dims(0)[0], groups, shape[1] / groups, shape.count(2)}, {0, 2, 1, 3});
}

// In the order of elements that src/layers/reorg.cc describes.
void Reorg(LayerWriter& layer) {
  const ReorgParameter& param = layer.param().reorg_param();
  const int64_t stride = param.stride(), images = layer.bottom_dims(0)[0];
  const Shape& shape = layer.bottom_shape(0);
  layer.ExpectFixedFrom(0, 1);
  const int64_t few = shape[1] / (stride * stride);
  if (param.reverse()) {
    Rearrange(layer, {images, stride, stride, few, shape[2], shape[3]}, {0, 3, 4, 1, 5, 2});
  } else {
    Rearrange(layer, {images, few, shape[2], stride, shape[3], stride}, {0, 3, 5, 1, 2, 4});
  }
}

void Tile(LayerWriter& layer) {
  const Shape& shape = layer.bottom_shape(0);
  std::vector<int64_t> repeats(shape.axes(), 1);
  repeats[shape.CanonicalAxis(layer.param().tile_param().axis())] = layer.param().tile_param().tiles();
  layer.SetTop(0, layer.Add("Tile", {layer.bottom(0), layer.Integers("repeats", repeats)}));
}

void Reduction(LayerWriter& layer) {
  const ReductionParameter& param = layer.param().reduction_param();
  const Shape& shape = layer.bottom_shape(0);
  std::vector<int64_t> axes;
  for (int axis = shape.CanonicalAxis(param.axis()); axis < shape.axes(); ++axis) axes.push_back(axis);
  std::string value;
  if (param.operation() == ReductionParameter::SUM) {
    value = layer.Add("ReduceSum", {layer.bottom(0), layer.Integers("axes", axes)}, {Int("keepdims", 0)});
  } else {
    const char* op = param.operation() == ReductionParameter::ASUM    ? "ReduceL1"
                     : param.operation() == ReductionParameter::SUMSQ ? "ReduceSumSquare"
                                                                      : "ReduceMean";
    value = layer.Add(op, {layer.bottom(0)}, {Ints("axes", axes), Int("keepdims", 0)});
  }
  layer.SetTop(0, layer.Affine(value, param.coeff(), 0));
}

// The elements along an axis in opposite order.
std::string Backwards(LayerWriter& layer, const std::string& value, int axis) {
  return layer.Add("Slice",
                   {value, layer.Integers("first", {-1}), layer.Integers("end", {std::numeric_limits<int64_t>::min()}),
                    layer.Integers("axes", {axis}), layer.Integers("steps", {-1})});
}

void Reverse(LayerWriter& layer) {
  const int axis = layer.bottom_shape(0).CanonicalAxis(layer.param().reverse_param().axis());
  layer.SetTop(0, Backwards(layer, layer.bottom(0), axis));
}

// The largest first, and of equals that of the larger index: the first of them when the axis runs backwards.
void ArgMax(LayerWriter& layer) {
  const ArgMaxParameter& param = layer.param().argmax_param();
  const Shape& shape = layer.bottom_shape(0);
  const bool by_axis = param.has_axis();
  const int axis = by_axis ? shape.CanonicalAxis(param.axis()) : 1;
  const std::string values =
      by_axis || (shape.axes() == 2) ? layer.bottom(0) : layer.Add("Flatten", {layer.bottom(0)}, {Int("axis", 1)});
  by_axis ? layer.ExpectFixed(0, axis) : layer.ExpectFixedFrom(0, 1);
  const int64_t last = (by_axis ? shape[axis] : shape.count(1)) - 1;
  const std::string backwards = Backwards(layer, values, axis);
  const std::vector<std::string> found =
      layer.AddMany("TopK", {backwards, layer.Integers("top_k", {param.top_k()})}, 2, {Int("axis", axis)});
  const std::string index =
      layer.Add("Cast", {layer.Add("Sub", {layer.Integer("last", last), found[1]})}, {Int("to", TensorProto::FLOAT)});
  if (by_axis) return layer.SetTop(0, param.out_max_val() ? found[0] : index);
  const std::string both = param.out_max_val() ? layer.Add("Concat", {index, found[0]}, {Int("axis", 1)}) : index;
  layer.SetTop(0, layer.Reshape(both, layer.top_dims(0)));
}

void BatchReindex(LayerWriter& layer) {
  const std::string rows = layer.Add("Cast", {layer.bottom(1)}, {Int("to", TensorProto::INT64)});
  layer.SetTop(0, layer.Add("Gather", {layer.bottom(0), rows}, {Int("axis", 0)}));
}

}  // namespace

LayerTable StructureLayers() {
  return {{"ArgMax", ArgMax},
          {"BatchReindex", BatchReindex},
          {"Concat", Concat},
          {"Dropout", Dropout},
          {"Flatten", Flatten},
          {"GradientScaler", PassThrough},
          {"LabelSpecificAdd", LabelSpecificAdd},
          {"Permute", Permute},
          {"Reduction", Reduction},
          {"Reorg", Reorg},
          {"Reshape", Reshape},
          {"Reverse", Reverse},
          {"Silence", Nothing},
          {"ShuffleChannel", ShuffleChannel},
          {"Slice", Slice},
          {"Split", PassThrough},
          {"Tile", Tile},
          {"Transpose", Permute}};
}

}  // namespace crema::onnx
