// Operators that bring values to a common scale.
#include <algorithm>

#include "onnx/operator_table.h"

namespace crema::onnx {

namespace {

bool AreAll(const std::vector<float>& values, float wanted) {
  return std::all_of(values.begin(), values.end(), [&](float value) { return value == wanted; });
}

// Blobs as Caffe has them: sums of what passes weighed, and the sum of their weights. That sum is what a long training
// leaves, so that statistics go on to move as slowly as they did.
std::vector<Constant> RunningBlobs(Constant mean, Constant variance, float fraction) {
  const float weight = fraction > 0 && fraction < 1 ? 1 / (1 - fraction) : 1;
  for (float& value : mean.floats) value *= weight;
  for (float& value : variance.floats) value *= weight;
  return {std::move(mean), std::move(variance), Floats({1}, {weight})};
}

void BatchNormalization(NodeReader& node) {
  if (node.Int("spatial", 1) == 0) node.Refuse("spatial: 0 normalises each pixel by itself; crema does so by channel");
  if (node.Int("training_mode", 0) != 0) {
    node.Note("is exported for training; with its running statistics it is taken for use");
  }
  for (int i = 1; i < 5; ++i) {
    if (i < node.outputs() && node.wanted(i)) node.Refuse("its statistics are read, which crema keeps to itself");
    node.floats(i, "scale, bias and statistics");
  }
  const Operand value = node.blob(0);
  LayerParameter norm = LayerOf("BatchNorm");
  BatchNormParameter* param = norm.mutable_batch_norm_param();
  const float eps = node.Float("epsilon", 1e-5F), fraction = node.Float("momentum", 0.9F);
  if (eps != 1e-5F) param->set_eps(eps);
  const bool fades = fraction > 0 && fraction < 1;
  if (fades) param->set_moving_average_fraction(fraction);
  Operand result = node.Add(std::move(norm), {value},
                            RunningBlobs(node.constant(3, "the mean"), node.constant(4, "the variance"), fraction));
  const Constant &scale = node.constant(1, "the scale"), &bias = node.constant(2, "the bias");
  if (!AreAll(scale.floats, 1) || !AreAll(bias.floats, 0)) {
    LayerParameter layer = LayerOf("Scale");
    layer.mutable_scale_param()->set_bias_term(true);
    result = node.Add(std::move(layer), {result}, {scale, bias}, "scale");
  }
  node.Set(0, result);
}

// Sets what LayerNorm and GroupNorm have in common; returns the blobs.
template <typename Parameter>
std::vector<Constant> ReadAffine(NodeReader& node, const Shape& shape, Parameter* param) {
  const float eps = node.Float("epsilon", 1e-5F);
  if (eps != 1e-5F) param->set_eps(eps);
  std::vector<Constant> blobs = {node.constant(1, "the scale")};
  if (node.has(2)) blobs.push_back(node.constant(2, "the bias"));
  for (size_t i = 0; i < blobs.size(); ++i) {
    node.floats(static_cast<int>(i) + 1, "scale and bias");
    if (blobs[i].shape != shape) {
      node.Refuse("its scale or bias is " + blobs[i].shape.ToString() + "; " + shape.ToString() + " is possible");
    }
  }
  if (blobs.size() == 1) param->set_bias_term(false);
  if (!AreAll(blobs[0].floats, 1) || (blobs.size() > 1 && !AreAll(blobs[1].floats, 0))) return blobs;
  param->clear_bias_term();
  param->set_scale_term(false);
  return {};
}

void LayerNormalization(NodeReader& node) {
  for (int i = 1; i < node.outputs(); ++i) {
    if (node.wanted(i)) node.Refuse("its means or deviations are read, which crema keeps to itself");
  }
  const Operand value = node.blob(0);
  const int axis = node.Axis(node.Int("axis", -1), value.shape.axes());
  LayerParameter layer = LayerOf("LayerNorm");
  LayerNormParameter* param = layer.mutable_layer_norm_param();
  if (axis != value.shape.axes() - 1) param->set_axis(axis);
  const Shape vector(std::vector<int64_t>(value.shape.dims().begin() + axis, value.shape.dims().end()));
  std::vector<Constant> blobs = ReadAffine(node, vector, param);
  node.Set(0, node.Add(std::move(layer), {value}, std::move(blobs)));
}

void NormalizeGroups(NodeReader& node, const Operand& value, int64_t groups) {
  LayerParameter layer = LayerOf("GroupNorm");
  GroupNormParameter* param = layer.mutable_group_norm_param();
  param->set_num_groups(static_cast<uint32_t>(groups));
  std::vector<Constant> blobs = ReadAffine(node, {value.shape[1]}, param);
  node.Set(0, node.Add(std::move(layer), {value}, std::move(blobs)));
}

void GroupNormalization(NodeReader& node) {
  if (node.operator_set() < 21) {
    node.Refuse("up to operator set 20 its scale is one for each group; export with a newer operator set, or an older one "
                "than 18, which has no such operator");
  }
  const Operand value = node.blob(0);
  const int64_t groups = node.Int("num_groups", 0);
  if (value.shape.axes() < 2 || groups < 1 || value.shape[1] % groups != 0) {
    node.Refuse("its num_groups is " + std::to_string(groups) + ", of " + value.shape.ToString());
  }
  NormalizeGroups(node, value, groups);
}

void InstanceNormalization(NodeReader& node) {
  const Operand value = node.blob(0);
  if (value.shape.axes() < 2) node.Refuse("its input is " + value.shape.ToString() + ", which has no channels");
  NormalizeGroups(node, value, value.shape[1]);
}

void Lrn(NodeReader& node) {
  const int64_t size = node.Int("size", 0);
  if (size < 1 || size > (1 << 20)) node.Refuse("its size is " + std::to_string(size));
  LayerParameter layer = LayerOf("LRN");
  LRNParameter* param = layer.mutable_lrn_param();
  param->set_local_size(static_cast<uint32_t>(size));
  param->set_alpha(node.Float("alpha", 0.0001F));
  param->set_beta(node.Float("beta", 0.75F));
  const float bias = node.Float("bias", 1);
  if (bias != 1) param->set_k(bias);
  node.Set(0, node.Add(std::move(layer), {node.blob(0)}));
}

}  // namespace

OperatorTable NormalizationOperators() {
  return {{"BatchNormalization", BatchNormalization},
          {"GroupNormalization", GroupNormalization},
          {"InstanceNormalization", InstanceNormalization},
          {"LRN", Lrn},
          {"LayerNormalization", LayerNormalization}};
}

}  // namespace crema::onnx
