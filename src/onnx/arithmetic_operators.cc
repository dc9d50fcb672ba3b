// Sums, products and maxima, of blobs and with constants. ONNX stretches extents of 1, counted from the last axis.
#include <algorithm>
#include <limits>

#include "onnx/folding.h"
#include "onnx/operator_table.h"

namespace crema::onnx {

namespace {

// The axes that a constant or blob runs along, where all others are 1.
struct AxisRun {
  int first = 0, count = 0;
  friend bool operator==(const AxisRun&, const AxisRun&) = default;
};

AxisRun RunOf(const Shape& value, int axes) {
  AxisRun run;
  for (int i = 0; i < value.axes(); ++i) {
    if (value[i] == 1) continue;
    const int axis = i + axes - value.axes();
    if (run.count == 0) run.first = axis;
    run.count = axis - run.first + 1;
  }
  return run;
}

// The part of a constant along the run, of whose axes some may have to be stretched.
Constant Along(Constant value, const AxisRun& run, const Shape& shape) {
  const std::vector<int64_t>& own = value.shape.dims();
  const auto end = own.end() - (shape.axes() - run.first - run.count);
  value.shape = Shape(std::vector<int64_t>(end - run.count, end));
  const Shape part(
      std::vector<int64_t>(shape.dims().begin() + run.first, shape.dims().begin() + run.first + run.count));
  if (value.shape == part) return value;
  return BroadcastTo(value, part);  // not an initializer any more
}

Shape Common(const NodeReader& node, const Shape& a, const Shape& b) {
  bool fits = true;
  const Shape shape = BroadcastShape(a, b, &fits);
  if (!fits || CheckedCount(shape.dims()) < 0)
    node.Refuse(a.ToString() + " and " + b.ToString() + " do not fit together");
  return shape;
}

Constant Mapped(Constant value, float (*formula)(float)) {
  if (value.whole) value.floats.assign(value.integers.begin(), value.integers.end());
  value.whole = false;
  std::transform(value.floats.begin(), value.floats.end(), value.floats.begin(), formula);
  return value;
}
float Same(float x) { return x; }
float Negated(float x) { return -x; }
float Inverted(float x) { return 1 / x; }

// --- With a constant ---

template <typename Parameter>
void SetRun(const AxisRun& run, Parameter* param) {
  if (run.first != 1) param->set_axis(run.first);
  if (run.count != 1) param->set_num_axes(run.count);
}

// The constant along the same axes that the only reader of a product adds; null where there is none.
const Constant* AddedBehind(const NodeReader& node, const NodeProto** follower, const AxisRun& run,
                            const Shape& shape) {
  *follower = node.Follower("Add");
  if (*follower == nullptr) return nullptr;
  for (int i = 0; i < 2; ++i) {
    const Constant* addend = node.ConstantOf(**follower, i);
    if (!addend || addend->whole || addend->shape.axes() > shape.axes()) continue;
    bool fits = true;
    const bool stretches = BroadcastShape(addend->shape, shape, &fits) != shape;
    if (fits && !stretches && RunOf(addend->shape, shape.axes()) == run) return addend;
  }
  return nullptr;
}

Operand Scaled(NodeReader& node, const Operand& value, const Constant& factor) {
  if (factor.count() == 1) return factor.floats[0] == 1 ? value : node.Power(value, factor.floats[0], 0);
  const AxisRun run = RunOf(factor.shape, value.shape.axes());
  LayerParameter layer = LayerOf("Scale");
  SetRun(run, layer.mutable_scale_param());
  std::vector<Constant> blobs = {Along(factor, run, value.shape)};
  const NodeProto* follower = nullptr;
  const Constant* addend = AddedBehind(node, &follower, run, value.shape);
  if (addend) {
    layer.mutable_scale_param()->set_bias_term(true);
    blobs.push_back(Along(*addend, run, value.shape));
  }
  // What was computed is no weight.
  if (blobs[0].name.empty()) Freeze(static_cast<int>(blobs.size()), &layer);
  const Operand result = node.Add(std::move(layer), {value}, std::move(blobs));
  if (addend) node.Absorb(*follower);
  return result;
}

Operand Shifted(NodeReader& node, const Operand& value, const Constant& shift) {
  if (shift.count() == 1) return shift.floats[0] == 0 ? value : node.Power(value, 1, shift.floats[0]);
  const AxisRun run = RunOf(shift.shape, value.shape.axes());
  LayerParameter layer = LayerOf("Bias");
  SetRun(run, layer.mutable_bias_param());
  Constant blob = Along(shift, run, value.shape);
  if (blob.name.empty()) Freeze(1, &layer);
  return node.Add(std::move(layer), {value}, {std::move(blob)});
}

// --- Of two blobs ---

Operand Combined(NodeReader& node, const std::vector<Operand>& values, EltwiseParameter::EltwiseOp operation,
                 const std::vector<float>& coefficients = {}, const std::string& role = {}) {
  LayerParameter layer = LayerOf("Eltwise");
  if (operation != EltwiseParameter::SUM) layer.mutable_eltwise_param()->set_operation(operation);
  for (const float coefficient : coefficients) layer.mutable_eltwise_param()->add_coeff(coefficient);
  return node.Add(std::move(layer), values, {}, role);
}

// Where `vector` is 1 but for a run of axes of `value`, which begins with the batch where it has one: a Scale or Bias
// with two bottoms. False where it is something else.
bool CombineAlong(NodeReader& node, const Operand& value, const Operand& vector, const char* type, Operand* result) {
  AxisRun run = RunOf(vector.shape, value.shape.axes());
  if (vector.shape.axes() == value.shape.axes() && vector.shape[0] == value.shape[0]) {
    run = {0, std::max(1, run.first + run.count)};
  }
  std::vector<int64_t> part;
  for (int axis = run.first; axis < run.first + run.count; ++axis) {
    part.push_back(value.shape[axis]);
    if (vector.shape[axis - value.shape.axes()] != value.shape[axis]) return false;
  }
  const Operand flat = node.Reshape(vector, Shape(part), "vector");
  LayerParameter layer = LayerOf(type);
  if (layer.type() == "Scale" && run.first != 1) layer.mutable_scale_param()->set_axis(run.first);
  if (layer.type() == "Bias" && run.first != 1) layer.mutable_bias_param()->set_axis(run.first);
  *result = node.Add(std::move(layer), {value, flat});
  return true;
}

Operand Combined(NodeReader& node, const Operand& a, const Operand& b, EltwiseParameter::EltwiseOp operation) {
  const Shape shape = Common(node, a.shape, b.shape);
  const char* type = operation == EltwiseParameter::SUM    ? "Bias"
                     : operation == EltwiseParameter::PROD ? "Scale"
                                                           : nullptr;
  Operand result;
  if (type && a.shape != b.shape && a.shape == shape && CombineAlong(node, a, b, type, &result)) return result;
  if (type && a.shape != b.shape && b.shape == shape && CombineAlong(node, b, a, type, &result)) return result;
  return Combined(node, {node.Stretched(a, shape), node.Stretched(b, shape)}, operation);
}

// Which of two inputs is constant, if one is; the blob is stretched to what they give together.
struct WithConstant {
  const Constant* constant = nullptr;
  Operand value;
  bool constant_first = false;
};

WithConstant SplitInputs(NodeReader& node) {
  WithConstant inputs;
  inputs.constant_first = node.is_constant(0);
  if (!node.is_constant(0) && !node.is_constant(1)) return inputs;
  inputs.constant = &node.constant(inputs.constant_first ? 0 : 1, "its input");
  inputs.value = node.blob(inputs.constant_first ? 1 : 0);
  inputs.value = node.Stretched(inputs.value, Common(node, inputs.value.shape, inputs.constant->shape));
  return inputs;
}

void Add(NodeReader& node) {
  const WithConstant with = SplitInputs(node);
  node.Set(0, with.constant ? Shifted(node, with.value, Mapped(*with.constant, Same))
                            : Combined(node, node.blob(0), node.blob(1), EltwiseParameter::SUM));
}

void Sub(NodeReader& node) {
  const WithConstant with = SplitInputs(node);
  if (with.constant && with.constant_first) {
    if (with.constant->count() == 1)
      return node.Set(0, node.Power(with.value, -1, static_cast<float>(with.constant->value(0))));
    return node.Set(0, Shifted(node, node.Power(with.value, -1, 0, 1, "minus"), Mapped(*with.constant, Same)));
  }
  if (with.constant) return node.Set(0, Shifted(node, with.value, Mapped(*with.constant, Negated)));
  const Operand a = node.blob(0), b = node.blob(1);
  if (a.shape == b.shape) return node.Set(0, Combined(node, {a, b}, EltwiseParameter::SUM, {1, -1}));
  node.Set(0, Combined(node, a, node.Power(b, -1, 0, 1, "minus"), EltwiseParameter::SUM));
}

// x * sigmoid(x), where nothing else reads the sigmoid.
bool IsSwish(NodeReader& node) {
  for (int i = 0; i < 2; ++i) {
    const Operand &value = node.operand(1 - i), &gate = node.operand(i);
    LayerParameter* last = node.LastLayer(gate.blob, "Sigmoid", node.node().input(i));
    if (last == nullptr || last->bottom(0) != value.blob) continue;
    last->set_type("Swish");
    last->clear_sigmoid_param();
    node.Set(0, gate);
    return true;
  }
  return false;
}

void Mul(NodeReader& node) {
  const WithConstant with = SplitInputs(node);
  if (with.constant) return node.Set(0, Scaled(node, with.value, Mapped(*with.constant, Same)));
  if (!IsSwish(node)) node.Set(0, Combined(node, node.blob(0), node.blob(1), EltwiseParameter::PROD));
}

void Div(NodeReader& node) {
  const WithConstant with = SplitInputs(node);
  if (with.constant && with.constant_first) {
    return node.Set(0, Scaled(node, node.Power(with.value, 1, 0, -1, "inverse"), Mapped(*with.constant, Same)));
  }
  if (with.constant) return node.Set(0, Scaled(node, with.value, Mapped(*with.constant, Inverted)));
  const Operand inverse = node.Power(node.blob(1), 1, 0, -1, "inverse");
  node.Set(0, Combined(node, node.blob(0), inverse, EltwiseParameter::PROD));
}

void Pow(NodeReader& node) {
  if (!node.is_constant(0))
    return node.Set(0, node.Power(node.blob(0), 1, 0, static_cast<float>(node.number(1, "the exponent"))));
  LayerParameter layer = LayerOf("Exp");
  layer.mutable_exp_param()->set_base(static_cast<float>(node.number(0, "the base")));
  node.Set(0, node.Add(std::move(layer), {node.blob(1)}));
}

// A sum of any number of inputs, each times `factor`.
void SumOf(NodeReader& node, float factor) {
  Shape shape = node.shape(0);
  for (int i = 1; i < node.inputs(); ++i) shape = Common(node, shape, node.shape(i));
  std::vector<Operand> terms;
  for (int i = 0; i < node.inputs(); ++i) terms.push_back(node.Stretched(node.blob(i), shape));
  if (terms.size() == 1) return node.Set(0, terms[0]);
  node.Set(0, Combined(node, terms, EltwiseParameter::SUM,
                       factor == 1 ? std::vector<float>() : std::vector<float>(terms.size(), factor)));
}

void Sum(NodeReader& node) { SumOf(node, 1); }
void Mean(NodeReader& node) { SumOf(node, 1.0F / static_cast<float>(std::max(1, node.inputs()))); }

// The maximum, or that of negative values.
void Extreme(NodeReader& node, bool maximum) {
  constexpr float kMost = std::numeric_limits<float>::max();
  if (node.inputs() == 2 && node.is_constant(0) != node.is_constant(1)) {
    const WithConstant with = SplitInputs(node);
    if (with.constant->count() == 1) {
      const auto bound = static_cast<float>(with.constant->value(0));
      LayerParameter layer = LayerOf(maximum && bound == 0 ? "ReLU" : "Clip");
      if (layer.type() == "Clip") {
        layer.mutable_clip_param()->set_min(maximum ? bound : -kMost);
        layer.mutable_clip_param()->set_max(maximum ? kMost : bound);
      }
      return node.Set(0, node.Add(std::move(layer), {with.value}));
    }
  }
  const auto term = [&](int i) { return maximum ? node.blob(i) : node.Power(node.blob(i), -1, 0, 1, "minus"); };
  Operand result = term(0);
  for (int i = 1; i < node.inputs(); ++i) {
    const Operand other = term(i);
    const Shape shape = Common(node, result.shape, other.shape);
    result = Combined(node, {node.Stretched(result, shape), node.Stretched(other, shape)}, EltwiseParameter::MAX, {},
                      maximum && i + 1 == node.inputs() ? "" : "max");
  }
  node.Set(0, maximum ? result : node.Power(result, -1, 0));
}

void Max(NodeReader& node) { Extreme(node, true); }
void Min(NodeReader& node) { Extreme(node, false); }

// 1 or 0, which a Cast then makes floats.
void Greater(NodeReader& node) {
  LayerParameter layer = LayerOf("Threshold");
  layer.mutable_threshold_param()->set_threshold(static_cast<float>(node.number(1, "the threshold")));
  node.Set(0, node.Add(std::move(layer), {node.blob(0)}));
}

void Expand(NodeReader& node) {
  const Operand value = node.blob(0);
  node.Set(0, node.Stretched(value, Common(node, value.shape, Shape(node.integers(1, "the shape")))));
}

}  // namespace

OperatorTable ArithmeticOperators() {
  return {{"Add", Add}, {"Div", Div}, {"Expand", Expand}, {"Greater", Greater}, {"Max", Max}, {"Mean", Mean},
          {"Min", Min}, {"Mul", Mul}, {"Pow", Pow},       {"Sub", Sub},         {"Sum", Sum}};
}

}  // namespace crema::onnx
