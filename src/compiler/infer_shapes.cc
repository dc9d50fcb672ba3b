#include <algorithm>
#include <limits>
#include <map>

#include "base/check.h"
#include "base/listed.h"
#include "base/paths.h"
#include "base/suggest.h"
#include "compiler/compiler.h"
#include "graph/files_written.h"

namespace crema {

namespace {

// An earlier layer failed: what this one reads has no shape to check against.
bool InputsKnown(const Graph& graph, const Node& node) {
  return std::all_of(node.bottoms.begin(), node.bottoms.end(), [&](int v) { return graph.values[v].shape_known; });
}

// What no tensor can be; empty where it can. Kernels hold kMaxAxes axes, and bytes are counted in int64_t.
std::string ShapeProblem(const Shape& shape) {
  if (shape.axes() > Shape::kMaxAxes) {
    return "would have " + std::to_string(shape.axes()) + " axes, but at most " + std::to_string(Shape::kMaxAxes) +
           " are possible";
  }
  constexpr int64_t kMostElements = int64_t{1} << 40;
  int64_t count = 1;
  for (const int64_t extent : shape.dims()) {
    if (extent < 0 || __builtin_mul_overflow(count, std::max<int64_t>(1, extent), &count) || count > kMostElements) {
      return "would be " + shape.ToString() + ", more elements than a machine holds";
    }
  }
  return {};
}

// Kernels count along an axis, and the elements of one item of a batch, in 32 bits.
std::string TopProblem(const Shape& shape) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  std::string problem = ShapeProblem(shape);
  if (!problem.empty() || shape.count() == 0) return problem;
  const auto& dims = shape.dims();
  const bool fits = std::all_of(dims.begin(), dims.end(), [](int64_t extent) { return extent <= kMost; });
  if (fits && (shape.axes() == 0 || shape.count() / shape[0] <= kMost)) return {};
  return "would be " + shape.ToString() + ", but an axis has at most " + std::to_string(kMost) +
         " elements, and so has one item of a batch";
}

bool ShapesArePossible(Compilation& c, const Node& node) {
  const auto report = [&](const std::string& what, const std::string& problem) {
    if (problem.empty()) return true;
    c.diagnostics.Error(c.Where(node, "type"),
                        "layer \"" + node.name() + "\" (" + node.type->name + "): " + what + " " + problem);
    return false;
  };
  bool possible = true;
  for (size_t i = 0; i < node.tops.size(); ++i) {
    CREMA_CHECK(node.setup->top_set()[i]) << node.type->name << " did not set the shape of top " << i;
    possible &=
        report("top \"" + c.net.graph.values[node.tops[i]].name + "\"", TopProblem(node.setup->top_specs()[i].shape));
  }
  for (size_t i = 0; i < node.setup->params().size(); ++i) {
    possible &= report("parameter " + std::to_string(i), ShapeProblem(node.setup->params()[i].shape));
  }
  return possible;
}

void SetLossWeights(Compilation& c, Node& node) {
  node.loss_weights.assign(node.tops.size(), 0);
  if (node.setup->is_loss() && !node.tops.empty()) node.loss_weights[0] = 1;
  const auto& given = node.param->loss_weight();
  if (!given.empty()) std::copy(given.begin(), given.end(), node.loss_weights.begin());
  for (float weight : node.loss_weights) {
    if (weight != 0 && !node.setup->is_differentiable() && node.param->loss_weight_size() > 0) {
      c.diagnostics.Error(c.Where(node, "loss_weight"),
                          "layer \"" + node.name() + "\" (" + node.type->name +
                              ") has no gradient and cannot be a loss; remove loss_weight");
      return;
    }
  }
}

bool OverridesArePossible(Compilation& c) {
  for (const auto& [name, shape] : c.options.shapes) {
    if (std::ranges::all_of(shape.dims(), [](int64_t extent) { return extent > 0; })) continue;
    c.diagnostics.Error({},
                        "--shape=" + name + ": " + shape.ToString() + " has no elements; give extents of at least 1");
  }
  return !c.diagnostics.has_errors();
}

void CheckOverridesAreUsed(Compilation& c) {
  const Graph& graph = c.net.graph;
  for (const auto& [name, shape] : c.options.shapes) {
    std::vector<std::string> blobs;
    for (const Value& value : graph.values) {
      if (value.producer >= 0 && graph.nodes[value.producer].setup && graph.nodes[value.producer].setup->is_source()) {
        blobs.push_back(value.name);
      }
    }
    if (std::find(blobs.begin(), blobs.end(), name) != blobs.end()) {
      c.net.assumed_shapes.emplace_back(name, shape);
    } else {
      std::string remedy = DidYouMean(name, blobs);
      if (remedy.empty() && !blobs.empty()) remedy = "; they make " + Listed(blobs, {.most = kAllNames});
      c.diagnostics.Error(
          {}, "--shape=" + name + "=...: no data layer of this phase makes a blob \"" + name + "\"" + remedy);
    }
  }
}

void WarnOfBlanks(Compilation& c) {
  std::map<int64_t, const Node*> first;  // by the number of classes
  for (const Node& node : c.net.graph.nodes) {
    if (!node.setup || !node.setup->blank()) continue;
    const LayerSetup::Blank& blank = *node.setup->blank();
    const Node& other = *first.try_emplace(blank.classes, &node).first->second;
    const int32_t label = other.setup->blank()->label;
    if (blank.label == label) continue;
    c.diagnostics.Warning(c.Where(node, blank.field),
                          "layer \"" + node.name() + "\" (" + node.type->name + ") takes class " +
                              std::to_string(blank.label) + " of " + std::to_string(blank.classes) +
                              " for the blank, but layer \"" + other.name() + "\" (" + other.type->name + ") class " +
                              std::to_string(label) + "; if both read the same scores, give them one blank_label");
  }
}

// One takes 0 for no, the other for a label that does not count.
void WarnOfLabelsOfTwoKinds(Compilation& c) {
  const Graph& graph = c.net.graph;
  for (const Node& node : graph.nodes) {
    if (node.type->name != "MultiLabelAccuracy" || node.bottoms.size() < 2) continue;
    for (const Value::Use& use : graph.values[node.bottoms[1]].uses) {
      const Node& loss = graph.nodes[use.node];
      if (loss.type->name != "SigmoidCrossEntropyLoss" || use.bottom != 1) continue;
      const std::string& label = graph.values[node.bottoms[1]].name;
      c.diagnostics.Warning(
          c.Where(node, "bottom"),
          "layer \"" + node.name() + "\" (" + node.type->name + ") and layer \"" + loss.name() + "\" (" +
              loss.type->name + ") both read \"" + label +
              "\": to the loss 0 means no, here it means that a label does not count, and no is below 0, so that "
              "without such labels only the yes are measured; for this layer make labels of -1 and 1 of those of 0 and "
              "1: Power with power_param { scale: 2 shift: -1 }");
    }
  }
}

void RefuseOverwriting(Compilation& c) {
  for (const Overwriting& found : FindOverwriting(c.net.graph, c.net.graph)) {
    c.diagnostics.Error(c.Where(*found.writer, found.file->field), Describe(found));
  }
}

}  // namespace

