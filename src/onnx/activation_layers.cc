// One formula for each element.
#include <cmath>
#include <vector>

#include "onnx/layer_table.h"

namespace crema::onnx {

namespace {

template <const char* op>
void Elementwise(LayerWriter& layer) {
  layer.SetTop(0, layer.Add(op, {layer.bottom(0)}));
}
constexpr char kOnnxSigmoid[] = "Sigmoid", kOnnxTanh[] = "Tanh", kOnnxAbs[] = "Abs", kOnnxSoftplus[] = "Softplus";

void Relu(LayerWriter& layer) {
  const float slope = layer.param().relu_param().negative_slope();
  layer.SetTop(0, slope == 0 ? layer.Add("Relu", {layer.bottom(0)})
                             : layer.Add("LeakyRelu", {layer.bottom(0)}, {Float("alpha", slope)}));
}

void ClipTo(LayerWriter& layer, float min, float max) {
  layer.SetTop(0, layer.Add("Clip", {layer.bottom(0), layer.Number("min", min), layer.Number("max", max)}));
}

void Relu6(LayerWriter& layer) { ClipTo(layer, 0, 6); }
void Clip(LayerWriter& layer) { ClipTo(layer, layer.param().clip_param().min(), layer.param().clip_param().max()); }

// The slopes run along axis 1; broadcasting counts axes from the last one.
void Prelu(LayerWriter& layer) {
  std::vector<int64_t> shape(layer.bottom_shape(0).axes() - 1, 1);
  if (!layer.param().prelu_param().channel_shared()) shape[0] = layer.bottom_shape(0)[1];
  layer.SetTop(0, layer.Add("PRelu", {layer.bottom(0), layer.Blob(0, "slope", Shape(shape))}));
}

void Elu(LayerWriter& layer) {
  layer.SetTop(0, layer.Add("Elu", {layer.bottom(0)}, {Float("alpha", layer.param().elu_param().alpha())}));
}

void Swish(LayerWriter& layer) {
  const std::string sharpened = layer.Affine(layer.bottom(0), layer.param().swish_param().beta(), 0);
  layer.SetTop(0, layer.Add("Mul", {layer.bottom(0), layer.Add("Sigmoid", {sharpened})}));
}

void HardSwish(LayerWriter& layer) {
  const std::string gate = layer.Add("HardSigmoid", {layer.bottom(0)}, {Float("alpha", 1 / 6.0F), Float("beta", 0.5F)});
  layer.SetTop(0, layer.Add("Mul", {layer.bottom(0), gate}));
}

void Mish(LayerWriter& layer) {
  const std::string gate = layer.Add("Tanh", {layer.Add("Softplus", {layer.bottom(0)})});
  layer.SetTop(0, layer.Add("Mul", {layer.bottom(0), gate}));
}

void Gelu(LayerWriter& layer) {
  const std::string x = layer.bottom(0);
  if (layer.param().gelu_param().approximate() == GELUParameter::TANH) {
    const std::string cube = layer.Add("Mul", {layer.Add("Mul", {x, x}), x});
    const std::string sum = layer.Add("Add", {x, layer.Affine(cube, 0.044715F, 0)});
    const std::string gate = layer.Add("Sigmoid", {layer.Affine(sum, 1.59576912F, 0)});  // 2 sqrt(2 / pi)
    return layer.SetTop(0, layer.Add("Mul", {x, gate}));
  }
  const std::string erf = layer.Add("Erf", {layer.Affine(x, 0.70710678F, 0)});
  layer.SetTop(0, layer.Affine(layer.Add("Mul", {x, layer.Affine(erf, 1, 1)}), 0.5F, 0));
}

void Power(LayerWriter& layer) {
  const PowerParameter& param = layer.param().power_param();
  std::string value = layer.Affine(layer.bottom(0), param.scale(), param.shift());
  if (param.power() != 1) value = layer.Add("Pow", {value, layer.Number("power", param.power())});
  layer.SetTop(0, value);
}

void Exp(LayerWriter& layer) {
  const ExpParameter& param = layer.param().exp_param();
  const float log = param.base() == -1 ? 1 : std::log(param.base());
  layer.SetTop(0, layer.Add("Exp", {layer.Affine(layer.bottom(0), log * param.scale(), log * param.shift())}));
}

void Log(LayerWriter& layer) {
  const LogParameter& param = layer.param().log_param();
  const std::string value = layer.Add("Log", {layer.Affine(layer.bottom(0), param.scale(), param.shift())});
  layer.SetTop(0, layer.Affine(value, param.base() == -1 ? 1 : 1 / std::log(param.base()), 0));
}

void Threshold(LayerWriter& layer) {
  const std::string above =
      layer.Add("Greater", {layer.bottom(0), layer.Number("threshold", layer.param().threshold_param().threshold())});
  layer.SetTop(0, layer.Add("Cast", {above}, {Int("to", TensorProto::FLOAT)}));
}

void Softmax(LayerWriter& layer) {
  const SoftmaxParameter& param = layer.param().softmax_param();
  const Shape& shape = layer.bottom_shape(0);
  const int axis = shape.CanonicalAxis(param.axis());
  std::string scores = layer.bottom(0);
  if (param.causal()) {
    layer.ExpectFixedFrom(0, axis - 1);
    const int64_t rows = shape[axis - 1], columns = shape[axis];
    std::vector<float> mask(static_cast<size_t>(rows * columns));
    for (int64_t i = 0; i < rows * columns; ++i) mask[static_cast<size_t>(i)] = i % columns > i / columns ? -1e30F : 0;
    scores = layer.Add("Add", {scores, layer.Floats("mask", {rows, columns}, mask)});
  }
  layer.SetTop(0, layer.Add("Softmax", {scores}, {Int("axis", axis)}));
}

}  // namespace

LayerTable ActivationLayers() {
  return {{"AbsVal", Elementwise<kOnnxAbs>},
          {"BNLL", Elementwise<kOnnxSoftplus>},
          {"Clip", Clip},
          {"ELU", Elu},
          {"Exp", Exp},
          {"GELU", Gelu},
          {"HardSwish", HardSwish},
          {"Log", Log},
          {"Mish", Mish},
          {"PReLU", Prelu},
          {"Power", Power},
          {"ReLU", Relu},
          {"ReLU6", Relu6},
          {"Sigmoid", Elementwise<kOnnxSigmoid>},
          {"Softmax", Softmax},
          {"Swish", Swish},
          {"TanH", Elementwise<kOnnxTanh>},
          {"Threshold", Threshold}};
}

}  // namespace crema::onnx
