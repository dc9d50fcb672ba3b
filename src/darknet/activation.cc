#include "darknet/activation.h"

#include <map>

#include "base/listed.h"
#include "base/printable.h"
#include "base/suggest.h"

namespace crema::darknet {

namespace {

constexpr float kLeakySlope = 0.1F, kRelieSlope = 0.01F;

LayerParameter Rectifier(float slope) {
  LayerParameter layer = LayerOf("ReLU");
  if (slope != 0) layer.mutable_relu_param()->set_negative_slope(slope);
  return layer;
}

// With the polynomial in tanh.
LayerParameter Gelu() {
  LayerParameter layer = LayerOf("GELU");
  layer.mutable_gelu_param()->set_approximate(GELUParameter::TANH);
  return layer;
}

// Without "linear", which is no layer.
const std::map<std::string, LayerParameter>& Layers() {
  static const std::map<std::string, LayerParameter> layers = {
      {"elu", LayerOf("ELU")},
      {"gelu", Gelu()},
      {"leaky", Rectifier(kLeakySlope)},
      {"logistic", LayerOf("Sigmoid")},
      {"mish", LayerOf("Mish")},
      {"relie", Rectifier(kRelieSlope)},
      {"relu", Rectifier(0)},
      {"relu6", LayerOf("ReLU6")},
      {"swish", LayerOf("Swish")},
      {"tanh", LayerOf("TanH")},
  };
  return layers;
}

}  // namespace

std::vector<std::string> ActivationNames() {
  std::vector<std::string> names = {"linear"};
  for (const auto& [name, layer] : Layers()) names.push_back(name);
  return names;
}

std::string ReadActivation(SectionReader& section, const std::string& fallback) {
  std::string name = section.settings().Word("activation", fallback);
  if (name == "linear" || Layers().count(name) > 0) return name;
  section.settings().Refuse("activation", "activation=" + Printable(name) + " is none that crema has a layer for (" +
                                              Listed(ActivationNames(), {.most = kAllNames}) + ")" +
                                              DidYouMean(name, ActivationNames()));
  return "linear";
}

void Activate(SectionReader& section, const std::string& activation, const Value& value) {
  if (activation != "linear") section.AddInPlace(Layers().at(activation), value, activation);
}

}  // namespace crema::darknet
