#include <algorithm>
#include <set>
#include <string>

#include "base/listed.h"
#include "base/lower_case.h"
#include "base/suggest.h"
#include "compiler/compiler.h"
#include "compiler/selection.h"
#include "schema/types_of_forks.h"
#include "schema/upgrade.h"

namespace crema {

namespace {

// A rule is met when every field it sets holds.
bool Meets(const NetState& state, const NetStateRule& rule) {
  const auto has_stage = [&](const std::string& stage) {
    return std::find(state.stage().begin(), state.stage().end(), stage) != state.stage().end();
  };
  if (rule.has_phase() && rule.phase() != state.phase()) return false;
  if (rule.has_min_level() && state.level() < rule.min_level()) return false;
  if (rule.has_max_level() && state.level() > rule.max_level()) return false;
  return std::all_of(rule.stage().begin(), rule.stage().end(), has_stage) &&
         std::none_of(rule.not_stage().begin(), rule.not_stage().end(), has_stage);
}

// What does the work of a layer in Python, where that is known.
std::string OfPython(const LayerParameter& layer) {
  const PythonParameter& python = layer.python_param();
  const std::string named = "layer \"" + layer.name() + "\"", no_python = ", and crema runs no Python; ";
  if (python.module() == "roi_data_layer.layer") {
    return named + " reads images and boxes by Python code (" + python.module() + ")" + no_python +
           "make a database with convert_annoset and let a layer of type \"AnnotatedData\" make " +
           (layer.top_size() == 3 ? "the same three tops" : "images and boxes") + " of it (docs/detection.md)";
  }
  if (python.layer().ends_with("SegDataLayer") && layer.top_size() == 2) {
    return named + " reads images and label images by Python code (" + python.module() + ", of FCN)" + no_python +
           "list them in a file and let a layer of type \"ImageSegData\" make the same two tops of it "
           "(docs/segmentation.md)";
  }
  if (LowerCase(python.module() + python.layer()).find("multilabel") != std::string::npos && layer.top_size() == 2) {
    return named + " reads images with several labels each by Python code (" + python.module() + ")" + no_python +
           "list each image with its labels, and let a layer of type \"ImageData\" with label_count, or Data on what "
           "convert_imageset --label_count makes, give the same two tops (docs/data.md#several-labels)";
  }
  if (python.layer() == "EuclideanLossLayer") {
    return named + " is class \"EuclideanLossLayer\" of the Python module \"" + python.module() + "\"" + no_python +
           "type: \"EuclideanLoss\" computes the same";
  }
  return named + " (Python) is class \"" + python.layer() + "\" of the Python module \"" + python.module() +
         "\", and crema runs no Python" + kWriteLayer + ", where param_str of python_param can be read";
}

std::string UnknownType(const LayerParameter& layer) {
  const std::string& type = layer.type();
  if (type == "Python") return OfPython(layer);
  if (type == "Filter") {
    return "layer type \"Filter\" is not supported: how many items its tops hold depends on the data, and shapes are "
           "static here; keep all items and mask those that do not count: multiply them by their selector (Eltwise, "
           "operation: PROD), or give them a label that the loss leaves out (loss_param { ignore_label })";
  }
  if (const TypeOfFork* of_fork = FindTypeOfFork(type)) return AdviceOn(*of_fork);
  if (const std::string today = TypeOfOldName(type); !today.empty() && today != type) {
    return "there is no layer type \"" + type + "\"; write type: \"" + today + "\"";
  }
  std::vector<std::string> names;
  for (const LayerType* known : LayerTypes()) names.push_back(known->name);
  const std::string hint = DidYouMean(type, names);
  return "there is no layer type \"" + type + "\"" +
         (hint.empty() ? "; `crema compile --list_layers` names those there are" : hint);
}

constexpr const char* kQuantization = "quantization_param";

// Warns about *_param messages that the layer's type does not read.
void WarnUnreadMessages(Compilation& c, const Node& node) {
  const auto* reflection = node.param->GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(*node.param, &fields);
  for (const auto* field : fields) {
    const std::string name(field->name());
    if (field->is_repeated() || !name.ends_with("_param") || name == kQuantization) continue;
    const auto& reads = node.type->reads;
    if (std::find(reads.begin(), reads.end(), name) != reads.end()) continue;
    if (name == "lstm_param" && node.type->name == "LSTM" && !node.param->has_recurrent_param()) {
      c.diagnostics.Error(c.Where(node, name), "layer \"" + node.name() +
                                                   "\" (LSTM) reads recurrent_param; lstm_param is that of type "
                                                   "\"Lstm\", of caffe-lstm: rename one of the two");
      continue;
    }
    c.diagnostics.Warning(c.Where(node, name), "layer \"" + node.name() + "\" (" + node.type->name +
                                                   ") does not read " + name + "; it has no effect here");
  }
}

void WarnUnknownStages(Compilation& c, const NetState& state) {
  for (const std::string& stage : state.stage()) {
    const std::string doubt = DoubtAboutStage(c.net.file.net, stage);
    if (doubt.empty()) continue;
    c.diagnostics.Warning(c.net.file.source ? c.net.file.source->Field("state") : Location{}, doubt);
  }
}

// The first field of `message` that asks for halves, as NVIDIA's fork has them; empty where there is none.
std::string FieldOfHalves(const google::protobuf::Message& message) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->enum_type() != NumberType::Type_descriptor()) continue;
    if (message.GetReflection()->GetEnumValue(message, field) == NumberType::FLOAT16) return std::string(field->name());
  }
  return {};
}

