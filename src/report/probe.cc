#include "report/probe.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "compiler/compiler.h"
#include "crema/error.h"
#include "device/device.h"
#include "graph/program.h"
#include "report/dump.h"
#include "report/json_writer.h"

namespace crema {

namespace {

constexpr uint64_t kFirstInput = 1000;  // p of the first input; parameters count from 0

TensorSummary Summarise(std::string name, const Shape& shape, const Tensor& tensor, int head) {
  TensorSummary summary{std::move(name), shape, 0, 0, 0, {}};
  for (int64_t i = 0; i < shape.count(); ++i) {
    const double value = tensor.defined() ? tensor.value(i) : 0;
    summary.sum += value;
    summary.abssum += std::abs(value);
    // Not max(): a NaN must show.
    if (!(std::abs(value) <= summary.largest) && !std::isnan(summary.largest)) summary.largest = std::abs(value);
    if (i < head) summary.head.push_back(static_cast<float>(value));
  }
  return summary;
}

void WriteSummaries(const char* key, const std::vector<TensorSummary>& list, JsonWriter& json) {
  json.Key(key);
  json.BeginObject();
  for (const TensorSummary& summary : list) {
    json.NewLine(2);
    json.Key(summary.name);
    json.BeginObject();
    json.Field("shape", summary.shape);
    json.Field("sum", summary.sum);
    json.Field("abssum", summary.abssum);
    json.Key("head");
    json.BeginArray();
    for (float value : summary.head) json.Number(value);
    json.EndArray();
    json.EndObject();
  }
  json.EndObject();
}

std::string ToJson(const Net& net, const ProbeResult& result, bool backward) {
  JsonWriter json;
  json.BeginObject();
  WriteNetJson(net.compiled(), json);
  json.NewLine(1);
  json.Field("loss", result.loss);
  json.NewLine(1);
  WriteSummaries("blobs", result.blobs, json);
  if (backward) {
    json.NewLine(1);
    WriteSummaries("param_gradients", result.param_gradients, json);
  }
  json.NewLine(0);
  json.EndObject();
  return json.text() + "\n";
}

float ParameterValue(const std::string& type, int index, const Shape& shape, double s) {
  if (type == "BatchNorm" && index <= 2) {
    return static_cast<float>(index == 0 ? 0.1 * s : index == 1 ? 1 + 0.5 * s * s : 1);
  }
  if (type == "BatchNorm") return static_cast<float>(index == 3 ? 1 + 0.1 * s : 0.01 * s);
  if (type == "BN" && index >= 2) return static_cast<float>(index == 2 ? 0.1 * s : 1 + 0.5 * s * s);
  if (type == "Scale" || type == "BN") return static_cast<float>(index == 0 ? 1 + 0.1 * s : 0.01 * s);
  if (shape.axes() < 2) return static_cast<float>(0.01 * s);
  const double fan_in = static_cast<double>(shape.count()) / static_cast<double>(shape[0]);
  return static_cast<float>(std::sqrt(2 / fan_in) * s);
}

struct Readers {
  bool of_indices = false;  // labels, indices or marks: in a bottom that is never differentiated
  bool of_numbers = false;
};

bool ReadsIndices(const Node& node, int bottom) {
  if (!node.setup->is_differentiable()) return node.type->name.ends_with("Accuracy") && bottom == 1;
  return !node.setup->has_gradient(bottom);
}

// Layers to which not what is in the bottom matters, but its size, and such as take images without handing gradients to
// them.
bool ReadsNoIndices(const Node& node) {
  static constexpr std::string_view kTypes[] = {
      "AutoCrop", "ContinuationIndicator", "Crop", "Downsample", "Interp", "MultiStageMeanfield", "Resample",
      "Silence",  "SpatialTransformer"};
  return std::find(std::begin(kTypes), std::end(kTypes), node.type->name) != std::end(kTypes);
}

// Of the value, also behind layers that move its elements.
void FindReaders(const Graph& graph, const Value& value, Readers* readers) {
  for (const Value::Use& use : value.uses) {
    const Node& node = graph.nodes[use.node];
    if (node.setup->moves_elements() && node.setup->has_gradient(use.bottom)) {
      for (const int top : node.tops) FindReaders(graph, graph.values[top], readers);
    } else if (!ReadsNoIndices(node)) {
      (ReadsIndices(node, use.bottom) ? readers->of_indices : readers->of_numbers) = true;
    }
  }
}

bool HoldsIndices(const Graph& graph, const std::string& input) {
  for (const Value& value : graph.values) {
    if (value.name != input || value.version != 0) continue;
    for (const Value::Use& use : value.uses) {
      const Node& node = graph.nodes[use.node];
      if (!ReadsNoIndices(node) && ReadsIndices(node, use.bottom)) return true;
    }
    Readers readers;
    FindReaders(graph, value, &readers);
    if (readers.of_indices && !readers.of_numbers) return true;
  }
  return false;
}

}  // namespace

double ProbeValue(uint64_t i, uint64_t p) {
  uint64_t z = i + (p << 32) + 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-52 - 1;
}

NetFile WithoutData(const NetFile& file, NetOptions& options) {
  NetFile inputs = WithoutWriters(AssumeInputs(file, options.shapes, false));
  NetOptions forward_only = options;
  forward_only.backward = false;
  if (!forward_only.context.device) forward_only.context.device = &CpuDevice();
  const auto compiled = Compile(inputs, forward_only);
  bool more = false;
  for (const Node& node : compiled->graph.nodes) {
    if (!ReadsData(*node.param)) continue;
    for (int v : node.tops) {
      const Value& top = compiled->graph.values[v];
      const auto same = [&](const auto& entry) { return entry.first == top.name; };
      if (std::none_of(options.shapes.begin(), options.shapes.end(), same)) {
        options.shapes.emplace_back(top.name, top.spec.shape);
      }
    }
    more = true;
  }
  return more ? AssumeInputs(std::move(inputs), options.shapes, false) : inputs;
}

void FillInputs(Net& net) {
  uint64_t k = 0;
  for (const NetInput& input : net.inputs()) {
    const bool label = input.name.starts_with("label") || HoldsIndices(net.compiled().graph, input.name);
    for (int64_t i = 0; i < input.value.count(); ++i) {
      input.value.f32()[i] = label ? static_cast<float>(i % 2) : static_cast<float>(ProbeValue(i, kFirstInput + k));
    }
    ++k;
  }
}

void FillParameters(Net& net) {
  uint64_t p = 0;
  for (const Node& node : net.compiled().graph.nodes) {
    for (size_t b = 0; b < node.params.size(); ++b, ++p) {
      // A layer's own shape decides: PERMISSIVE sharing only compares counts.
      const Shape& shape = node.setup->params()[b].shape;
      std::vector<float> values(shape.count());
      for (int64_t i = 0; i < shape.count(); ++i) {
        values[i] = ParameterValue(node.type->name, static_cast<int>(b), shape, ProbeValue(i, p));
      }
      net.parameters()[node.params[b]].SetData(values.data());
    }
  }
}

ProbeResult Probe(const NetFile& file, const ProbeOptions& options, std::string* json) {
  NetOptions net_options;
  net_options.phase = options.phase;
  net_options.level = options.level;
  net_options.stages = options.stages;
  net_options.shapes = options.shapes;
  net_options.context.device = options.device;
  net_options.keep_all = true;
  net_options.backward = options.backward;
  const NetFile inputs = WithoutData(file, net_options);
  Net net(inputs, net_options);
  FillInputs(net);
  ProbeResult result;
  if (options.weights) {
    result.weights = net.LoadWeights(*options.weights);
  } else {
    FillParameters(net);
  }
  result.loss = net.Forward();
  for (const std::string& name : net.blob_names()) {
    const Tensor blob = net.blob(name);
    result.blobs.push_back(Summarise(name, blob.shape(), blob, options.head));
  }
  if (options.backward) {
    net.ClearGradients();
    net.Backward();
    for (const Node& node : net.compiled().graph.nodes) {
      for (size_t b = 0; b < node.params.size(); ++b) {
        const Shape& shape = node.setup->params()[b].shape;
        const Parameter& parameter = net.parameters()[node.params[b]];
        std::vector<float> values(shape.count());
        if (parameter.grad.defined()) parameter.CopyGradTo(values.data());
        result.param_gradients.push_back(Summarise(node.name() + "[" + std::to_string(b) + "]", shape,
                                                   Tensor(values.data(), {shape}), options.head));
      }
    }
  }
  if (json) *json = ToJson(net, result, options.backward);
  return result;
}

}  // namespace crema
