// Layers that move a window over images, and those that give images another size.
#include <google/protobuf/repeated_field.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "layers/given_numbers.h"
#include "onnx/layer_table.h"
#include "ops/pooling/pooling.h"

namespace crema::onnx {

namespace {

// One entry for each spatial axis. Where there is none the layer is a product of matrices, and ONNX wants a pixel.
struct SpatialWindow {
  std::vector<int64_t> kernel, stride, pad, dilation;
};

std::vector<int64_t> Setting(const google::protobuf::RepeatedField<uint32_t>& values, bool has_pair, int64_t vertical,
                             int64_t horizontal, size_t axes, int64_t fallback) {
  if (has_pair) return {vertical, horizontal};
  if (values.size() == static_cast<int>(axes)) return {values.begin(), values.end()};
  return std::vector<int64_t>(axes, values.empty() ? fallback : values[0]);
}

// Parameter: ConvolutionParameter or DeformableConvolutionParameter.
template <typename Parameter>
SpatialWindow WindowOf(const LayerWriter& layer, const Parameter& param, int axis) {
  const size_t axes = layer.bottom_shape(0).axes() - axis - 1;
  if (axes == 0) return {{1}, {1}, {0}, {1}};
  return {Setting(param.kernel_size(), param.has_kernel_h(), param.kernel_h(), param.kernel_w(), axes, 1),
          Setting(param.stride(), param.has_stride_h() || param.has_stride_w(), param.stride_h(), param.stride_w(),
                  axes, 1),
          Setting(param.pad(), param.has_pad_h() || param.has_pad_w(), param.pad_h(), param.pad_w(), axes, 0),
          Setting(param.dilation(), false, 0, 0, axes, 1)};
}

std::vector<AttributeProto> AttributesOf(const SpatialWindow& window, int64_t groups) {
  std::vector<int64_t> pads = window.pad;
  pads.insert(pads.end(), window.pad.begin(), window.pad.end());
  return {Ints("kernel_shape", window.kernel), Ints("strides", window.stride), Ints("pads", pads),
          Ints("dilations", window.dilation), Int("group", groups)};
}

// ONNX has one axis before the channels and at least one behind them.
std::vector<int64_t> AsImages(const std::vector<int64_t>& dims, int axis) {
  std::vector<int64_t> images = {1};
  for (int i = 0; i < axis; ++i) images[0] = dims[i] == kOpen || images[0] == kOpen ? kOpen : images[0] * dims[i];
  images.insert(images.end(), dims.begin() + axis, dims.end());
  if (images.size() == 2) images.push_back(1);
  return images;
}

void ConvolutionLike(LayerWriter& layer, const char* op) {
  const ConvolutionParameter& param = layer.param().convolution_param();
  const int axis = layer.bottom_shape(0).CanonicalAxis(param.axis());
  const SpatialWindow window = WindowOf(layer, param, axis);
  // A depthwise layer's groups may be left to the number of channels.
  const int64_t groups = layer.type() == "Deconvolution" || layer.type() == "Convolution" || param.has_group()
                             ? param.group()
                             : layer.bottom_shape(0)[axis];
  std::vector<int64_t> weights = layer.blob_shape(0).dims();
  if (weights.size() == 2) weights.push_back(1);
  for (int i = 0; i < layer.bottoms(); ++i) {
    const std::vector<int64_t> dims = layer.bottom_dims(i), images = AsImages(dims, axis);
    std::vector<std::string> inputs = {images == dims ? layer.bottom(i) : layer.Reshape(layer.bottom(i), images),
                                       layer.Blob(0, "weight", Shape(weights))};
    if (param.bias_term()) inputs.push_back(layer.Blob(1, "bias"));
    const std::string result = layer.Add(op, inputs, AttributesOf(window, groups));
    layer.SetTop(i, images == dims ? result : layer.Reshape(result, layer.top_dims(i)));
  }
}

void Convolution(LayerWriter& layer) { ConvolutionLike(layer, "Conv"); }
void Deconvolution(LayerWriter& layer) { ConvolutionLike(layer, "ConvTranspose"); }

// Images of DeformConv fade to 0 around them. Those of DeformableConvolution end before their first row and column, and
// the last reach to one pixel behind them: positions there become those of the last, those outside farther ones.
std::string WithinImages(LayerWriter& layer, const SpatialWindow& window) {
  layer.ExpectFixedFrom(0, 2);
  const Shape &images = layer.bottom_shape(0), &offsets = layer.bottom_shape(1);
  const int64_t rows = offsets[2], columns = offsets[3], windows = rows * columns;
  std::vector<float> first(offsets.count(1)), end(first.size()), last(first.size()), far(first.size());
  for (int64_t i = 0; i < static_cast<int64_t>(first.size()); ++i) {
    const int64_t axis = i / windows % 2, place = i / windows / 2 % (window.kernel[0] * window.kernel[1]);
    const int64_t k = axis == 0 ? place / window.kernel[1] : place % window.kernel[1];
    const int64_t at = axis == 0 ? i % windows / columns : i % columns;
    const int64_t pixel = at * window.stride[axis] - window.pad[axis] + k * window.dilation[axis];
    first[i] = static_cast<float>(-pixel);
    end[i] = static_cast<float>(images[2 + static_cast<int>(axis)] - pixel);
    last[i] = end[i] - 1;
    far[i] = first[i] - 2;
  }
  const Shape shape = {1, offsets[1], rows, columns};
  const std::string given = layer.bottom(1);
  const std::string behind_first = layer.Add("GreaterOrEqual", {given, layer.Floats("first", shape, first)});
  const std::string before_end = layer.Add("Less", {given, layer.Floats("end", shape, end)});
  const std::string nearest = layer.Add("Min", {given, layer.Floats("last", shape, last)});
  return layer.Add("Where", {layer.Add("And", {behind_first, before_end}), nearest, layer.Floats("far", shape, far)});
}

void DeformableConvolution(LayerWriter& layer) {
  const bool modulated = layer.type() == "ModulatedDeformableConvolution";
  const DeformableConvolutionParameter& param =
      modulated ? layer.param().modulated_deformable_convolution_param() : layer.param().deformable_convolution_param();
  const SpatialWindow window = WindowOf(layer, param, 1);
  const std::string offsets = modulated ? layer.bottom(1) : WithinImages(layer, window);
  std::vector<std::string> inputs = {layer.bottom(0), layer.Blob(0, "weight"), offsets};
  if (param.bias_term()) inputs.push_back(layer.Blob(1, "bias"));
  if (layer.bottoms() == 3) {
    inputs.resize(4);
    inputs.push_back(layer.bottom(2));
  }
  std::vector<AttributeProto> attributes = AttributesOf(window, param.group());
  attributes.push_back(Int("offset_group", param.deformable_group()));
  layer.SetTop(0, layer.Add("DeformConv", inputs, attributes));
}

// starts and ends for each of `axes`.
std::string Cut(LayerWriter& layer, const std::vector<int64_t>& axes, const std::vector<int64_t>& starts,
                const std::vector<int64_t>& ends) {
  if (axes.empty()) return layer.bottom(0);
  return layer.Add("Slice", {layer.bottom(0), layer.Integers("starts", starts), layer.Integers("ends", ends),
                             layer.Integers("axes", axes)});
}

void Crop(LayerWriter& layer) {
  const CropParameter& param = layer.param().crop_param();
  const Shape& whole = layer.bottom_shape(0);
  const int first = whole.CanonicalAxis(param.axis());
  std::vector<int64_t> axes, starts, ends;
  for (int axis = first; axis < whole.axes(); ++axis) {
    const int64_t offset = param.offset_size() == 0 ? 0 : param.offset(param.offset_size() == 1 ? 0 : axis - first);
    if (offset == 0 && layer.top_dims(0)[axis] == layer.bottom_dims(0)[axis]) continue;
    layer.ExpectFixed(0, axis);
    layer.ExpectFixed(1, axis);
    axes.push_back(axis);
    starts.push_back(offset);
    ends.push_back(offset + layer.top_shape(0)[axis]);
  }
  layer.SetTop(0, Cut(layer, axes, starts, ends));
}

// The least scale from which every runtime computes that size, rounding down.
float ScaleOf(int64_t from, int64_t to) {
  auto scale = static_cast<float>(static_cast<double>(to) / static_cast<double>(from));
  while (double{scale} * static_cast<double>(from) < static_cast<double>(to)) scale = std::nextafter(scale, 2 * scale);
  return scale;
}

void Interp(LayerWriter& layer) {
  const InterpParameter& param = layer.param().interp_param();
  const Shape &images = layer.bottom_shape(0), &top = layer.top_shape(0);
  for (int i = 0; i < layer.bottoms(); ++i) layer.ExpectFixedFrom(i, 2);
  const int64_t begin = -int64_t{param.pad_beg()}, end = -int64_t{param.pad_end()};
  std::string value = layer.bottom(0);
  if (begin != 0 || end != 0) value = Cut(layer, {2, 3}, {begin, begin}, {images[2] - end, images[3] - end});
  const int64_t height = images[2] - begin - end, width = images[3] - begin - end;
  if (height != top[2] || width != top[3]) {
    const std::string scales = layer.Floats("scales", {4}, {1, 1, ScaleOf(height, top[2]), ScaleOf(width, top[3])});
    value = layer.Add("Resize", {value, "", scales},
                      {String("mode", "linear"), String("coordinate_transformation_mode", "align_corners")});
  }
  layer.SetTop(0, value);
}

// Elements go to where the indices of bottom 1 say, in planes of zeros.
void PutBack(LayerWriter& layer) {
  layer.ExpectFixedFrom(0, 2);
  std::vector<int64_t> planes = layer.bottom_dims(0);
  planes.resize(2);
  planes.push_back(layer.bottom_shape(0).count(2));
  const std::string values = layer.Reshape(layer.bottom(0), planes);
  const std::string indices =
      layer.Add("Cast", {layer.Reshape(layer.bottom(1), planes)}, {Int("to", TensorProto::INT64)});
  const std::string leading =
      layer.Add("Slice", {layer.Add("Shape", {values}), layer.Integers("first", {0}), layer.Integers("second", {2})});
  const std::string extents =
      layer.Add("Concat", {leading, layer.Integers("plane", {layer.top_shape(0).count(2)})}, {Int("axis", 0)});
  const std::string zeros = layer.Add("ConstantOfShape", {extents});
  const std::string spread = layer.Add("ScatterElements", {zeros, indices, values}, {Int("axis", 2)});
  layer.SetTop(0, layer.Reshape(spread, layer.top_dims(0)));
}

void Upsample(LayerWriter& layer) {
  if (layer.bottoms() > 1) return PutBack(layer);
  const UpsampleParameter& param = layer.param().upsample_param();
  const auto vertical = static_cast<float>(param.has_scale_h() ? param.scale_h() : param.scale());
  const auto horizontal = static_cast<float>(param.has_scale_w() ? param.scale_w() : param.scale());
  const std::string scales = layer.Floats("scales", {4}, {1, 1, vertical, horizontal});
  layer.SetTop(0, layer.Add("Resize", {layer.bottom(0), "", scales},
                            {String("mode", "nearest"), String("coordinate_transformation_mode", "asymmetric"),
                             String("nearest_mode", "floor")}));
}

// Elements apart from each other, or added to windows that may overlap, are the transpose of a convolution by ones.
void Unpooling(LayerWriter& layer) {
  if (layer.bottoms() > 1) return PutBack(layer);
  layer.ExpectFixedFrom(0, 1);
  const UnpoolingParameter& param = layer.param().unpooling_param();
  const bool apart = param.unpool() == UnpoolingParameter::MAX, divides = param.unpool() == UnpoolingParameter::AVE;
  const bool strides = param.has_stride_h(), pads = param.has_pad_h(), kernels = param.has_kernel_h();
  const PoolingWindow windows[] = {{apart     ? 1
                                    : kernels ? param.kernel_h()
                                              : param.kernel_size(),
                                    strides ? param.stride_h() : param.stride(), pads ? param.pad_h() : param.pad()},
                                   {apart     ? 1
                                    : kernels ? param.kernel_w()
                                              : param.kernel_size(),
                                    strides ? param.stride_w() : param.stride(), pads ? param.pad_w() : param.pad()}};
  std::vector<int64_t> kernel, stride, begin, end, missing;
  std::vector<int64_t> extents[2];  // of the windows
  for (int i = 0; i < 2; ++i) {
    const PoolingWindow& window = windows[i];
    const int64_t from = layer.bottom_shape(0)[2 + i], to = layer.top_shape(0)[2 + i];
    const int64_t behind = (from - 1) * window.stride + window.kernel - window.pad - to;
    kernel.push_back(window.kernel);
    stride.push_back(window.stride);
    begin.push_back(window.pad);
    end.push_back(std::max<int64_t>(behind, 0));
    missing.push_back(std::max<int64_t>(-behind, 0));
    for (int64_t at = 0; at < from; ++at) extents[i].push_back(RangeOf(to, window, at).padded);
  }
  std::string value = layer.bottom(0);
  if (divides) {
    std::vector<float> shares;
    for (const int64_t height : extents[0]) {
      for (const int64_t width : extents[1]) shares.push_back(1 / static_cast<float>(height * width));
    }
    const auto rows = static_cast<int64_t>(extents[0].size()), columns = static_cast<int64_t>(extents[1].size());
    value = layer.Add("Mul", {value, layer.Floats("shares", {1, 1, rows, columns}, shares)});
  }
  const int64_t channels = layer.bottom_shape(0)[1];
  const std::vector<float> ones(channels * kernel[0] * kernel[1], 1);
  value = layer.Add("ConvTranspose", {value, layer.Floats("ones", {channels, 1, kernel[0], kernel[1]}, ones)},
                    {Ints("kernel_shape", kernel), Ints("strides", stride),
                     Ints("pads", {begin[0], begin[1], end[0], end[1]}), Int("group", channels)});
  if (missing[0] > 0 || missing[1] > 0) {
    value = layer.Add("Pad", {value, layer.Integers("zeros", {0, 0, 0, 0, 0, 0, missing[0], missing[1]})});
  }
  layer.SetTop(0, value);
}

// The map of each image, in the order and from the middles of pixels that GridSample wants, times the result's places.
void SpatialTransformer(LayerWriter& layer) {
  layer.ExpectFixedFrom(0, 2);
  const Shape &images = layer.bottom_shape(0), &top = layer.top_shape(0);
  const int64_t images_open = layer.bottom_dims(1)[0], learnt = layer.bottom_shape(1).count(1);
  const auto given = GivenNumbersOf(layer.param().st_param());
  std::vector<float> places(learnt * 6), fixed(6);
  for (int i = 0, next = 0; i < 6; ++i) {
    const int to = (i + 3) % 6;  // columns first
    if (given[i]) {
      fixed[to] = *given[i];
    } else {
      places[next++ * 6 + to] = 1;
    }
  }
  fixed[2] += 1 / static_cast<float>(images[3]);
  fixed[5] += 1 / static_cast<float>(images[2]);
  const int64_t elements = top.count(2);
  std::vector<float> from(3 * elements, 1);
  for (int64_t i = 0; i < elements; ++i) {
    from[i] = 2 * static_cast<float>(i / top[3]) / static_cast<float>(top[2]) - 1;
    from[elements + i] = 2 * static_cast<float>(i % top[3]) / static_cast<float>(top[3]) - 1;
  }
  const std::string theta =
      layer.Add("Gemm", {layer.Reshape(layer.bottom(1), {images_open, learnt}),
                         layer.Floats("places", {learnt, 6}, places), layer.Floats("fixed", {6}, fixed)});
  const std::string maps = layer.Add("Reshape", {theta, layer.Integers("maps", {-1, 2, 3})});
  const std::string points = layer.Add("MatMul", {maps, layer.Floats("from", {3, elements}, from)});
  const std::string pairs = layer.Add("Transpose", {points}, {Ints("perm", {0, 2, 1})});
  // From -3 and 3 on all is outside of the image; places beyond whole numbers of 64 bits are taken for others by
  // runtimes.
  const std::string near = layer.Add("Clip", {pairs, layer.Number("least", -3), layer.Number("most", 3)});
  const std::string grid = layer.Add("Reshape", {near, layer.Integers("grid", {-1, top[2], top[3], 2})});
  layer.SetTop(0, layer.Add("GridSample", {layer.bottom(0), grid},
                            {String("mode", "bilinear"), String("padding_mode", "zeros"), Int("align_corners", 0)}));
}

}  // namespace

LayerTable VisionLayers() {
  return {{"AutoCrop", Crop},
          {"Convolution", Convolution},
          {"ConvolutionDepthwise", Convolution},
          {"Crop", Crop},
          {"Deconvolution", Deconvolution},
          {"DeformableConvolution", DeformableConvolution},
          {"DepthwiseConvolution", Convolution},
          {"Interp", Interp},
          {"ModulatedDeformableConvolution", DeformableConvolution},
          {"SpatialTransformer", SpatialTransformer},
          {"Unpooling", Unpooling},
          {"Upsample", Upsample}};
}

}  // namespace crema::onnx
