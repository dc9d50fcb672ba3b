#include <algorithm>
#include <array>

#include "compiler/compiler.h"
#include "device/device.h"

namespace crema {

namespace {

using Want = LayerSetup::ChannelsLast;

class LayoutChooser {
 public:
  explicit LayoutChooser(Graph& graph) : graph_(graph), unit_of_(graph.nodes.size()) {
    for (int u : graph.order) {
      if (u < graph.size()) unit_of_[u] = u;
      for (int member : graph.unit(u).members) unit_of_[member] = u;
    }
  }

  void Run(Precision precision) {
    bool any = false;
    for (int u : graph_.order) {
      Node& node = graph_.unit(u);
      any |= node.setup->channels_last() == Want::kPreferred;
      node.layout = node.setup->channels_last() == Want::kNever ? Layout::kPlain : Layout::kChannelsLast;
    }
    if (!any) {
      for (int u : graph_.order) graph_.unit(u).layout = Layout::kPlain;
    }
    // Each layer that takes both goes where fewer bytes are reordered, until none moves; both ways along the net, so
    // that a decision travels a chain of layers in one sweep. Every move lowers the total, so this ends.
    for (bool moved = any; moved;) {
      moved = false;
      for (int u : graph_.order) moved |= Move(graph_.unit(u));
      for (auto u = graph_.order.rbegin(); u != graph_.order.rend(); ++u) moved |= Move(graph_.unit(*u));
    }
    if (precision == Precision::kBF16 || precision == Precision::kFP16) {
      for (int u : graph_.order) {
        Node& node = graph_.unit(u);
        if (node.layout != Layout::kChannelsLast || !node.setup->half_precision()) continue;
        node.image_type = precision == Precision::kBF16 ? DType::kBF16 : DType::kF16;
      }
    }
    for (Value& value : graph_.values) {
      if (value.producer >= 0) value.spec = Unit(value.producer).Laid(value.spec);
    }
  }

 private:
  bool Move(Node& node) const {
    if (node.setup->channels_last() != Want::kAllowed) return false;
    std::array<size_t, 2> cost{};
    const Layout before = node.layout;
    for (Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
      node.layout = layout;
      for (int v : node.bottoms) cost[static_cast<int>(layout)] += ReorderedBytes(v);
      for (int v : node.tops) cost[static_cast<int>(layout)] += ReorderedBytes(v);
    }
    node.layout = before;
    const size_t here = cost[static_cast<int>(before)], there = cost[1 - static_cast<int>(before)];
    if (there >= here) return false;
    node.layout = static_cast<Layout>(1 - static_cast<int>(before));
    return true;
  }

  // What is reordered, in one pass forward, between the value's producer and all of its readers.
  size_t ReorderedBytes(int v) const {
    const Value& value = graph_.values[v];
    if (!IsImage(value.spec) || value.producer < 0) return 0;
    const Layout layout = Unit(value.producer).layout;
    bool other = value.uses.empty() && layout != Layout::kPlain;
    for (const Value::Use& use : value.uses) {
      const Node& reader = Unit(use.node);
      other |= !reader.setup->is_source() && reader.layout != layout;  // sources know shapes, and read nothing
    }
    return other ? value.spec.bytes() : 0;
  }

  // What runs a layer.
  const Node& Unit(int n) const { return graph_.unit(unit_of_[n]); }

  Graph& graph_;
  std::vector<int> unit_of_;  // by node
};

}  // namespace

void ChooseLayouts(Compilation& c) {
  Precision precision = c.options.precision;
  if (precision == Precision::kBF16 && !c.options.context.device->ComputesBFloat16()) {
    c.diagnostics.Warning({}, "this device does not compute in bf16 (CPUs need AVX-512 BF16); going on in f32");
    precision = Precision::kF32;
  }
  if (precision == Precision::kTF32 && !c.options.context.device->ComputesTF32()) {
    c.diagnostics.Warning(
        {}, "this device does not multiply in TF32 (GPUs of compute capability 8.0 on do); going on in f32");
    precision = Precision::kF32;
  }
  if (precision == Precision::kFP16 && !c.options.context.device->ComputesFloat16()) {
    c.diagnostics.Warning(
        {},
        "this device does not compute in FP16 (GPUs of compute capability 5.3 on do; CPUs with AVX-512 "
        "BF16 compute in BF16: set precision: BF16 there); going on in f32");
    precision = Precision::kF32;
  }
  c.net.graph.factors = precision == Precision::kBF16   ? Factors::kBF16
                        : precision == Precision::kFP16 ? Factors::kF16
                        : precision == Precision::kTF32 ? Factors::kTF32
                                                        : Factors::kF32;
  LayoutChooser(c.net.graph).Run(precision);
}

}  // namespace crema