// Warns once where a net of that fork asks for halves and is not computed in 16 bits.
void WarnAboutHalves(Compilation& c) {
  if (c.options.precision == Precision::kBF16 || c.options.precision == Precision::kFP16) return;
  const NetParameter& file = c.net.file.net;
  std::string field = FieldOfHalves(file);
  Location where = c.net.file.source ? c.net.file.source->Field(field) : Location{};
  for (const Node& node : c.net.graph.nodes) {
    if (!field.empty()) break;
    field = FieldOfHalves(*node.param);
    where = c.Where(node, field);
  }
  if (field.empty()) return;
  c.diagnostics.Warning(where, field +
                                   ": FLOAT16 does not choose what is computed in; write precision: FP16, or BF16 on " +
                                   "CPUs, into the solver, or give --precision");
}

// Warns once where a net reads maps of edges, as forks do in which the sigmoid's loss is another one, and does not say
// which one is meant.
void WarnAboutBalance(Compilation& c) {
  const auto& nodes = c.net.graph.nodes;
  const auto reads = [](const Node& node) { return node.type->name == "ImageLabelmapData"; };
  const auto leaves_open = [](const Node& node) {
    return node.type->name == "SigmoidCrossEntropyLoss" && !node.param->loss_param().has_class_balanced();
  };
  const auto loss = std::find_if(nodes.begin(), nodes.end(), leaves_open);
  if (loss == nodes.end() || std::none_of(nodes.begin(), nodes.end(), reads)) return;
  c.diagnostics.Warning(
      c.Where(*loss, "type"),
      "layer \"" + loss->name() +
          "\" (SigmoidCrossEntropyLoss): every pixel counts alike, where in "
          "the forks of HED and RCF, which have ImageLabelmapData, the few pixels on edges weigh as much as "
          "all others; write loss_param { class_balanced: true } in each such layer for that, or false "
          "(docs/segmentation.md)");
}

// Warns once where a net of Intel's fork asks for whole numbers.
void WarnAboutQuantization(Compilation& c) {
  const auto& nodes = c.net.graph.nodes;
  const auto asks = [](const Node& node) { return node.param->has_quantization_param(); };
  const auto first = std::find_if(nodes.begin(), nodes.end(), asks);
  if (first == nodes.end()) return;
  const auto more = std::count_if(first + 1, nodes.end(), asks);
  c.diagnostics.Warning(c.Where(*first, kQuantization), std::string("quantization_param has no effect") +
                                                            (more > 0 ? ", also of other layers" : "") +
                                                            ": nothing is rounded to whole numbers");
}

void CheckOutputsExist(Compilation& c) {
  std::vector<std::string> names;
  std::string all;
  for (const Node& node : c.net.graph.nodes) {
    for (const std::string& top : node.param->top()) {
      if (std::find(names.begin(), names.end(), top) != names.end()) continue;
      names.push_back(top);
      all += (all.empty() ? "\"" : ", \"") + top + "\"";
    }
  }
  const Location where{c.net.file.source ? c.net.file.source->Field({}).file : ""};
  for (const std::string& output : c.options.outputs) {
    if (std::find(names.begin(), names.end(), output) != names.end()) continue;
    const std::string hint = DidYouMean(output, names);
    c.diagnostics.Error(where, "the net has no blob \"" + output + "\"" + (hint.empty() ? "; it has " + all : hint));
  }
}

