#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "compiler/compiler.h"
#include "device/device.h"

namespace crema {

namespace {

// Nanoseconds, as measured on an AMD EPYC of 2023; only what they are to each other matters.
constexpr double kMemoryByte = 0.05;  // that does not stay in the cache, written or read
constexpr double kWeightByte = 0.02;  // that each turn needs anew
constexpr double kKernelByte = 0.1;   // the same of kernels that Winograd's filtering may enlarge
constexpr double kTurn = 4000;        // for a unit to begin

// What a unit's tensors may take in a lane and still be there for the next one.
double CacheBytes() {
  const long second_level = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return 2.0 * static_cast<double>(second_level > 0 ? second_level : 1 << 20);
}

TensorSpec WithRows(TensorSpec spec, int64_t rows) {
  spec.shape.set(0, rows);
  return spec;
}

// A new layer of a node's kind that takes `rows` items; null where it does not do for them what it does for all.
std::unique_ptr<Layer> SetUpFor(const Node& node, int64_t rows, Compilation& c) {
  const LayerSetup& whole = *node.setup;
  std::vector<TensorSpec> bottoms;
  for (int i = 0; i < whole.bottoms(); ++i) bottoms.push_back(WithRows(whole.bottom(i), rows));
  LayerSetup setup(whole.param(), node.phase, std::move(bottoms),
                   [&c, &node](std::string_view field) { return c.Where(node, field); });
  if (!node.members.empty()) {
    setup.set_members({whole.members().begin(), whole.members().end()}, node.members);
  }
  std::unique_ptr<Layer> layer = node.members.empty() ? node.type->create() : node.create();
  try {
    layer->Setup(setup);
  } catch (const UserError&) {
    return nullptr;
  }
  const auto same_shape = [](const ParamRequest& a, const ParamRequest& b) { return a.shape == b.shape; };
  if (!std::equal(setup.params().begin(), setup.params().end(), whole.params().begin(), whole.params().end(),
                  same_shape)) {
    return nullptr;
  }
  for (size_t i = 0; i < whole.top_specs().size(); ++i) {
    if (setup.top_specs()[i] != WithRows(whole.top_specs()[i], rows)) return nullptr;
  }
  return layer;
}

// Finds the cheapest way through the units, whose cost is the time that tensors take between memory and the cache, and
// beginning a unit once more.
class Splitter {
 public:
  explicit Splitter(Compilation& c) : c_(c), graph_(c.net.graph) {}

  void Run() {
    LookAtUnits();
    while (!Split(Cheapest())) {
    }
  }

 private:
  std::vector<BatchPart> Cheapest() const {
    const auto count = static_cast<int>(graph_.order.size());
    std::vector<double> best(count + 1, 0);
    std::vector<Choice> choice(count + 1);
    for (int end = 1; end <= count; ++end) {
      best[end] = best[end - 1] + CostOfAll(units_[end - 1]);
      choice[end] = {end - 1, 0};
      for (const int64_t rows : RowsFor(units_[end - 1])) {
        double inside = 0;
        for (int begin = end - 1; begin >= 0; --begin) {
          const Unit& unit = units_[begin];
          if (!unit.splits || unit.items != units_[end - 1].items) break;
          inside += Cost(unit, rows);
          const double cost = best[begin] + inside + (crossing_[begin] + crossing_[end]) * kMemoryByte;
          if (cost >= best[end]) continue;
          best[end] = cost;
          choice[end] = {begin, rows};
        }
      }
    }
    std::vector<BatchPart> parts;
    for (int end = count; end > 0; end = choice[end].begin) {
      const auto [begin, rows] = choice[end];
      if (rows == 0) continue;
      const int64_t turns = units_[begin].items / rows;
      parts.insert(parts.begin(), {begin, end, rows, turns, static_cast<int>(std::min(lanes_, turns))});
    }
    return parts;
  }

  struct Unit {
    bool splits = false;
    int64_t items = 1;      // of the batch
    double item_bytes = 0;  // that it reads and writes
    double turn = 0;        // how long it takes to begin
  };
  struct Choice {
    int begin = 0;
    int64_t rows = 0;  // 0: the unit before takes the whole batch
  };

  void LookAtUnits() {
    crossing_.assign(graph_.order.size() + 1, 0);
    std::vector<int> made(graph_.values.size(), -1);
    for (size_t at = 0; at < graph_.order.size(); ++at) {
      const Node& node = graph_.unit(graph_.order[at]);
      units_.push_back(Look(node));
      for (int v : node.tops) made[v] = static_cast<int>(at);
    }
    std::vector<int> read(graph_.values.size(), -1);  // last
    for (size_t at = 0; at < graph_.order.size(); ++at) {
      for (int v : graph_.unit(graph_.order[at]).bottoms) read[v] = static_cast<int>(at);
    }
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      if (made[v] < 0) continue;
      for (int at = made[v] + 1; at <= read[v]; ++at) {
        crossing_[at] += static_cast<double>(graph_.values[v].spec.bytes());
      }
    }
  }

