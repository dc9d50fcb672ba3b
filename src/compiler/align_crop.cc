// The offset of a Crop by coordinate maps, as Caffe's branch "future" and its coord_map.py have it: both bottoms are
// made of some blob, and what stands at one place of it stands at a place of each of them. The cut begins where the
// second bottom's first element stands in the first one.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <ranges>
#include <string>

#include "base/listed.h"
#include "compiler/compiler.h"

namespace crema {

namespace {

// From a blob to one that is made of it.
using CoordinateMap = std::vector<LayerSetup::AxisMap>;

// First `inner`, then `outer`.
CoordinateMap Composed(const CoordinateMap& outer, const CoordinateMap& inner) {
  CoordinateMap map;
  for (size_t i = 0; i < outer.size(); ++i) {
    map.push_back({outer[i].scale * inner[i].scale, outer[i].scale * inner[i].shift + outer[i].shift});
  }
  return map;
}

// The ways back from a blob.
struct Ways {
  std::map<int, CoordinateMap> maps;  // from values to the blob
  std::vector<int> values;            // those, nearest first
  std::vector<int> ends;              // nodes that have no map
};

// How a node maps its bottoms to its tops; none where it does not say.
std::optional<CoordinateMap> MapOf(const Graph& graph, const Node& node, size_t axes) {
  const LayerSetup& setup = *node.setup;
  if (setup.coordinate_map()) return setup.coordinate_map();
  const auto shape = [&](int value) { return graph.values[value].spec.shape; };
  if (node.bottoms.empty() || node.tops.empty()) return std::nullopt;
  const bool same = shape(node.bottoms[0]) == shape(node.tops[0]);
  if (!setup.in_place() && !(setup.is_view() && same)) return std::nullopt;
  return CoordinateMap(axes);
}

// Without an offset, where the crops of some forks find theirs.
bool CutsFrom0(const Node& node) { return node.type->name == "Crop" && node.param->crop_param().offset_size() == 0; }

// through_all: also through such crops, whose offset is 0 here.
Ways WaysBack(const Graph& graph, int blob, bool through_all) {
  const int axes = graph.values[blob].spec.shape.axes();
  Ways ways;
  ways.maps[blob] = CoordinateMap(axes - 2);
  ways.values = {blob};
  for (size_t next = 0; next < ways.values.size(); ++next) {
    const Value& value = graph.values[ways.values[next]];
    const Node& node = graph.nodes[value.producer];
    if (node.bottoms.empty()) continue;
    if (!through_all && CutsFrom0(node)) continue;
    const std::optional<CoordinateMap> map = MapOf(graph, node, axes - 2);
    const bool mapped = map && static_cast<int>(map->size()) == axes - 2;
    if (!mapped) ways.ends.push_back(value.producer);
    // Convolution makes each top of the bottom of its number.
    const bool paired = node.tops.size() > 1 && node.tops.size() == node.bottoms.size();
    for (size_t i = 0; mapped && i < node.bottoms.size(); ++i) {
      const int bottom = node.bottoms[i];
      if (!node.setup->has_gradient(static_cast<int>(i)) || graph.values[bottom].spec.shape.axes() != axes) continue;
      if (paired && static_cast<int>(i) != value.producer_top) continue;
      if (!ways.maps.emplace(bottom, Composed(ways.maps[ways.values[next]], *map)).second) continue;
      ways.values.push_back(bottom);
    }
  }
  return ways;
}

std::string Quoted(const std::string& name) { return "\"" + name + "\""; }

struct Alignment {
  std::vector<int64_t> offsets;
  std::string problem;  // where there are none
};

std::string EndsOf(const Graph& graph, const Ways& ways) {
  const auto name = [&](int end) { return Quoted(graph.nodes[end].name()) + " (" + graph.nodes[end].type->name + ")"; };
  return Listed(ways.ends | std::views::transform(name), {.most = kAllNames});
}

std::string NumberText(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

Alignment Align(const Graph& graph, int whole, int wanted, bool through_all) {
  const std::string first = Quoted(graph.values[whole].name), second = Quoted(graph.values[wanted].name);
  const Ways from = WaysBack(graph, whole, through_all), to = WaysBack(graph, wanted, through_all);
  const auto common = std::find_if(to.values.begin(), to.values.end(), [&](int v) { return from.maps.contains(v); });
  if (common == to.values.end()) {
    std::string ends = EndsOf(graph, from);
    const std::string others = EndsOf(graph, to);
    if (!others.empty() && others != ends) ends += (ends.empty() ? "" : ", ") + others;
    return {{},
            "no blob is found that both " + first + " and " + second + " are made of" +
                (ends.empty() ? "" : ": these layers have no coordinate map: " + ends)};
  }
  const CoordinateMap &a = from.maps.at(*common), &b = to.maps.at(*common);
  Alignment found;
  for (size_t i = 0; i < a.size(); ++i) {
    const std::string axis = "axis " + std::to_string(i + 2) + ": ";
    constexpr double kNear = 1e-6;
    if (std::abs(a[i].scale / b[i].scale - 1) > kNear) {
      return {{},
              axis + "an element of " + Quoted(graph.values[*common].name) + ", of which both are made, is " +
                  NumberText(a[i].scale) + " of " + first + ", but " + NumberText(b[i].scale) + " of " + second +
                  "; scales must be equal"};
    }
    const double offset = a[i].shift - b[i].shift, whole_number = std::round(offset);
    if (std::abs(offset - whole_number) > kNear || whole_number < 0) {
      return {{},
              axis + "the first element of " + second + " stands at " + NumberText(offset) + " of " + first +
                  ", which is no offset; change pad of a layer between them"};
    }
    found.offsets.push_back(static_cast<int64_t>(whole_number));
  }
  return found;
}

}  // namespace

bool AlignCrop(Compilation& c, const Node& node) {
  const bool named = node.type->name == "AutoCrop";
  const CropParameter& param = node.param->crop_param();
  if ((!named && node.type->name != "Crop") || node.bottoms.size() != 2 || param.offset_size() > 0) return true;
  const Shape &whole = c.net.graph.values[node.bottoms[0]].spec.shape,
              &wanted = c.net.graph.values[node.bottoms[1]].spec.shape;
  const bool asked = named || param.auto_(), images = whole.axes() > 2 && whole.axes() == wanted.axes();
  const auto error = [&](const char* field, const std::string& problem) {
    c.diagnostics.Error(c.Where(node, field), "layer \"" + node.name() + "\" (" + node.type->name + "): " + problem);
    return false;
  };
  if (asked && (!images || whole.CanonicalAxis(param.axis()) != 2)) {
    return error("crop_param.axis", images ? "only height and width can be aligned; remove axis, or give offset"
                                           : "only images can be aligned; give offset");
  }
  if (!images) return true;
  const Alignment found = Align(c.net.graph, node.bottoms[0], node.bottoms[1], asked);
  if (asked) {
    if (!found.problem.empty()) return error("type", "cannot be aligned: " + found.problem + "; give offset");
    CropParameter* aligned = c.net.file.net.mutable_layer(node.index_in_file)->mutable_crop_param();
    aligned->clear_auto_();
    for (const int64_t offset : found.offsets) aligned->add_offset(static_cast<uint32_t>(offset));
    return true;
  }
  bool cuts = false;
  for (int i = 2; i < whole.axes(); ++i) cuts |= whole[i] > wanted[i];
  const auto none = [](int64_t offset) { return offset == 0; };
  if (!cuts || std::all_of(found.offsets.begin(), found.offsets.end(), none)) return true;
  c.diagnostics.Warning(
      c.Where(node, "type"),
      "layer \"" + node.name() + "\" (Crop): cuts from offset 0 on, but by the layers between them " +
          Quoted(c.net.graph.values[node.bottoms[1]].name) + " begins at [" + Listed(found.offsets) + "] of " +
          Quoted(c.net.graph.values[node.bottoms[0]].name) +
          ", which is where Caffe's branch \"future\" and HED cut; write crop_param { auto: true } for that, or "
          "offset: 0");
  return true;
}

}  // namespace crema
