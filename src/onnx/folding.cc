#include "onnx/folding.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace crema::onnx {

namespace {

constexpr int64_t kMostElements = int64_t{1} << 26;

int64_t ToWhole(double value) {
  constexpr double kLimit = 9.2e18;
  if (std::isnan(value)) return 0;
  if (value >= kLimit) return std::numeric_limits<int64_t>::max();
  if (value <= -kLimit) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

}  // namespace

int64_t CountOf(const NodeReader& node, const Shape& shape) {
  const int64_t count = CheckedCount(shape.dims());
  if (count < 0 || count > kMostElements || shape.axes() > Shape::kMaxAxes) {
    node.Refuse("makes a constant of " + shape.ToString() + ", which is too large for one");
  }
  return count;
}

void Append(double value, Constant* constant) {
  if (constant->whole) {
    constant->integers.push_back(ToWhole(value));
  } else {
    constant->floats.push_back(static_cast<float>(value));
  }
}

std::vector<int64_t> StridesOf(const Shape& shape) {
  std::vector<int64_t> strides;
  for (int d = 0; d < shape.axes(); ++d) strides.push_back(shape.count(d + 1));
  return strides;
}

namespace {

// Element i of `from` behind those of `to`, which holds the same kind.
void AppendFrom(const Constant& from, int64_t i, Constant* to) {
  if (to->whole) {
    to->integers.push_back(from.integers[i]);
  } else {
    to->floats.push_back(from.floats[i]);
  }
}

// Elements of `from` under another shape: dimension d of the result moves by strides[d] through it, from `first` on.
Constant Gathered(const Constant& from, const Shape& shape, int64_t first, const std::vector<int64_t>& strides) {
  Constant result{.shape = shape, .whole = from.whole};
  std::vector<int64_t> index(shape.axes(), 0);
  int64_t at = first;
  for (int64_t i = 0; i < shape.count(); ++i) {
    AppendFrom(from, at, &result);
    for (int d = shape.axes() - 1; d >= 0; --d) {
      at += strides[d];
      if (++index[d] < shape[d]) break;
      at -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
  return result;
}

Constant WithShape(Constant value, const Shape& shape) {
  value.shape = shape;
  return value;
}

// --- Formulas ---

// All inputs, one after the other.
Constant Combined(const NodeReader& node, bool truth, double (*formula)(double, double, bool)) {
  Constant result = node.constant(0, "its input");
  for (int k = 1; k < node.inputs(); ++k) {
    const Constant& other = node.constant(k, "its input");
    bool fits = true;
    const Shape shape = BroadcastShape(result.shape, other.shape, &fits);
    if (!fits) node.Refuse(result.shape.ToString() + " and " + other.shape.ToString() + " do not fit together");
    CountOf(node, shape);
    const Constant left = BroadcastTo(result, shape), right = BroadcastTo(other, shape);
    const bool both_whole = left.whole && right.whole;
    result = {.shape = shape, .whole = truth || both_whole};
    for (int64_t i = 0; i < shape.count(); ++i) Append(formula(left.value(i), right.value(i), both_whole), &result);
  }
  return result;
}

template <double (*formula)(double, double, bool), bool truth = false>
Constant Binary(const NodeReader& node) {
  return Combined(node, truth, formula);
}

double AddTo(double a, double b, bool) { return a + b; }
double Subtract(double a, double b, bool) { return a - b; }
double Multiply(double a, double b, bool) { return a * b; }
double Divide(double a, double b, bool whole) { return !whole ? a / b : b == 0 ? 0 : std::trunc(a / b); }
double Remainder(double a, double b, bool) { return b == 0 ? 0 : a - std::floor(a / b) * b; }
double Raise(double a, double b, bool) { return std::pow(a, b); }
double Smaller(double a, double b, bool) { return std::min(a, b); }
double Larger(double a, double b, bool) { return std::max(a, b); }
double IsEqual(double a, double b, bool) { return a == b; }
double IsGreater(double a, double b, bool) { return a > b; }
double IsLess(double a, double b, bool) { return a < b; }
double IsNotLess(double a, double b, bool) { return a >= b; }
double IsNotGreater(double a, double b, bool) { return a <= b; }
double Both(double a, double b, bool) { return a != 0 && b != 0; }
double Either(double a, double b, bool) { return a != 0 || b != 0; }

template <double (*formula)(double)>
Constant Unary(const NodeReader& node) {
  const Constant& value = node.constant(0, "its input");
  Constant result{.shape = value.shape, .whole = value.whole};
  for (int64_t i = 0; i < value.count(); ++i) Append(formula(value.value(i)), &result);
  return result;
}

double Negate(double a) { return -a; }
double Absolute(double a) { return std::abs(a); }
double Root(double a) { return std::sqrt(a); }
double Down(double a) { return std::floor(a); }
double Up(double a) { return std::ceil(a); }
double Exponential(double a) { return std::exp(a); }
double Sine(double a) { return std::sin(a); }
double Cosine(double a) { return std::cos(a); }
double Logarithm(double a) { return std::log(a); }
double Invert(double a) { return 1 / a; }
double IsNot(double a) { return a == 0; }

Constant Where(const NodeReader& node) {
  const Constant &which = node.constant(0, "its condition"), &a = node.constant(1, "its input"),
                 &b = node.constant(2, "its input");
  bool first_fits = true, second_fits = true;
  const Shape shape = BroadcastShape(BroadcastShape(a.shape, b.shape, &first_fits), which.shape, &second_fits);
  if (!first_fits || !second_fits || a.whole != b.whole || !which.whole) node.Refuse("its inputs do not fit together");
  CountOf(node, shape);
  const Constant condition = BroadcastTo(which, shape), left = BroadcastTo(a, shape), right = BroadcastTo(b, shape);
  Constant result{.shape = shape, .whole = a.whole};
  for (int64_t i = 0; i < shape.count(); ++i) AppendFrom(condition.integers[i] != 0 ? left : right, i, &result);
  return result;
}

// --- Sources ---

Constant ConstantNode(const NodeReader& node) {
  if (const auto tensor = node.Tensor("value")) return *tensor;
  if (node.has_attribute("value_float")) return Floats({}, {node.Float("value_float", 0)});
  if (node.has_attribute("value_int")) return WithShape(Integers({node.Int("value_int", 0)}), {});
  if (const auto values = node.Ints("value_ints")) return Integers(*values);
  if (const auto values = node.Floats("value_floats")) return Floats({static_cast<int64_t>(values->size())}, *values);
  node.Refuse("holds neither a tensor nor numbers that crema knows");
}

Constant ConstantOfShape(const NodeReader& node) {
  const Shape shape(node.integers(0, "the shape"));
  Constant value = node.Tensor("value").value_or(Floats({1}, {0}));
  if (value.count() != 1) node.Refuse("attribute value must hold one number");
  CountOf(node, shape);
  value.shape = {};
  return BroadcastTo(value, shape);
}

Constant Range(const NodeReader& node) {
  const double first = node.number(0, "the start"), limit = node.number(1, "the limit"),
               step = node.number(2, "the step");
  const double count = step == 0 ? -1 : std::max(0.0, std::ceil((limit - first) / step));
  if (!(count >= 0 && count <= static_cast<double>(kMostElements))) node.Refuse("its numbers make no range");
  Constant result{.shape = {static_cast<int64_t>(count)}, .whole = node.constant(0, "the start").whole};
  for (int64_t i = 0; i < result.count(); ++i) Append(first + static_cast<double>(i) * step, &result);
  return result;
}

// --- Structure ---

Constant Same(const NodeReader& node) { return node.constant(0, "its input"); }

Constant Cast(const NodeReader& node) {
  const Constant& value = node.constant(0, "its input");
  const int64_t type = node.Int("to", TensorProto::FLOAT);
  const bool whole = type != TensorProto::FLOAT && type != TensorProto::DOUBLE && type != TensorProto::FLOAT16 &&
                     type != TensorProto::BFLOAT16;
  Constant result{.shape = value.shape, .whole = whole};
  for (int64_t i = 0; i < value.count(); ++i) {
    Append(type == TensorProto::BOOL ? static_cast<double>(value.value(i) != 0) : value.value(i), &result);
  }
  return result;
}

Constant Concat(const NodeReader& node) {
  Constant first = node.constant(0, "its input");
  const int axis = node.Axis(node.Int("axis", 0), first.shape.axes());
  Shape shape = first.shape;
  int64_t extent = 0;
  for (int i = 0; i < node.inputs(); ++i) {
    const Constant& part = node.constant(i, "its input");
    Shape other = part.shape;
    if (other.axes() != shape.axes() || part.whole != first.whole) node.Refuse("its inputs do not fit together");
    extent += other[axis];
    other.set(axis, shape[axis]);
    if (other != first.shape) node.Refuse("its inputs do not fit together");
  }
  shape.set(axis, extent);
  CountOf(node, shape);
  Constant result{.shape = shape, .whole = first.whole};
  for (int64_t row = 0; row < shape.count(0, axis); ++row) {
    for (int i = 0; i < node.inputs(); ++i) {
      const Constant& part = node.constant(i, "its input");
      const int64_t width = part.shape.count(axis);
      for (int64_t k = 0; k < width; ++k) AppendFrom(part, row * width + k, &result);
    }
  }
  return result;
}

Constant Gather(const NodeReader& node) {
  const Constant& from = node.constant(0, "its input");
  const std::vector<int64_t>& indices = node.integers(1, "the indices");
  const int axis = node.Axis(node.Int("axis", 0), from.shape.axes());
  std::vector<int64_t> dims(from.shape.dims().begin(), from.shape.dims().begin() + axis);
  for (const int64_t extent : node.constant(1, "the indices").shape.dims()) dims.push_back(extent);
  dims.insert(dims.end(), from.shape.dims().begin() + axis + 1, from.shape.dims().end());
  Constant result{.shape = Shape(dims), .whole = from.whole};
  CountOf(node, result.shape);
  const int64_t extent = from.shape[axis], width = from.shape.count(axis + 1);
  for (int64_t row = 0; row < from.shape.count(0, axis); ++row) {
    for (const int64_t index : indices) {
      if (index < -extent || index >= extent) node.Refuse("index " + std::to_string(index) + " is outside its input");
      const int64_t at = (row * extent + (index < 0 ? index + extent : index)) * width;
      for (int64_t k = 0; k < width; ++k) AppendFrom(from, at + k, &result);
    }
  }
  return result;
}

Constant Slice(const NodeReader& node) {
  const Constant& from = node.constant(0, "its input");
  Shape shape = from.shape;
  std::vector<int64_t> strides = StridesOf(from.shape);
  int64_t first = 0;
  for (const SliceRange& range : SliceRanges(node)) {
    first += range.start * strides[range.axis];
    strides[range.axis] *= range.step;
    shape.set(range.axis, range.count);
  }
  return Gathered(from, shape, first, strides);
}

Constant Unsqueeze(const NodeReader& node) {
  const Constant& from = node.constant(0, "its input");
  return WithShape(from, UnsqueezedShape(node, from.shape));
}

Constant Squeeze(const NodeReader& node) {
  const Constant& from = node.constant(0, "its input");
  return WithShape(from, SqueezedShape(node, from.shape));
}

Constant Reshape(const NodeReader& node) {
  const Constant& from = node.constant(0, "its input");
  return WithShape(from, ReshapedTo(node, from.shape, node.integers(1, "the shape"), node.Int("allowzero", 0) != 0));
}

Constant Transpose(const NodeReader& node) {
  const Constant& from = node.constant(0, "its input");
  return Transposed(from, TransposeOrder(node, from.shape.axes()));
}

Constant Expand(const NodeReader& node) {
  const Constant& from = node.constant(0, "its input");
  bool fits = true;
  const Shape shape = BroadcastShape(from.shape, Shape(node.integers(1, "the shape")), &fits);
  if (!fits) node.Refuse("its input does not fit the shape");
  CountOf(node, shape);
  return BroadcastTo(from, shape);
}

}  // namespace

Shape BroadcastShape(const Shape& a, const Shape& b, bool* fits) {
  const int axes = std::max(a.axes(), b.axes());
  Shape shape(std::vector<int64_t>(axes, 1));
  for (int i = 1; i <= axes; ++i) {
    const int64_t x = i <= a.axes() ? a[-i] : 1, y = i <= b.axes() ? b[-i] : 1;
    *fits &= x == y || x == 1 || y == 1;
    shape.set(-i, x == 1 ? y : x);
  }
  return *fits ? shape : Shape();
}

Constant BroadcastTo(const Constant& value, const Shape& shape) {
  std::vector<int64_t> strides(shape.axes(), 0);
  const std::vector<int64_t> own = StridesOf(value.shape);
  for (int i = 1; i <= value.shape.axes(); ++i) {
    if (value.shape[-i] > 1) strides[shape.axes() - i] = own[value.shape.axes() - i];
  }
  return Gathered(value, shape, 0, strides);
}

Constant Transposed(const Constant& value, const std::vector<int>& order) {
  const std::vector<int64_t> own = StridesOf(value.shape);
  Shape shape = value.shape;
  std::vector<int64_t> strides;
  for (size_t i = 0; i < order.size(); ++i) {
    shape.set(static_cast<int>(i), value.shape[order[i]]);
    strides.push_back(own[order[i]]);
  }
  return Gathered(value, shape, 0, strides);
}

namespace {

FoldingTable Joined(FoldingTable formulas) {
  formulas.merge(TensorFoldings());
  return formulas;
}

}  // namespace

FoldingFunction FindFolding(const std::string& op) {
  static const FoldingTable table = Joined({{"Abs", Unary<Absolute>},
                                            {"Add", Binary<AddTo>},
                                            {"And", Binary<Both, true>},
                                            {"Cast", Cast},
                                            {"Ceil", Unary<Up>},
                                            {"Cos", Unary<Cosine>},
                                            {"Concat", Concat},
                                            {"Constant", ConstantNode},
                                            {"ConstantOfShape", ConstantOfShape},
                                            {"Div", Binary<Divide>},
                                            {"Equal", Binary<IsEqual, true>},
                                            {"Exp", Unary<Exponential>},
                                            {"Expand", Expand},
                                            {"Floor", Unary<Down>},
                                            {"Gather", Gather},
                                            {"Greater", Binary<IsGreater, true>},
                                            {"Identity", Same},
                                            {"GreaterOrEqual", Binary<IsNotLess, true>},
                                            {"Less", Binary<IsLess, true>},
                                            {"LessOrEqual", Binary<IsNotGreater, true>},
                                            {"Log", Unary<Logarithm>},
                                            {"Max", Binary<Larger>},
                                            {"Min", Binary<Smaller>},
                                            {"Mod", Binary<Remainder>},
                                            {"Mul", Binary<Multiply>},
                                            {"Neg", Unary<Negate>},
                                            {"Not", Unary<IsNot>},
                                            {"Or", Binary<Either, true>},
                                            {"Pow", Binary<Raise>},
                                            {"Range", Range},
                                            {"Reciprocal", Unary<Invert>},
                                            {"Reshape", Reshape},
                                            {"Slice", Slice},
                                            {"Sin", Unary<Sine>},
                                            {"Sqrt", Unary<Root>},
                                            {"Squeeze", Squeeze},
                                            {"Sub", Binary<Subtract>},
                                            {"Transpose", Transpose},
                                            {"Unsqueeze", Unsqueeze},
                                            {"Where", Where}});
  const auto at = table.find(op);
  return at == table.end() ? nullptr : at->second;
}

bool FoldNode(NodeReader& node) {
  const FoldingFunction fold = FindFolding(node.op());
  if (fold == nullptr) return false;
  for (int i = 0; i < node.inputs(); ++i) {
    if (node.has(i) && !node.is_constant(i)) return false;
  }
  Constant result = fold(node);
  // A weight that is repeated for each item of the batch is still one.
  const Constant* same = node.op() == "Identity" || node.op() == "Expand" ? &node.constant(0, "its input") : nullptr;
  result.name = same && same->shape.axes() == result.shape.axes() &&
                        (same->shape == result.shape || same->shape.count() == result.shape.count(1))
                    ? same->name
                    : "";
  node.SetConstant(0, std::move(result));
  return true;
}

}  // namespace crema::onnx
