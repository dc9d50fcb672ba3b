// Layers that multiply and add learnt parameters, and what they have in common with others: numbers by element.
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "onnx/layer_table.h"
#include "ops/normalization/normalization.h"

namespace crema::onnx {

namespace {

// Blob 0 with each row divided by its length.
std::string UnitRows(LayerWriter& layer) {
  NormalizeProblem problem;
  problem.images = layer.blob_shape(0)[0];
  problem.channels = layer.blob_shape(0)[1];
  std::vector<float> weights = layer.BlobValues(0);
  const float one = 1;
  NormalizeForward(problem, weights.data(), &one, weights.data(), nullptr);
  return layer.Floats("weight", layer.blob_shape(0), weights);
}

// Everything of bottom 0 from `axis` on as rows, times the weights. `unit`: each row of them divided by its length.
void Product(LayerWriter& layer, int32_t from, bool unit, bool transpose, bool bias) {
  const Shape& shape = layer.bottom_shape(0);
  const int axis = shape.CanonicalAxis(from);
  std::string rows = layer.bottom(0);
  if (shape.axes() != 2 || axis != 1) rows = layer.Add("Flatten", {rows}, {Int("axis", axis)});
  std::vector<std::string> inputs = {rows, unit ? UnitRows(layer) : layer.Blob(0, "weight")};
  if (bias) inputs.push_back(layer.Blob(1, "bias"));
  const std::string product = layer.Add("Gemm", inputs, {Int("transB", transpose ? 0 : 1)});
  layer.SetTop(0, axis == 1 ? product : layer.Reshape(product, layer.top_dims(0)));
}

void InnerProduct(LayerWriter& layer) {
  const InnerProductParameter& param = layer.param().inner_product_param();
  Product(layer, param.axis(), param.normalize(), param.transpose(), param.bias_term());
}

void MarginInnerProduct(LayerWriter& layer) {
  Product(layer, layer.param().margin_inner_product_param().axis(), true, false, false);
  if (layer.tops() == 2) layer.SetTop(1, layer.Floats("lambda", {1}, {0}));
}

void MatMul(LayerWriter& layer) {
  const MatMulParameter& param = layer.param().matmul_param();
  std::vector<std::string> factors;
  for (int i = 0; i < 2; ++i) {
    factors.push_back(layer.bottom(i));
    if (!(i == 0 ? param.transpose_a() : param.transpose_b())) continue;
    std::vector<int64_t> order(layer.bottom_shape(i).axes());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order.back(), order[order.size() - 2]);
    factors.back() = layer.Add("Transpose", {factors.back()}, {Ints("perm", order)});
  }
  layer.SetTop(0, layer.Affine(layer.Add("MatMul", factors), param.scale(), 0));
}

void Embed(LayerWriter& layer) {
  const std::string rows = layer.Add("Cast", {layer.bottom(0)}, {Int("to", TensorProto::INT64)});
  std::string value = layer.Add("Gather", {layer.Blob(0, "weight"), rows});
  if (layer.param().embed_param().bias_term()) value = layer.Add("Add", {value, layer.Blob(1, "bias")});
  layer.SetTop(0, value);
}

void WriteParameter(LayerWriter& layer) { layer.SetTop(0, layer.Blob(0, "weight")); }

// A vector that runs along axes of bottom 0 from `axis` on, with ones behind it: broadcasting counts from the last
// axis.
std::vector<int64_t> Stretched(const LayerWriter& layer, std::vector<int64_t> vector, int axis) {
  const Shape& shape = layer.bottom_shape(0);
  if (vector.empty()) return {};
  vector.resize(shape.axes() - shape.CanonicalAxis(axis), 1);
  return vector;
}

// Bottom 1 as that vector, or else blob 0.
std::string Vector(LayerWriter& layer, const std::string& role, int axis) {
  if (layer.bottoms() == 1) return layer.Blob(0, role, Shape(Stretched(layer, layer.blob_shape(0).dims(), axis)));
  const std::vector<int64_t> dims = layer.bottom_dims(1), stretched = Stretched(layer, dims, axis);
  return stretched == dims ? layer.bottom(1) : layer.Reshape(layer.bottom(1), stretched);
}

void Scale(LayerWriter& layer) {
  const ScaleParameter& param = layer.param().scale_param();
  std::string value = layer.Add("Mul", {layer.bottom(0), Vector(layer, "scale", param.axis())});
  if (param.bias_term()) {
    const int blob = layer.bottoms() == 1 ? 1 : 0;
    const Shape shape(Stretched(layer, layer.blob_shape(blob).dims(), param.axis()));
    value = layer.Add("Add", {value, layer.Blob(blob, "bias", shape)});
  }
  layer.SetTop(0, value);
}

void Bias(LayerWriter& layer) {
  layer.SetTop(0, layer.Add("Add", {layer.bottom(0), Vector(layer, "bias", layer.param().bias_param().axis())}));
}

// Bottoms: a scale for each channel of each image, x, y.
void Axpy(LayerWriter& layer) {
  std::vector<int64_t> dims = layer.bottom_dims(1);
  std::fill(dims.begin() + 2, dims.end(), 1);
  const std::string scale = dims == layer.bottom_dims(0) ? layer.bottom(0) : layer.Reshape(layer.bottom(0), dims);
  layer.SetTop(0, layer.Add("Add", {layer.Add("Mul", {layer.bottom(1), scale}), layer.bottom(2)}));
}

void Eltwise(LayerWriter& layer) {
  const EltwiseParameter& param = layer.param().eltwise_param();
  std::vector<std::string> terms;
  for (int i = 0; i < layer.bottoms(); ++i) {
    const bool weighted = param.operation() == EltwiseParameter::SUM && param.coeff_size() > 0;
    terms.push_back(layer.Affine(layer.bottom(i), weighted ? param.coeff(i) : 1, 0));
  }
  if (param.operation() == EltwiseParameter::MAX) return layer.SetTop(0, layer.Add("Max", terms));
  std::string value = terms[0];
  const char* op = param.operation() == EltwiseParameter::PROD ? "Mul" : "Add";
  for (size_t i = 1; i < terms.size(); ++i) value = layer.Add(op, {value, terms[i]});
  layer.SetTop(0, value);
}

}  // namespace

LayerTable DenseLayers() {
  return {{"Axpy", Axpy},
          {"Bias", Bias},
          {"Eltwise", Eltwise},
          {"Embed", Embed},
          {"InnerProduct", InnerProduct},
          {"MarginInnerProduct", MarginInnerProduct},
          {"MatMul", MatMul},
          {"Parameter", WriteParameter},
          {"Scale", Scale}};
}

}  // namespace crema::onnx
