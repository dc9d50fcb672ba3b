#include "solver/snapshots/net_change.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "graph/program.h"

namespace crema {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Of LayerParameter: what is compared otherwise or computes nothing.
constexpr const char* kNotSettings[] = {"name",  "type",    "bottom",  "top",   "param",
                                        "phase", "include", "exclude", "blobs", "hdf5_output_param"};

// "conv1", or "slice[1]" of a layer of several tops; of data the blob's name, whichever layer reads it.
std::string MakerOf(const Graph& graph, int v) {
  const Value& value = graph.values[v];
  const Node& maker = graph.nodes[value.producer];
  if (maker.setup->is_source()) return value.name;
  return maker.name() + (maker.tops.size() > 1 ? "[" + std::to_string(value.producer_top) + "]" : "");
}

// The names under which layers share parameters; none where none has one.
std::string SharedNames(const LayerParameter& layer) {
  std::string names;
  bool any = false;
  for (const ParamSpec& param : layer.param()) {
    any |= param.has_name();
    names += (names.empty() ? "\"" : " \"") + param.name() + "\"";
  }
  return any ? names : "";
}

struct FieldChange {
  std::string path, now, before;
};

// Fields that are not set have their defaults, but for those without one.
std::string TextOf(const Message& message, const FieldDescriptor* field) {
  using google::protobuf::TextFormat;
  const auto* reflection = message.GetReflection();
  std::string text;
  if (!field->is_repeated()) {
    if (!reflection->HasField(message, field) && !field->has_default_value()) return "not set";
    TextFormat::PrintFieldValueToString(message, field, -1, &text);
    return text;
  }
  for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
    std::string element;
    TextFormat::PrintFieldValueToString(message, field, i, &element);
    text += (i > 0 ? " " : "") + element;
  }
  return text.empty() ? "not set" : text;
}

bool Matters(const FieldDescriptor* field) {
  const bool fills = field->message_type() == FillerParameter::descriptor();
  return !fills && field->name() != "engine";
}

std::optional<FieldChange> FirstChange(const Message& now, const Message& before, const std::string& path);

std::optional<FieldChange> ChangeIn(const FieldDescriptor* field, const Message& now, const Message& before,
                                    const std::string& path) {
  if (!Matters(field)) return std::nullopt;
  const std::string place = path + std::string(field->name());
  if (field->message_type() && !field->is_repeated()) {
    const auto* reflection = now.GetReflection();
    if (!reflection->HasField(now, field) && !reflection->HasField(before, field)) return std::nullopt;
    return FirstChange(reflection->GetMessage(now, field), reflection->GetMessage(before, field), place + ".");
  }
  const std::string text = TextOf(now, field), old = TextOf(before, field);
  return text == old ? std::nullopt : std::optional(FieldChange{place, text, old});
}

std::optional<FieldChange> FirstChange(const Message& now, const Message& before, const std::string& path) {
  const auto* descriptor = now.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    if (auto change = ChangeIn(descriptor->field(i), now, before, path)) return change;
  }
  return std::nullopt;
}

std::optional<FieldChange> SettingsChange(const LayerParameter& now, const LayerParameter& before) {
  const auto* descriptor = LayerParameter::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const auto* field = descriptor->field(i);
    if (std::find(std::begin(kNotSettings), std::end(kNotSettings), std::string(field->name())) !=
        std::end(kNotSettings)) {
      continue;
    }
    if (auto change = ChangeIn(field, now, before, "")) return change;
  }
  return std::nullopt;
}

std::string Described(const LayerParameter& layer) { return "\"" + layer.name() + "\" (" + layer.type() + ")"; }

// The layer of that name, the number-th of several; null where there is none.
const LayerParameter* Find(const NetParameter& net, const std::string& name, int number) {
  for (const LayerParameter& layer : net.layer()) {
    if (layer.name() == name && number-- == 0) return &layer;
  }
  return nullptr;
}

// Calls `visit` with each layer of `net` and the one of the same name in `other`, or null.
void VisitPairs(const NetParameter& net, const NetParameter& other,
                const std::function<void(const LayerParameter&, const LayerParameter*)>& visit) {
  std::map<std::string, int> numbers;
  for (const LayerParameter& layer : net.layer()) visit(layer, Find(other, layer.name(), numbers[layer.name()]++));
}

std::string ChangeOfLayer(const LayerParameter& now, const LayerParameter& before) {
  if (now.type() != before.type()) {
    return "layer \"" + now.name() + "\" is of type " + now.type() + ", and was " + before.type();
  }
  const std::string layer = "layer " + (now.has_type() ? Described(now) : "\"" + now.name() + "\"");
  for (int i = 0; i < std::max(now.bottom_size(), before.bottom_size()); ++i) {
    const std::string reads = i < now.bottom_size() ? "\"" + now.bottom(i) + "\"" : "nothing";
    const std::string read = i < before.bottom_size() ? "\"" + before.bottom(i) + "\"" : "nothing";
    if (reads != read) return layer + " reads " + reads + " as bottom " + std::to_string(i) + ", and read " + read;
  }
  if (const auto change = SettingsChange(now, before)) {
    return layer + ": " + change->path + " is " + change->now + ", and was " + change->before;
  }
  if (SharedNames(now) != SharedNames(before)) return layer + " shares parameters with other layers than before";
  return "";
}

}  // namespace

NetParameter ComputationOf(const Net& net) {
  const Graph& graph = net.compiled().graph;
  // Upwards from the losses.
  std::vector<bool> used(graph.values.size()), counts(graph.nodes.size());
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    for (size_t i = 0; i < node.tops.size(); ++i) {
      if (node.loss_weights[i] != 0 || used[static_cast<size_t>(node.tops[i])]) counts[n] = true;
    }
    for (const int bottom : node.bottoms)
      used[static_cast<size_t>(bottom)] = used[static_cast<size_t>(bottom)] || counts[n];
  }
  NetParameter computation;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!counts[n]) continue;
    const Node& node = graph.nodes[n];
    LayerParameter* layer = computation.add_layer();
    if (node.setup->is_source()) {
      layer->set_name(node.param->name());
      if (!node.param->has_transform_param()) continue;
      *layer->mutable_transform_param() = node.param->transform_param();
      // Where it lies is another question.
      if (layer->transform_param().has_mean_file()) layer->mutable_transform_param()->set_mean_file("...");
      continue;
    }
    *layer = *node.param;
    layer->clear_blobs();
    layer->clear_bottom();
    for (const int bottom : node.bottoms) layer->add_bottom(MakerOf(graph, bottom));
    layer->clear_loss_weight();
    for (const float weight : node.loss_weights) layer->add_loss_weight(weight);
  }
  return computation;
}

NetChange ChangeOf(const NetParameter& before, const NetParameter& now) {
  NetChange first;
  const auto found = [&first](std::string text, const LayerParameter& layer) {
    if (first.text.empty() && !text.empty()) first = {std::move(text), layer.name()};
  };
  // Layers without a type are data.
  VisitPairs(before, now, [&](const LayerParameter& layer, const LayerParameter* same) {
    if (layer.has_type() && !same) found("layer " + Described(layer) + " is gone", layer);
  });
  VisitPairs(now, before, [&](const LayerParameter& layer, const LayerParameter* same) {
    if (layer.has_type() && !same) found("layer " + Described(layer) + " is new", layer);
  });
  VisitPairs(now, before, [&](const LayerParameter& layer, const LayerParameter* same) {
    if (same && same->has_type() == layer.has_type()) found(ChangeOfLayer(layer, *same), layer);
  });
  return first;
}

}  // namespace crema
