// One formula for each element.
#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/operator_table.h"

namespace crema::onnx {

namespace {

template <const char* type>
void Elementwise(NodeReader& node) {
  node.Set(0, node.Add(LayerOf(type), {node.blob(0)}));
}
constexpr char kSigmoid[] = "Sigmoid", kTanh[] = "TanH", kAbs[] = "AbsVal", kExp[] = "Exp", kLog[] = "Log",
               kRelu[] = "ReLU", kHardSwish[] = "HardSwish", kMish[] = "Mish";

void LeakyRelu(NodeReader& node) {
  LayerParameter layer = LayerOf("ReLU");
  layer.mutable_relu_param()->set_negative_slope(node.Float("alpha", 0.01F));
  node.Set(0, node.Add(std::move(layer), {node.blob(0)}));
}

// The slopes run along axis 1, or are one number.
void Prelu(NodeReader& node) {
  Constant slopes = node.constant(1, "the slopes");
  node.floats(1, "the slopes");
  const Operand value = node.blob(0);
  const int64_t channels = value.shape.axes() > 1 ? value.shape[1] : 1;
  const int behind = value.shape.axes() - 2;
  const bool by_channel =
      slopes.count() == channels &&
      (slopes.count() == 1 || (slopes.shape.axes() > behind && slopes.shape[-1 - behind] == channels));
  LayerParameter layer = LayerOf("PReLU");
  if (slopes.count() == 1) {
    layer.mutable_prelu_param()->set_channel_shared(true);
    slopes.shape = {};
  } else if (by_channel) {
    slopes.shape = {channels};
  } else {
    node.Refuse("the slopes are " + slopes.shape.ToString() + "; one for each channel, or one alone, is possible");
  }
  node.Set(0, node.Add(std::move(layer), {value}, {std::move(slopes)}));
}

void Elu(NodeReader& node) {
  LayerParameter layer = LayerOf("ELU");
  const float alpha = node.Float("alpha", 1);
  if (alpha != 1) layer.mutable_elu_param()->set_alpha(alpha);
  node.Set(0, node.Add(std::move(layer), {node.blob(0)}));
}

void Selu(NodeReader& node) {
  LayerParameter layer = LayerOf("ELU");
  layer.mutable_elu_param()->set_alpha(node.Float("alpha", 1.67326319F));
  const Operand value = node.Add(std::move(layer), {node.blob(0)});
  node.Set(0, node.Power(value, node.Float("gamma", 1.05070102F), 0, 1, "scale"));
}

Operand ClipTo(NodeReader& node, const Operand& value, float min, float max, const std::string& role) {
  constexpr float kMost = std::numeric_limits<float>::max();
  if (min == 0 && max >= kMost) return node.Add(LayerOf("ReLU"), {value}, {}, role);
  if (min == 0 && max == 6) return node.Add(LayerOf("ReLU6"), {value}, {}, role);
  LayerParameter layer = LayerOf("Clip");
  layer.mutable_clip_param()->set_min(std::max(min, -kMost));
  layer.mutable_clip_param()->set_max(std::min(max, kMost));
  return node.Add(std::move(layer), {value}, {}, role);
}

// The bounds are attributes up to operator set 10, inputs since.
void Clip(NodeReader& node) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const auto bound = [&](const char* name, int i, float fallback) {
    return node.has(i) ? static_cast<float>(node.number(i, name)) : node.Float(name, fallback);
  };
  node.Set(0, ClipTo(node, node.blob(0), bound("min", 1, -kMost), bound("max", 2, kMost), ""));
}

// Absorbs an `op` behind the node whose other input is the number `wanted`, or, where there is one, the blob.
bool AbsorbNext(NodeReader& node, const std::string& op, double wanted, const std::string& blob = {}) {
  const NodeProto* next = node.Follower(op);
  for (int i = 0; next != nullptr && i < next->input_size(); ++i) {
    const Constant* constant = node.ConstantOf(*next, i);
    const bool is_it = blob.empty() ? constant && constant->count() == 1 && std::abs(constant->value(0) - wanted) < 1e-6
                                    : node.BlobOf(*next, i) == blob;
    if (!is_it) continue;
    node.Absorb(*next);
    return true;
  }
  return false;
}

// x * HardSigmoid(x) is one layer where the line is HardSwish's.
void HardSigmoid(NodeReader& node) {
  const Operand value = node.blob(0);
  const float alpha = node.Float("alpha", 0.2F), beta = node.Float("beta", 0.5F);
  if (std::abs(alpha - 1 / 6.0F) < 1e-6F && beta == 0.5F && AbsorbNext(node, "Mul", 0, value.blob)) {
    return node.Set(0, node.Add(LayerOf("HardSwish"), {value}));
  }
  node.Set(0, ClipTo(node, node.Power(value, alpha, beta, 1, "slope"), 0, 1, ""));
}

// x * tanh(Softplus(x)), as programs write a Mish for older operator sets, is one layer.
void Softplus(NodeReader& node) {
  const Operand value = node.blob(0);
  const NodeProto* tanh = node.Follower("Tanh");
  if (tanh == nullptr) return node.Set(0, node.Add(LayerOf("BNLL"), {value}));
  node.Absorb(*tanh);
  if (AbsorbNext(node, "Mul", 0, value.blob)) return node.Set(0, node.Add(LayerOf("Mish"), {value}));
  node.Set(0, node.Add(LayerOf("TanH"), {node.Add(LayerOf("BNLL"), {value}, {}, "softplus")}));
}

void Swish(NodeReader& node) {
  LayerParameter layer = LayerOf("Swish");
  const float alpha = node.Float("alpha", 1);
  if (alpha != 1) layer.mutable_swish_param()->set_beta(alpha);
  node.Set(0, node.Add(std::move(layer), {node.blob(0)}));
}

void Gelu(NodeReader& node) {
  LayerParameter layer = LayerOf("GELU");
  const std::string approximate = node.String("approximate", "none");
  if (approximate == "tanh") {
    layer.mutable_gelu_param()->set_approximate(GELUParameter::TANH);
  } else if (approximate != "none") {
    node.Refuse("its approximation is \"" + approximate + "\"; \"none\" and \"tanh\" are possible");
  }
  node.Set(0, node.Add(std::move(layer), {node.blob(0)}));
}

// Alone in x * (1 + erf(x / sqrt(2))) / 2, as programs write a GELU for older operator sets.
void Erf(NodeReader& node) {
  LayerParameter* scaled = node.LastLayer(node.operand(0).blob, "Power", node.node().input(0));
  if (scaled != nullptr) {
    const PowerParameter& power = scaled->power_param();
    const std::string x = scaled->bottom(0);
    if (std::abs(power.scale() - 0.70710678F) < 1e-6F && power.shift() == 0 && power.power() == 1 &&
        AbsorbNext(node, "Add", 1)) {
      const bool halved = AbsorbNext(node, "Mul", 0.5);
      if (AbsorbNext(node, "Mul", 0, x) && (halved || AbsorbNext(node, "Mul", 0.5))) {
        scaled->set_type("GELU");
        scaled->clear_power_param();
        return node.Set(0, node.operand(0));
      }
    }
  }
  node.Refuse("crema has erf in x * (1 + erf(x / sqrt(2))) / 2 alone, which is a GELU");
}

void Softsign(NodeReader& node) {
  const Operand value = node.blob(0), magnitude = node.Add(LayerOf("AbsVal"), {value}, {}, "abs");
  LayerParameter layer = LayerOf("Eltwise");
  layer.mutable_eltwise_param()->set_operation(EltwiseParameter::PROD);
  node.Set(0, node.Add(std::move(layer), {value, node.Power(magnitude, 1, 1, -1, "inverse")}));
}

template <int scale, int numerator, int denominator>
void PowerOf(NodeReader& node) {
  node.Set(0, node.Power(node.blob(0), scale, 0, static_cast<float>(numerator) / denominator));
}

// Up to operator set 12 all axes from `axis` on are one.
Operand SoftmaxOf(NodeReader& node, const std::string& role) {
  const Operand value = node.blob(0);
  const bool merges = node.operator_set() < 13;
  const int axis = node.Axis(node.Int("axis", merges ? 1 : -1), value.shape.axes(), merges);
  if (!merges || value.shape.count(std::min(axis + 1, value.shape.axes())) == 1) {
    LayerParameter layer = LayerOf("Softmax");
    if (axis != 1) layer.mutable_softmax_param()->set_axis(axis);
    return node.Add(std::move(layer), {value}, {}, role);
  }
  const Operand rows = node.Reshape(value, {value.shape.count(0, axis), value.shape.count(axis)}, "rows");
  return node.Reshape(node.Add(LayerOf("Softmax"), {rows}, {}, "softmax"), value.shape, role);
}

void Softmax(NodeReader& node) { node.Set(0, SoftmaxOf(node, "")); }

void LogSoftmax(NodeReader& node) { node.Set(0, node.Add(LayerOf("Log"), {SoftmaxOf(node, "softmax")})); }

void Dropout(NodeReader& node) {
  if (node.wanted(1)) node.Refuse("its mask is read, which crema does not have");
  LayerParameter layer = LayerOf("Dropout");
  const float ratio = node.has(1) ? static_cast<float>(node.number(1, "the ratio")) : node.Float("ratio", 0.5F);
  if (!(ratio >= 0 && ratio < 1))
    node.Refuse("its ratio is " + std::to_string(ratio) + "; it must be from 0 to below 1");
  if (ratio != 0.5F) layer.mutable_dropout_param()->set_dropout_ratio(ratio);
  node.Set(0, node.Add(std::move(layer), {node.blob(0)}));
}

}  // namespace

OperatorTable ActivationOperators() {
  return {{"Abs", Elementwise<kAbs>},
          {"Clip", Clip},
          {"Dropout", Dropout},
          {"Elu", Elu},
          {"Erf", Erf},
          {"Exp", Elementwise<kExp>},
          {"Gelu", Gelu},
          {"HardSigmoid", HardSigmoid},
          {"HardSwish", Elementwise<kHardSwish>},
          {"LeakyRelu", LeakyRelu},
          {"Log", Elementwise<kLog>},
          {"LogSoftmax", LogSoftmax},
          {"Mish", Elementwise<kMish>},
          {"Neg", PowerOf<-1, 1, 1>},
          {"PRelu", Prelu},
          {"Reciprocal", PowerOf<1, -1, 1>},
          {"Relu", Elementwise<kRelu>},
          {"Selu", Selu},
          {"Sigmoid", Elementwise<kSigmoid>},
          {"Softmax", Softmax},
          {"Softplus", Softplus},
          {"Softsign", Softsign},
          {"Sqrt", PowerOf<1, 1, 2>},
          {"Swish", Swish},
          {"Tanh", Elementwise<kTanh>}};
}

}  // namespace crema::onnx