// Leaves out what NetOptions::outputs do not need. Inputs stay, so that who writes them finds them, and so do earlier
// layers of the same name, by whose number weights are found, and those that may own a parameter that is needed.
void KeepWhatOutputsNeed(Compilation& c) {
  if (c.options.outputs.empty()) return;
  CheckOutputsExist(c);
  std::vector<Node>& nodes = c.net.graph.nodes;
  std::set<std::string> blobs(c.options.outputs.begin(), c.options.outputs.end()), layers, parameters;
  std::vector<Node> kept;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const LayerParameter& layer = *node->param;
    const bool needed =
        layer.bottom().empty() || layers.contains(layer.name()) ||
        std::any_of(layer.top().begin(), layer.top().end(), [&](const auto& top) { return blobs.contains(top); }) ||
        std::any_of(layer.param().begin(), layer.param().end(),
                    [&](const ParamSpec& param) { return parameters.contains(param.name()); });
    if (!needed) continue;
    blobs.insert(layer.bottom().begin(), layer.bottom().end());
    layers.insert(layer.name());
    for (const ParamSpec& param : layer.param()) {
      if (!param.name().empty()) parameters.insert(param.name());
    }
    kept.push_back(std::move(*node));
  }
  std::reverse(kept.begin(), kept.end());
  nodes = std::move(kept);
}

}  // namespace

std::string DoubtAboutStage(const NetParameter& net, const std::string& stage) {
  std::set<std::string> names;
  for (const LayerParameter& layer : net.layer()) {
    for (const auto* rules : {&layer.include(), &layer.exclude()}) {
      for (const NetStateRule& rule : *rules) {
        names.insert(rule.stage().begin(), rule.stage().end());
        names.insert(rule.not_stage().begin(), rule.not_stage().end());
      }
    }
  }
  if (names.contains(stage)) return {};
  return "no rule of the net names stage \"" + stage + "\"" + DidYouMean(stage, {names.begin(), names.end()}) + "; " +
         (names.empty() ? "its layers are the same in all stages" : "its rules know " + Listed(names));
}

NetState StateOf(const NetParameter& file, const NetOptions& options) {
  NetState state = file.state();
  state.set_phase(options.phase);
  if (options.level != 0) state.set_level(options.level);
  for (const std::string& stage : options.stages) state.add_stage(stage);
  return state;
}

bool TakesPart(const NetState& state, const LayerParameter& layer) {
  const auto meets = [&](const NetStateRule& rule) { return Meets(state, rule); };
  if (layer.include_size() > 0) return std::any_of(layer.include().begin(), layer.include().end(), meets);
  return std::none_of(layer.exclude().begin(), layer.exclude().end(), meets);
}

const LayerParameter* MakerOf(const NetParameter& net, const NetState& state, const std::string& blob) {
  const LayerParameter* maker = nullptr;
  for (const LayerParameter& layer : net.layer()) {
    if (TakesPart(state, layer) && std::count(layer.top().begin(), layer.top().end(), blob) > 0) maker = &layer;
  }
  return maker;
}

void SelectLayers(Compilation& c) {
  const NetParameter& file = c.net.file.net;
  const NetState state = StateOf(file, c.options);
  WarnUnknownStages(c, state);

  Graph& graph = c.net.graph;
  graph.name = file.name();
  graph.phase = c.options.phase;
  for (int i = 0; i < file.layer_size(); ++i) {
    const LayerParameter& layer = file.layer(i);
    Node node;
    node.index_in_file = i;
    node.param = &layer;
    node.phase = layer.has_phase() ? layer.phase() : c.options.phase;
    if (layer.include_size() > 0 && layer.exclude_size() > 0) {
      c.diagnostics.Error(c.Where(node, "exclude"),
                          "layer \"" + layer.name() + "\" has both include and exclude rules; keep one kind");
      continue;
    }
    if (!TakesPart(state, layer)) continue;
    node.type = FindLayerType(layer.type());
    if (!node.type) {
      c.diagnostics.Error(c.Where(node, "type"), layer.has_type() && !layer.type().empty()
                                                     ? UnknownType(layer)
                                                     : "layer \"" + layer.name() + "\" has no type");
      continue;
    }
    WarnUnreadMessages(c, node);
    // As old files do; Caffe gives such a loss a top of this name, which is no output.
    if (layer.top_size() == 0 && node.type->name.ends_with("Loss")) {
      c.net.file.net.mutable_layer(i)->add_top(kAutomaticTop);
    }
    graph.nodes.push_back(std::move(node));
  }
  if (!c.diagnostics.has_errors()) KeepWhatOutputsNeed(c);
  WarnAboutHalves(c);
  WarnAboutQuantization(c);
  WarnAboutBalance(c);
  if (graph.nodes.empty() && !c.diagnostics.has_errors()) {
    c.diagnostics.Error(c.net.file.source ? c.net.file.source->Field("name") : Location{},
                        std::string("no layer is left for phase ") + Phase_Name(c.options.phase) +
                            "; check the include and exclude rules, --level and --stage");
  }
}

}  // namespace crema