  Unit Look(const Node& node) const {
    Unit unit;
    const LayerSetup& setup = *node.setup;
    unit.splits = !setup.is_source() && (setup.is_view() || setup.splits_batch()) && !node.bottoms.empty();
    double bytes = 0;
    for (const auto* values : {&node.bottoms, &node.tops}) {
      for (int v : *values) {
        const TensorSpec& spec = graph_.values[v].spec;
        bytes += static_cast<double>(spec.bytes());
        if (values == &node.bottoms && v == node.bottoms[0] && spec.shape.axes() > 0) unit.items = spec.shape[0];
        unit.splits &= spec.shape.axes() > 0 && spec.shape[0] == unit.items;
      }
    }
    for (const float weight : node.loss_weights) unit.splits &= weight == 0;
    unit.items = std::max<int64_t>(unit.items, 1);
    if (!setup.is_view()) {
      unit.item_bytes = bytes / static_cast<double>(unit.items);
      unit.turn = kTurn;
    }
    for (int p : node.params) {
      const TensorSpec& spec = graph_.params[p].spec;
      const bool is_kernel = spec.shape.axes() > 2 && spec.shape[1] > 1 && spec.shape.count(2) > 1;
      unit.turn += static_cast<double>(spec.bytes()) * (is_kernel ? kKernelByte : kWeightByte);
    }
    return unit;
  }

  // Turns for all threads, and as many for each of them.
  std::vector<int64_t> RowsFor(const Unit& unit) const {
    std::vector<int64_t> list;
    if (!unit.splits) return list;
    for (int64_t rows = 1; rows <= unit.items / std::max<int64_t>(lanes_, 2); ++rows) {
      const int64_t turns = unit.items / rows;
      if (unit.items % rows == 0 && (turns % lanes_ == 0 || turns >= 4 * lanes_)) list.push_back(rows);
    }
    return list;
  }

  // Of the whole batch, `rows` items at a time in each lane.
  double Cost(const Unit& unit, int64_t rows) const {
    const auto items = static_cast<double>(unit.items), turns = items / static_cast<double>(rows);
    return BeyondCache(unit, static_cast<double>(rows)) + turns / static_cast<double>(lanes_) * unit.turn;
  }
  double CostOfAll(const Unit& unit) const {
    return BeyondCache(unit, static_cast<double>(unit.items) / static_cast<double>(lanes_)) + unit.turn;
  }
  double BeyondCache(const Unit& unit, double rows) const {
    const double bytes = static_cast<double>(unit.items) * unit.item_bytes * kMemoryByte;
    return std::clamp(rows * unit.item_bytes / cache_ - 1, 0.0, 1.0) * bytes;
  }

  // False where a unit does not run on fewer items, which is then known of it.
  bool Split(std::vector<BatchPart> parts) {
    std::vector<std::vector<std::unique_ptr<Layer>>> layers(units_.size());
    for (const BatchPart& part : parts) {
      for (int at = part.begin; at < part.end; ++at) {
        for (int lane = 0; lane < part.lanes; ++lane) {
          layers[at].push_back(SetUpFor(graph_.unit(graph_.order[at]), part.rows, c_));
          units_[at].splits = layers[at].back() != nullptr;
          if (!units_[at].splits) return false;
        }
      }
    }
    for (BatchPart& part : parts) {
      for (int at = part.begin; at < part.end; ++at) {
        Node& node = graph_.unit(graph_.order[at]);
        node.layer = std::move(layers[at].front());
        layers[at].erase(layers[at].begin());
        node.other_lanes = std::move(layers[at]);
        node.rows = part.rows;
      }
      part.inner = InnerValues(part);
    }
    graph_.parts = std::move(parts);
    return true;
  }

  // What nothing outside of the part reads.
  std::vector<int> InnerValues(const BatchPart& part) const {
    std::vector<bool> inside(graph_.nodes.size(), false), inner(graph_.values.size(), false);
    for (int at = part.begin; at < part.end; ++at) {
      const Node& unit = graph_.unit(graph_.order[at]);
      if (unit.members.empty()) inside[graph_.order[at]] = true;
      for (int member : unit.members) inside[member] = true;
    }
    std::vector<int> made;
    for (int at = part.begin; at < part.end; ++at) {
      for (int v : graph_.unit(graph_.order[at]).tops) {
        const Value& value = graph_.values[v];
        made.push_back(v);
        inner[v] = !value.is_output && !value.uses.empty() &&
                   std::all_of(value.uses.begin(), value.uses.end(), [&](const auto& use) { return inside[use.node]; });
      }
    }
    // A view and what it is a view of are the same memory.
    for (bool changes = true; changes;) {
      changes = false;
      for (int at = part.begin; at < part.end; ++at) {
        const Node& unit = graph_.unit(graph_.order[at]);
        if (!unit.setup->is_view()) continue;
        std::vector<int> same = unit.tops;
        same.push_back(unit.bottoms[0]);
        if (std::all_of(same.begin(), same.end(), [&](int v) { return inner[v]; })) continue;
        for (int v : same) {
          changes = changes || inner[v];
          inner[v] = false;
        }
      }
    }
    std::erase_if(made, [&](int v) { return !inner[v]; });
    return made;
  }

  Compilation& c_;
  Graph& graph_;
  const double cache_ = CacheBytes();
  const int64_t lanes_ = omp_get_max_threads();
  std::vector<Unit> units_;       // by place in the order
  std::vector<double> crossing_;  // bytes that are made before such a place and read behind it
};

}  // namespace

void SplitBatch(Compilation& c) {
  const Device* const device = c.options.context.device;  // none where a net is only looked at
  if (c.options.backward || c.options.keep_all || !device || device->type() != DeviceType::kCpu) return;
  Splitter(c).Run();
}

}  // namespace crema
