// Products of matrices, tables of vectors.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>

#include "onnx/folding.h"
#include "onnx/operator_table.h"

namespace crema::onnx {

namespace {

// A bias for each of `outputs`, of what broadcasting takes: [outputs], [1, outputs] or one number.
Constant BiasOf(const NodeReader& node, Constant bias, int64_t outputs, float factor) {
  if (bias.count() != 1 && (bias.count() != outputs || bias.shape[-1] != outputs)) {
    node.Refuse("its bias is " + bias.shape.ToString() + "; one number for each of " + std::to_string(outputs) +
                " outputs is possible");
  }
  std::vector<float> values(outputs);
  for (int64_t i = 0; i < outputs; ++i) values[i] = factor * bias.floats[bias.count() == 1 ? 0 : i];
  return Floats({outputs}, std::move(values));
}

// outputs x inputs; `bias` may be null.
Operand InnerProduct(NodeReader& node, const Operand& value, int axis, Constant weights, const Constant* bias) {
  LayerParameter layer = LayerOf("InnerProduct");
  InnerProductParameter* param = layer.mutable_inner_product_param();
  param->set_num_output(static_cast<uint32_t>(weights.shape[0]));
  param->mutable_weight_filler()->set_type("xavier");
  if (axis != 1) param->set_axis(axis);
  std::vector<Constant> blobs = {std::move(weights)};
  if (bias) {
    blobs.push_back(*bias);
  } else {
    param->set_bias_term(false);
  }
  return node.Add(std::move(layer), {value}, std::move(blobs));
}

const Constant& Matrix(const NodeReader& node, int i) {
  const Constant& weights = node.constant(i, "the matrix of weights");
  node.floats(i, "the matrix of weights");
  if (weights.shape.axes() != 2) node.Refuse("its weights are " + weights.shape.ToString() + "; a matrix is possible");
  return weights;
}

// alpha * A * B + beta * C.
void Gemm(NodeReader& node) {
  if (node.Int("transA", 0) != 0) node.Refuse("transA turns the batch; crema does not");
  Constant weights = Matrix(node, 1);
  if (node.Int("transB", 0) == 0) weights = Transposed(weights, {1, 0});
  const float alpha = node.Float("alpha", 1);
  if (alpha != 1) {
    for (float& weight : weights.floats) weight *= alpha;
  }
  const Operand rows = node.blob(0);
  if (rows.shape.axes() != 2) node.Refuse("reads " + rows.shape.ToString() + ", which is no matrix");
  Constant bias;
  if (node.has(2)) {
    node.floats(2, "the bias");
    bias = BiasOf(node, node.constant(2, "the bias"), weights.shape[0], node.Float("beta", 1));
  }
  node.Set(0, InnerProduct(node, rows, 1, std::move(weights), node.has(2) ? &bias : nullptr));
}

void ProductWithWeights(NodeReader& node) {
  const Operand rows = node.blob(0);
  const Constant weights = Transposed(Matrix(node, 1), {1, 0});
  // A bias is a node of its own.
  const NodeProto* follower = node.Follower("Add");
  Constant bias;
  for (int i = 0; follower && i < 2; ++i) {
    const Constant* addend = node.ConstantOf(*follower, i);
    if (!addend || addend->whole || addend->count() != weights.shape[0] || addend->shape.axes() > rows.shape.axes() ||
        addend->shape[-1] != weights.shape[0]) {
      continue;
    }
    bias = BiasOf(node, *addend, weights.shape[0], 1);
  }
  const bool has_bias = !bias.floats.empty();
  const Operand result = InnerProduct(node, rows, rows.shape.axes() - 1, weights, has_bias ? &bias : nullptr);
  if (has_bias) node.Absorb(*follower);
  node.Set(0, result);
}

// What a layer before turned the matrices of, for this node alone; nothing where that is not so.
std::optional<Operand> Unturned(NodeReader& node, int i) {
  const Operand& value = node.operand(i);
  if (value.is_constant() || !value.before.empty()) return std::nullopt;
  const LayerParameter* last = node.LastLayer(value.blob, "Permute", node.node().input(i));
  if (last == nullptr) return std::nullopt;
  std::vector<int> order(last->permute_param().order().begin(), last->permute_param().order().end());
  std::iter_swap(order.end() - 1, order.end() - 2);
  if (!std::is_sorted(order.begin(), order.end())) return std::nullopt;
  return node.TakeBack(*last);
}

// The number that the only reader of the node's result multiplies or divides it by, as a factor; null and 1 where there
// is none.
float FactorBehind(const NodeReader& node, int axes, const NodeProto** follower) {
  for (const char* op : {"Mul", "Div"}) {
    *follower = node.Follower(op);
    const bool divides = op[0] == 'D';
    for (int i = divides ? 1 : 0; *follower && i < 2; ++i) {
      const Constant* factor = node.ConstantOf(**follower, i);
      if (!factor || factor->whole || factor->count() != 1 || factor->shape.axes() > axes) continue;
      const float value = divides ? 1 / factor->floats[0] : factor->floats[0];
      if (std::isfinite(value)) return value;
    }
  }
  *follower = nullptr;
  return 1;
}

void ProductOfBlobs(NodeReader& node) {
  std::optional<Operand> unturned[2];
  for (const int i : {1, 0, 1}) {  // the last layer is the one that was read last
    if (!unturned[i]) unturned[i] = Unturned(node, i);
  }
  Operand factors[2];
  Shape before[2];
  bool vector[2] = {};
  for (int i = 0; i < 2; ++i) {
    Operand& factor = factors[i] = unturned[i] ? *unturned[i] : node.blob(i);
    if (factor.shape.axes() < 1) node.Refuse("multiplies a number; matrices and vectors are possible");
    // A row on the left, a column on the right.
    vector[i] = factor.shape.axes() == 1;
    if (vector[i])
      factor = node.Reshape(factor, i == 0 ? Shape{1, factor.shape[0]} : Shape{factor.shape[0], 1}, "axes");
    before[i] = Shape(std::vector<int64_t>(factor.shape.dims().begin(), factor.shape.dims().end() - 2));
  }
  bool fits = true;
  const Shape common = BroadcastShape(before[0], before[1], &fits);
  if (!fits) {
    node.Refuse("the axes before the matrices do not fit together: " + factors[0].shape.ToString() + " and " +
                factors[1].shape.ToString());
  }
  for (Operand& factor : factors) {
    std::vector<int64_t> dims = common.dims();
    dims.insert(dims.end(), {factor.shape[-2], factor.shape[-1]});
    factor = node.Stretched(factor, Shape(dims));
  }
  const int axes = common.axes() + (vector[0] ? 0 : 1) + (vector[1] ? 0 : 1);
  const NodeProto* follower = nullptr;
  const float scale = FactorBehind(node, axes, &follower);
  LayerParameter layer = LayerOf("MatMul");
  MatMulParameter* param = layer.mutable_matmul_param();
  if (unturned[0]) param->set_transpose_a(true);
  if (unturned[1]) param->set_transpose_b(true);
  if (scale != 1) param->set_scale(scale);
  Operand result = node.Add(std::move(layer), {factors[0], factors[1]}, {}, vector[0] || vector[1] ? "product" : "");
  if (vector[0] || vector[1]) {
    std::vector<int64_t> dims = common.dims();
    if (!vector[0]) dims.push_back(result.shape[-2]);
    if (!vector[1]) dims.push_back(result.shape[-1]);
    result = node.Reshape(result, Shape(dims));
  }
  if (follower) node.Absorb(*follower);
  node.Set(0, result);
}

void MatMul(NodeReader& node) {
  const bool weights = node.is_constant(1) && node.constant(1, "a factor").shape.axes() == 2;
  weights && !node.is_constant(0) && node.shape(0).axes() > 1 ? ProductWithWeights(node) : ProductOfBlobs(node);
}

// Letters name the axes of two inputs and of the result: "bhid,bhjd->bhij".
struct Axes {
  std::string first, second, result;
};

Axes ReadEquation(const NodeReader& node) {
  std::string equation = node.String("equation", "");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  const size_t comma = equation.find(','), arrow = equation.find("->");
  if (node.inputs() != 2 || comma == std::string::npos || arrow == std::string::npos || arrow < comma)
    node.Refuse("\"" + equation + "\" is no product of two inputs, written with its result");
  Axes axes{equation.substr(0, comma), equation.substr(comma + 1, arrow - comma - 1), equation.substr(arrow + 2)};
  const auto has = [](const std::string& names, char name) { return names.find(name) != std::string::npos; };
  for (const std::string* names : {&axes.first, &axes.second, &axes.result}) {
    for (const char name : *names) {
      const int inputs = (has(axes.first, name) ? 1 : 0) + (has(axes.second, name) ? 1 : 0);
      if (std::isalpha(static_cast<unsigned char>(name)) != 0 && std::count(names->begin(), names->end(), name) == 1 &&
          (has(axes.result, name) ? inputs > 0 : inputs == 2)) {
        continue;
      }
      node.Refuse("\"" + equation +
                  "\" has a form that crema does not know; a product over axes of both inputs is possible");
    }
  }
  return axes;
}

void Einsum(NodeReader& node) {
  const Axes axes = ReadEquation(node);
  const std::string* names[2] = {&axes.first, &axes.second};
  const auto has = [](const std::string& all, char name) { return all.find(name) != std::string::npos; };
  std::string both, own[2], summed;
  for (const char name : axes.result) {
    const bool first = has(axes.first, name), second = has(axes.second, name);
    (first && second ? both : own[first ? 0 : 1]) += name;
  }
  for (const char name : axes.first) summed += has(axes.result, name) ? "" : std::string(1, name);
  std::map<char, int64_t> extents;
  Operand factors[2];
  for (int i = 0; i < 2; ++i) {
    const Operand value = node.blob(i);
    if (value.shape.axes() != static_cast<int>(names[i]->size()))
      node.Refuse("names " + std::to_string(names[i]->size()) + " axes of " + value.shape.ToString());
    for (size_t axis = 0; axis < names[i]->size(); ++axis) {
      const auto [at, is_new] = extents.emplace((*names[i])[axis], value.shape[static_cast<int>(axis)]);
      if (at->second != value.shape[static_cast<int>(axis)]) node.Refuse("its inputs do not fit together");
    }
    std::vector<int> order;
    for (const char name : both + (i == 0 ? own[0] + summed : summed + own[1])) {
      order.push_back(static_cast<int>(names[i]->find(name)));
    }
    factors[i] = node.Permute(value, order, "permute");
  }
  const auto count = [&](const std::string& all) {
    int64_t product = 1;
    for (const char name : all) product *= extents[name];
    return product;
  };
  std::vector<int64_t> before, dims;
  for (const char name : both) before.push_back(extents[name]);
  for (int i = 0; i < 2; ++i) {
    dims = before;
    dims.insert(dims.end(), {count(i == 0 ? own[0] : summed), count(i == 0 ? summed : own[1])});
    factors[i] = node.Reshape(factors[i], Shape(dims), "matrices");
  }
  const std::string made = both + own[0] + own[1];
  dims.clear();
  for (const char name : made) dims.push_back(extents[name]);
  const Operand product =
      node.Reshape(node.Add(LayerOf("MatMul"), {factors[0], factors[1]}, {}, "product"), Shape(dims), "axes");
  std::vector<int> order;
  for (const char name : axes.result) order.push_back(static_cast<int>(made.find(name)));
  node.Set(0, node.Permute(product, order));
}

// Elements of an axis in any order: parts in which they follow one another, joined.
Operand Picked(NodeReader& node, const Operand& value, int axis, std::vector<int64_t> indices) {
  const int64_t extent = value.shape[axis];
  for (int64_t& index : indices) {
    if (index < 0) index += extent;
    if (index < 0 || index >= extent) node.Refuse("an index is outside of " + value.shape.ToString());
  }
  constexpr size_t kMostParts = 64;
  std::vector<Operand> parts;
  for (size_t begin = 0, end = 0; begin < indices.size(); begin = end) {
    while (end < indices.size() && indices[end] == indices[begin] + static_cast<int64_t>(end - begin)) ++end;
    if (parts.size() == kMostParts) node.Refuse("takes elements from more than 64 places; copy fewer in the model");
    parts.push_back(node.Cut(value, axis, indices[begin], static_cast<int64_t>(end - begin), "slice"));
  }
  if (parts.empty()) node.Refuse("takes no elements");
  if (parts.size() == 1) return parts[0];
  LayerParameter layer = LayerOf("Concat");
  if (axis != 1) layer.mutable_concat_param()->set_axis(axis);
  return node.Add(std::move(layer), parts, {}, "picked");
}

// Rows of a table, by what is computed; and parts of a blob, by constants.
void Gather(NodeReader& node) {
  if (!node.is_constant(1)) {
    const Constant& table = Matrix(node, 0);
    if (node.Axis(node.Int("axis", 0), 2) != 0) node.Refuse("looks up columns of its table; rows are possible");
    LayerParameter layer = LayerOf("Embed");
    EmbedParameter* param = layer.mutable_embed_param();
    param->set_input_dim(static_cast<uint32_t>(table.shape[0]));
    param->set_num_output(static_cast<uint32_t>(table.shape[1]));
    param->set_bias_term(false);
    return node.Set(0, node.Add(std::move(layer), {node.blob(1)}, {table}));
  }
  const Operand value = node.blob(0);
  const std::vector<int64_t>& indices = node.integers(1, "the indices");
  const int axis = node.Axis(node.Int("axis", 0), value.shape.axes());
  std::vector<int64_t> dims = value.shape.dims();
  const Shape& of_indices = node.constant(1, "the indices").shape;
  dims.erase(dims.begin() + axis);
  dims.insert(dims.begin() + axis, of_indices.dims().begin(), of_indices.dims().end());
  node.Set(0, node.Reshape(Picked(node, value, axis, indices), Shape(dims)));
}

}  // namespace

OperatorTable DenseOperators() { return {{"Einsum", Einsum}, {"Gather", Gather}, {"Gemm", Gemm}, {"MatMul", MatMul}}; }

}  // namespace crema::onnx
