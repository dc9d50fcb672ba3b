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

OperatorTable NormalizationOperators() { return {{"BatchNormalization", BatchNormalization}, {"LRN", Lrn}}; }

}  // namespace crema::onnx
