// Images of another size. What repeats pixels is an Upsample, what lays corners onto corners an Interp; every other
// resizing is a product with a matrix for each axis.
#include <algorithm>
#include <cmath>

#include "onnx/operator_table.h"

namespace crema::onnx {

namespace {

struct Resizing {
  std::string mode, coordinates, nearest;
  double cubic = -0.75;        // of mode cubic
  std::vector<double> scales;  // of each axis
  Shape from, to;

  // Where pixel `i` of an axis comes from.
  double Source(int axis, int64_t i) const {
    const double in = static_cast<double>(from[axis]), out = static_cast<double>(to[axis]);
    const auto x = static_cast<double>(i);
    if (coordinates == "align_corners") return out == 1 ? 0 : x * (in - 1) / (out - 1);
    if (coordinates == "asymmetric") return x / scales[axis];
    if (coordinates == "pytorch_half_pixel" && out == 1) return 0;
    return (x + 0.5) / scales[axis] - 0.5;
  }
  int64_t Nearest(int axis, int64_t i) const {
    const double x = Source(axis, i), down = std::floor(x);
    const double rounded = nearest == "floor"                ? down
                           : nearest == "ceil"               ? std::ceil(x)
                           : nearest == "round_prefer_floor" ? std::ceil(x - 0.5)
                                                             : std::floor(x + 0.5);
    return std::clamp<int64_t>(static_cast<int64_t>(rounded), 0, from[axis] - 1);
  }
  // How often pixels are repeated; 0 where that is not all.
  int64_t Repeats(int axis) const {
    const int64_t times = to[axis] / from[axis];
    if (mode != "nearest" || times * from[axis] != to[axis]) return 0;
    for (int64_t i = 0; i < to[axis]; ++i) {
      if (Nearest(axis, i) != i / times) return 0;
    }
    return times;
  }
};

// The inputs of Resize from operator set 11 on are: the image, roi, scales, sizes; before that, and of Upsample, the
// image and scales.
Resizing ReadResizing(const NodeReader& node, const Shape& from) {
  Resizing resizing;
  resizing.mode = node.String("mode", "nearest");
  resizing.from = resizing.to = from;
  const bool new_form = node.op() == "Resize" && node.operator_set() >= 11;
  // As Upsample, and Resize before 11, has it.
  resizing.coordinates = new_form ? node.String("coordinate_transformation_mode", "half_pixel") : "asymmetric";
  resizing.nearest = new_form ? node.String("nearest_mode", "round_prefer_floor") : "floor";
  resizing.cubic = node.Float("cubic_coeff_a", -0.75F);
  if (resizing.mode != "nearest" && resizing.mode != "linear" && resizing.mode != "cubic")
    node.Refuse("mode " + resizing.mode + " is none of crema's; nearest, linear and cubic are");
  if (node.Int("exclude_outside", 0) != 0) node.Refuse("exclude_outside is not possible");
  const std::string& coordinates = resizing.coordinates;
  if (coordinates != "half_pixel" && coordinates != "pytorch_half_pixel" && coordinates != "align_corners" &&
      coordinates != "asymmetric") {
    node.Refuse("coordinate_transformation_mode " + coordinates + " is none that crema can");
  }
  if (node.Int("antialias", 0) != 0 || node.String("keep_aspect_ratio_policy", "stretch") != "stretch") {
    node.Refuse("antialias and keep_aspect_ratio_policy are not possible");
  }
  const int axes = from.axes();
  resizing.scales.assign(axes, 1);
  // In the order of the scales or sizes.
  const std::vector<int64_t> named = node.Ints("axes").value_or(std::vector<int64_t>());
  node.Axes(named, axes);  // refuses what are none, or one twice
  const auto axis_of = [&](int i) { return named.empty() ? i : node.Axis(named[static_cast<size_t>(i)], axes); };
  const size_t count = named.empty() ? static_cast<size_t>(axes) : named.size();
  const int scales = new_form ? 2 : 1;
  std::vector<double> factors;
  if (const auto attribute = node.Floats("scales")) {
    factors.assign(attribute->begin(), attribute->end());
  } else if (node.has(scales) && node.constant(scales, "the scales").count() > 0) {
    const std::vector<float>& given = node.floats(scales, "the scales");
    factors.assign(given.begin(), given.end());
  }
  const bool sized = factors.empty();
  const std::vector<int64_t> sizes = sized ? node.integers(3, "the sizes") : std::vector<int64_t>();
  if ((sized ? sizes.size() : factors.size()) != count)
    node.Refuse("its scales or sizes do not fit " + from.ToString());
  for (size_t i = 0; i < count; ++i) {
    const int axis = axis_of(static_cast<int>(i));
    const double extent =
        sized ? static_cast<double>(sizes[i]) : std::floor(static_cast<double>(from[axis]) * factors[i]);
    if (!(extent >= 1 && extent <= 1 << 20))
      node.Refuse("would make axis " + std::to_string(axis) + " of " + from.ToString() + " impossible");
    resizing.to.set(axis, static_cast<int64_t>(extent));
    resizing.scales[axis] = sized ? extent / static_cast<double>(from[axis]) : factors[i];
  }
  return resizing;
}

Operand Repeated(NodeReader& node, const Operand& value, int64_t vertical, int64_t horizontal) {
  LayerParameter layer = LayerOf("Upsample");
  UpsampleParameter* param = layer.mutable_upsample_param();
  if (vertical == horizontal) {
    param->set_scale(static_cast<uint32_t>(vertical));
  } else {
    param->set_scale_h(static_cast<uint32_t>(vertical));
    param->set_scale_w(static_cast<uint32_t>(horizontal));
  }
  return node.Add(std::move(layer), {value});
}

// The shares of four neighbours, of which those outside are the pixel at the edge.
void AddCubic(const Resizing& resizing, int axis, int64_t i, float* row) {
  const double at = resizing.Source(axis, i), left = std::floor(at), a = resizing.cubic;
  for (int k = -1; k <= 2; ++k) {
    const double d = std::abs(at - left - k);
    const double share = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    row[std::clamp<int64_t>(static_cast<int64_t>(left) + k, 0, resizing.from[axis] - 1)] += static_cast<float>(share);
  }
}

// Row i: what pixel i is made of.
Constant MatrixOf(const Resizing& resizing, int axis) {
  const int64_t in = resizing.from[axis], out = resizing.to[axis];
  std::vector<float> weights(in * out, 0);
  for (int64_t i = 0; i < out; ++i) {
    float* row = weights.data() + i * in;
    if (resizing.mode == "nearest") {
      row[resizing.Nearest(axis, i)] = 1;
      continue;
    }
    if (resizing.mode == "cubic") {
      AddCubic(resizing, axis, i, row);
      continue;
    }
    const double at = std::clamp(resizing.Source(axis, i), 0.0, static_cast<double>(in - 1));
    const auto left = static_cast<int64_t>(at);
    const auto share = static_cast<float>(at - static_cast<double>(left));
    row[left] += 1 - share;
    row[std::min(left + 1, in - 1)] += share;
  }
  return Floats({out, in}, std::move(weights));
}

Operand Multiplied(NodeReader& node, Operand value, const Resizing& resizing, int axis) {
  std::vector<int> order;
  for (int i = 0; i < value.shape.axes(); ++i) order.push_back(i);
  std::swap(order[axis], order.back());
  value = node.Permute(value, order, "permute");
  LayerParameter layer = LayerOf("InnerProduct");
  InnerProductParameter* param = layer.mutable_inner_product_param();
  param->set_num_output(static_cast<uint32_t>(resizing.to[axis]));
  param->set_bias_term(false);
  param->set_axis(value.shape.axes() - 1);
  Freeze(1, &layer);
  value = node.Add(std::move(layer), {value}, {MatrixOf(resizing, axis)});
  return node.Permute(value, order, "permute");
}

void Resize(NodeReader& node) {
  Operand value = node.blob(0);
  const Resizing resizing = ReadResizing(node, value.shape);
  const Shape &from = resizing.from, &to = resizing.to;
  if (from == to) return node.Set(0, value);
  const bool images = from.axes() == 4 && from[0] == to[0] && from[1] == to[1];
  if (images && resizing.Repeats(2) > 0 && resizing.Repeats(3) > 0) {
    return node.Set(0, Repeated(node, value, resizing.Repeats(2), resizing.Repeats(3)));
  }
  if (images && resizing.mode == "linear" && resizing.coordinates == "align_corners") {
    LayerParameter layer = LayerOf("Interp");
    layer.mutable_interp_param()->set_height(static_cast<int32_t>(to[2]));
    layer.mutable_interp_param()->set_width(static_cast<int32_t>(to[3]));
    return node.Set(0, node.Add(std::move(layer), {value}));
  }
  for (int axis = 0; axis < from.axes(); ++axis) {
    if (from[axis] == to[axis]) continue;
    if (axis == 0) node.Refuse("resizes the batch");
    if (from[axis] * to[axis] > 1 << 26)
      node.Refuse("would need a matrix of " + from.ToString() + " to " + to.ToString());
    value = Multiplied(node, value, resizing, axis);
  }
  node.Set(0, value);
}

}  // namespace

OperatorTable ResizeOperators() { return {{"Resize", Resize}, {"Upsample", Resize}}; }

}  // namespace crema::onnx
