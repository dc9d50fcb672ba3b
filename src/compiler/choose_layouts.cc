#include <algorithm>
#include <set>

#include "compiler/compiler.h"
#include "compiler/minimum_cut.h"
#include "device/device.h"
#include "ops/arrays/bfloat16.h"

namespace crema {

namespace {

using Want = LayerSetup::ChannelsLast;

class LayoutChooser {
 public:
  explicit LayoutChooser(Graph& graph)
      : graph_(graph), unit_of_(graph.nodes.size()), place_of_(graph.nodes.size() + graph.fused.size()) {
    for (int u : graph.order) {
      if (u < graph.size()) unit_of_[u] = u;
      for (int member : graph.unit(u).members) unit_of_[member] = u;
    }
  }

  // prefers: layers that are faster with channels last have them.
  void Run(Precision precision, bool prefers) {
    const bool any = prefers && std::any_of(graph_.order.begin(), graph_.order.end(), [this](int u) {
                       return graph_.unit(u).setup->channels_last() == Want::kPreferred;
                     });
    const std::vector<bool> first = any ? Cheapest() : std::vector<bool>();
    for (int u : graph_.order) {
      graph_.unit(u).layout = any && first[static_cast<size_t>(place_of_[u])] ? Layout::kChannelsLast : Layout::kPlain;
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
  // Units that take both lie so that the fewest bytes are reordered in a pass forward: on the first side of the cut,
  // with those that prefer it, are those with channels last.
  std::vector<bool> Cheapest() {
    MinimumCut cut;
    for (int u : graph_.order) {
      const int place = place_of_[u] = cut.AddNode();
      const Want want = graph_.unit(u).setup->channels_last();
      if (want == Want::kPreferred) cut.AddEdge(MinimumCut::kFirst, place, MinimumCut::kNever);
      if (want == Want::kNever) cut.AddEdge(place, MinimumCut::kSecond, MinimumCut::kNever);
    }
    for (const Value& value : graph_.values) {
      if (IsImage(value.spec) && value.producer >= 0) AddReorders(value, cut);
    }
    return cut.Solve();
  }

  // A value is reordered once for all readers that lie otherwise than its producer, and where it is an output, which is
  // shown plain.
  void AddReorders(const Value& value, MinimumCut& cut) const {
    const int producer = place_of_[unit_of_[value.producer]];
    const auto bytes = static_cast<int64_t>(value.spec.bytes());
    if (value.uses.empty()) return cut.AddEdge(producer, MinimumCut::kSecond, bytes);
    std::set<int> readers;
    for (const Value::Use& use : value.uses) {
      if (!Unit(use.node).setup->is_source()) readers.insert(place_of_[unit_of_[use.node]]);  // they know shapes only
    }
    readers.erase(producer);
    if (readers.empty() && !value.is_output) return;
    const int to_plain = cut.AddNode(), from_plain = cut.AddNode();
    cut.AddEdge(producer, to_plain, bytes);
    cut.AddEdge(from_plain, producer, bytes);
    if (value.is_output) cut.AddEdge(to_plain, MinimumCut::kSecond, MinimumCut::kNever);
    for (const int reader : readers) {
      cut.AddEdge(to_plain, reader, MinimumCut::kNever);
      cut.AddEdge(reader, from_plain, MinimumCut::kNever);
    }
  }

  // What runs a layer.
  const Node& Unit(int n) const { return graph_.unit(unit_of_[n]); }

  Graph& graph_;
  std::vector<int> unit_of_;   // by node
  std::vector<int> place_of_;  // in the cut, by unit
};

}  // namespace

void ChooseLayouts(Compilation& c) {
  Precision precision = c.options.precision;
  if (precision == Precision::kBF16 && !ComputesBFloat16(*c.options.context.device)) {
    c.diagnostics.Warning({}, "this device does not compute in bf16 (CPUs need AVX-512 BF16); going on in f32");
    precision = Precision::kF32;
  } else if (precision == Precision::kBF16 && !GainsByBFloat16(*c.options.context.device)) {
    c.diagnostics.Warning({},
                          "this processor has no AMX, and Intel's without compute no faster in bf16 than in f32: it "
                          "saves memory here, and may take longer");
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
  // cuDNN's kernels that multiply f32 without rounding want plain images, and bring others into that order in each
  // call.
  const Device* const device = c.options.context.device;
  const bool on_gpu = device != nullptr && device->type() == DeviceType::kCuda;
  LayoutChooser(c.net.graph).Run(precision, !on_gpu || c.net.graph.factors != Factors::kF32);
}

}  // namespace crema