void InferShapes(Compilation& c) {
  if (!OverridesArePossible(c)) return;
  Graph& graph = c.net.graph;
  std::vector<std::string> folders = c.options.search_folders;
  if (c.net.file.source) {
    const std::string file = c.net.file.source->Field({}).file;
    if (!file.empty()) folders.push_back(DirectoryOf(file));
  }
  for (Node& node : graph.nodes) {
    if (!InputsKnown(graph, node)) continue;
    std::vector<TensorSpec> bottoms;
    for (int v : node.bottoms) bottoms.push_back(graph.values[v].spec);
    if (!AlignCrop(c, node)) continue;
    node.layer = node.type->create();
    node.setup = std::make_unique<LayerSetup>(*node.param, node.phase, std::move(bottoms),
                                              [&c, &node](std::string_view field) { return c.Where(node, field); });
    node.setup->set_shape_overrides(c.options.shapes);
    node.setup->set_search_folders(folders);
    node.setup->set_needs_data(c.options.needs_data);
    try {
      node.layer->Setup(*node.setup);
    } catch (const UserError& error) {
      for (const Diagnostic& d : error.diagnostics()) c.diagnostics.Error(d.where, d.message);
      node.setup.reset();
      continue;
    }
    for (const Diagnostic& warning : node.setup->warnings()) c.diagnostics.Warning(warning.where, warning.message);
    SetLossWeights(c, node);
    if (!ShapesArePossible(c, node)) {
      node.setup.reset();
      continue;
    }
    for (size_t i = 0; i < node.tops.size(); ++i) {
      Value& value = graph.values[node.tops[i]];
      value.spec = node.setup->top_specs()[i];
      value.shape_known = true;
    }
  }
  WarnOfBlanks(c);
  WarnOfLabelsOfTwoKinds(c);
  CheckDetectors(c);
  RefuseOverwriting(c);
  if (!c.diagnostics.has_errors()) CheckOverridesAreUsed(c);
}

}  // namespace crema
