// Layers that bring values to a common scale.
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "layers/batch_norm_blobs.h"
#include "onnx/layer_table.h"
#include "ops/normalization/normalization.h"

namespace crema::onnx {

namespace {

// A number for each channel, behind which broadcasting needs ones.
Shape ByChannel(const LayerWriter& layer) {
  std::vector<int64_t> shape(std::max(1, layer.bottom_shape(0).axes() - 1), 1);
  if (layer.bottom_shape(0).axes() > 1) shape[0] = layer.bottom_shape(0)[1];
  return Shape(shape);
}

std::vector<int64_t> AxesFrom(int first, int axes) {
  std::vector<int64_t> list(axes - first);
  std::iota(list.begin(), list.end(), first);
  return list;
}

// value minus its mean along `axes`; *variance: the mean of the result's squares.
std::string Centred(LayerWriter& layer, const std::string& value, const std::vector<int64_t>& axes,
                    std::string* variance) {
  const std::string mean = layer.Add("ReduceMean", {value}, {Ints("axes", axes)});
  const std::string centred = layer.Add("Sub", {value, mean});
  if (variance) {
    *variance = layer.Add("ReduceMean", {layer.Add("Mul", {centred, centred})}, {Ints("axes", axes)});
  }
  return centred;
}

// (value - mean) / sqrt(variance + eps), along `axes`.
std::string Standard(LayerWriter& layer, const std::string& value, const std::vector<int64_t>& axes, float eps) {
  std::string variance;
  const std::string centred = Centred(layer, value, axes, &variance);
  return layer.Add("Div", {centred, layer.Add("Sqrt", {layer.Affine(variance, 1, eps)})});
}

// With the statistics of the batch itself.
std::string NormalizeBatch(LayerWriter& layer, float eps) {
  std::vector<int64_t> axes = AxesFrom(0, layer.bottom_shape(0).axes());
  if (axes.size() > 1) axes.erase(axes.begin() + 1);
  return Standard(layer, layer.bottom(0), axes, eps);
}

// A Scale of one learnt number for each channel, behind which nothing else reads what comes before.
const Node* ScaleBehind(const LayerWriter& layer) {
  const Node* scale = layer.Follower();
  if (!scale || scale->type->name != "Scale" || layer.bottom_shape(0).axes() < 2) return nullptr;
  const ScaleParameter& param = scale->param->scale_param();
  const bool by_channel = layer.bottom_shape(0).CanonicalAxis(param.axis()) == 1 &&
                          scale->setup->params()[0].shape == Shape{layer.bottom_shape(0)[1]};
  return by_channel ? scale : nullptr;
}

struct Running {
  std::vector<float> mean, variance;
};

// value times a blob of the layer, plus another, by channel.
void ScaleAndShift(LayerWriter& layer, const std::string& value, int scale, int bias) {
  const Shape shape = ByChannel(layer);
  layer.SetTop(0, layer.Add("Add", {layer.Add("Mul", {value, layer.Blob(scale, "scale", shape)}),
                                    layer.Blob(bias, "bias", shape)}));
}

// One BatchNormalization, and the Scale behind it, or its own, in the same.
void NormalizeRunning(LayerWriter& layer, const Running& running, float eps) {
  const auto channels = static_cast<int64_t>(running.mean.size());
  const Shape shape{channels};
  const auto normalize = [&](const std::string& scale, const std::string& bias) {
    return layer.Add("BatchNormalization",
                     {layer.bottom(0), scale, bias, layer.Floats("mean", shape, running.mean),
                      layer.Floats("variance", shape, running.variance)},
                     {Float("epsilon", eps)});
  };
  const auto constant = [&](const std::string& role, float value) {
    return layer.Floats(role, shape, std::vector<float>(channels, value));
  };
  if (ScalesItself(layer.param().batch_norm_param())) {
    return layer.SetTop(0, normalize(layer.Blob(kNormScale, "scale"), layer.Blob(kNormBias, "bias")));
  }
  if (const Node* node = ScaleBehind(layer)) {
    LayerWriter scale = layer.Absorb(*node);
    const std::string factor = scale.Blob(0, "scale");
    const bool shifts = scale.param().scale_param().bias_term();
    return scale.SetTop(0, normalize(factor, shifts ? scale.Blob(1, "bias") : constant("bias", 0)));
  }
  layer.SetTop(0, normalize(constant("scale", 1), constant("bias", 0)));
}

void BatchNorm(LayerWriter& layer) {
  const BatchNormParameter& param = layer.param().batch_norm_param();
  if (NormalizesByBatch(param, TEST)) return layer.SetTop(0, NormalizeBatch(layer, param.eps()));
  Running running{layer.BlobValues(kMeanSum), layer.BlobValues(kVarianceSum)};
  const float weight = layer.BlobValues(kWeightSum)[0], factor = weight == 0 ? 0 : 1 / weight;
  for (float& mean : running.mean) mean *= factor;
  for (float& variance : running.variance) variance *= factor;
  if (layer.bottom_shape(0).axes() > 1) return NormalizeRunning(layer, running, param.eps());
  // A single channel.
  const float deviation = std::sqrt(running.variance[0] + param.eps());
  const std::string value = layer.Affine(layer.bottom(0), 1 / deviation, -running.mean[0] / deviation);
  return ScalesItself(param) ? ScaleAndShift(layer, value, kNormScale, kNormBias) : layer.SetTop(0, value);
}

void Bn(LayerWriter& layer) {
  const BNParameter& param = layer.param().bn_param();
  const bool running = !IsBnOfSegNet(param);
  if (running && layer.bottom_shape(0).axes() > 1) {
    const Shape channels{layer.bottom_shape(0)[1]};
    return layer.SetTop(
        0, layer.Add("BatchNormalization",
                     {layer.bottom(0), layer.Blob(kBnSlope, "scale", channels), layer.Blob(kBnBias, "bias", channels),
                      layer.Blob(kBnMean, "mean", channels), layer.Blob(kBnVariance, "variance", channels)},
                     {Float("epsilon", BnEps(param))}));
  }
  if (running) layer.Refuse("bottom", "takes num x channels and more to have a form in ONNX; reshape it");
  const std::string value = BnUsesRunning(param, TEST) ? layer.bottom(0) : NormalizeBatch(layer, BnEps(param));
  ScaleAndShift(layer, value, kBnSlope, kBnBias);
}

void Lrn(LayerWriter& layer) {
  const LRNParameter& param = layer.param().lrn_param();
  const int64_t size = param.local_size();
  if (param.norm_region() == LRNParameter::ACROSS_CHANNELS) {
    return layer.SetTop(0, layer.Add("LRN", {layer.bottom(0)},
                                     {Float("alpha", param.alpha()), Float("beta", param.beta()),
                                      Float("bias", param.k()), Int("size", size)}));
  }
  const int64_t half = size / 2;
  const std::string squares = layer.Add("Mul", {layer.bottom(0), layer.bottom(0)});
  const std::string mean = layer.Add(
      "AveragePool", {squares},
      {Ints("kernel_shape", {size, size}), Ints("pads", {half, half, half, half}), Int("count_include_pad", 1)});
  const std::string power =
      layer.Add("Pow", {layer.Affine(mean, param.alpha(), 1), layer.Number("beta", param.beta())});
  layer.SetTop(0, layer.Add("Div", {layer.bottom(0), power}));
}

void Mvn(LayerWriter& layer) {
  const MVNParameter& param = layer.param().mvn_param();
  std::string value = layer.bottom(0);
  if (layer.top_shape(0).axes() != layer.bottom_shape(0).axes()) value = layer.Reshape(value, layer.top_dims(0));
  const std::vector<int64_t> axes = AxesFrom(param.across_channels() ? 1 : 2, layer.top_shape(0).axes());
  std::string variance;
  value = Centred(layer, value, axes, param.normalize_variance() ? &variance : nullptr);
  if (param.normalize_variance()) {
    value = layer.Add("Div", {value, layer.Affine(layer.Add("Sqrt", {variance}), 1, param.eps())});
  }
  layer.SetTop(0, value);
}

// value times the layer's blob 0, plus blob 1, as far as there are any.
std::string WithAffine(LayerWriter& layer, std::string value, const Shape& shape) {
  if (layer.blobs() > 0) value = layer.Add("Mul", {value, layer.Blob(0, "scale", shape)});
  if (layer.blobs() > 1) value = layer.Add("Add", {value, layer.Blob(1, "bias", shape)});
  return value;
}

void LayerNorm(LayerWriter& layer) {
  const LayerNormParameter& param = layer.param().layer_norm_param();
  const Shape& shape = layer.bottom_shape(0);
  const int axis = shape.CanonicalAxis(param.axis());
  layer.ExpectFixedFrom(0, axis);
  const std::string value = Standard(layer, layer.bottom(0), AxesFrom(axis, shape.axes()), param.eps());
  const Shape vector(std::vector<int64_t>(shape.dims().begin() + axis, shape.dims().end()));
  layer.SetTop(0, WithAffine(layer, value, vector));
}

void GroupNorm(LayerWriter& layer) {
  const GroupNormParameter& param = layer.param().group_norm_param();
  layer.ExpectFixedFrom(0, 1);
  const int64_t groups = param.num_groups(), width = layer.bottom_shape(0).count(1) / groups;
  const std::string rows = layer.Reshape(layer.bottom(0), {layer.bottom_dims(0)[0], groups, width});
  const std::string value = layer.Reshape(Standard(layer, rows, {2}, param.eps()), layer.bottom_dims(0));
  layer.SetTop(0, WithAffine(layer, value, ByChannel(layer)));
}

// Divided by the root of the sum of squares, or by the sum of sizes, over all but the first axis or the second one.
std::string OfUnitLength(LayerWriter& layer, bool whole, bool absolute, float eps) {
  const std::string value = layer.bottom(0);
  const std::string terms = absolute ? layer.Add("Abs", {value}) : layer.Add("Mul", {value, value});
  const std::vector<int64_t> axes = whole ? AxesFrom(1, layer.bottom_shape(0).axes()) : std::vector<int64_t>{1};
  const std::string sum = layer.Affine(layer.Add("ReduceSum", {terms, layer.Integers("axes", axes)}), 1, eps);
  return layer.Add("Div", {value, absolute ? sum : layer.Add("Sqrt", {sum})});
}

void Normalize(LayerWriter& layer) {
  if (layer.param().has_normalize_param()) {
    const UnitLengthParameter& param = layer.param().normalize_param();
    return layer.SetTop(0, OfUnitLength(layer, param.across_spatial(), param.normalize_type() == "L1", param.eps()));
  }
  const NormalizeParameter& param = layer.param().norm_param();
  const std::string value = OfUnitLength(layer, param.across_spatial(), false, param.eps());
  const Shape shape = param.channel_shared() ? Shape() : ByChannel(layer);
  layer.SetTop(0, layer.Add("Mul", {value, layer.Blob(0, "scale", shape)}));
}

void NormalizeItems(LayerWriter& layer) { layer.SetTop(0, OfUnitLength(layer, true, false, NormalizeProblem().eps)); }

}  // namespace

LayerTable NormalizationLayers() {
  return {{"BN", Bn},
          {"BatchNorm", BatchNorm},
          {"GroupNorm", GroupNorm},
          {"LRN", Lrn},
          {"LayerNorm", LayerNorm},
          {"MVN", Mvn},
          {"Normalize", Normalize},
          {"L2Norm", NormalizeItems},
          {"L2Normalization", NormalizeItems},
          {"Normalization", NormalizeItems},
          {"NormalizationL2", NormalizeItems}};
}

}  // namespace crema::onnx
