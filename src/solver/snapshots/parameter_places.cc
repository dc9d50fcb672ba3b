#include "solver/snapshots/parameter_places.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "crema/error.h"
#include "graph/program.h"

namespace crema {

namespace {

using PlacesByName = std::map<std::string, std::vector<size_t>>;

PlacesByName PlacesOfOwners(const Net& net) {
  PlacesByName places;
  const auto parameters = net.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) places[parameters[i].name()].push_back(i);
  return places;
}

PlacesByName PlacesOfUsers(const Net& net) {
  PlacesByName places;
  for (const Node& node : net.compiled().graph.nodes) {
    for (size_t i = 0; i < node.params.size(); ++i) {
      places[node.name() + "[" + std::to_string(i) + "]"].push_back(static_cast<size_t>(node.params[i]));
    }
  }
  return places;
}

}  // namespace

std::vector<size_t> ParameterPlaces(const SolverState& state, const std::string& state_path, const Net& net) {
  const PlacesByName owners = PlacesOfOwners(net), users = PlacesOfUsers(net);
  std::map<std::string, size_t> seen;
  std::set<size_t> taken;
  std::vector<size_t> places;
  for (const std::string& name : state.parameter()) {
    const size_t number = seen[name]++;
    const auto owned = owners.find(name), used = users.find(name);
    std::vector<size_t> candidates;
    if (owned != owners.end() && number < owned->second.size()) {
      candidates = {owned->second[number]};
    } else if (used != users.end()) {
      candidates = used->second;
    }
    const auto free = std::find_if(candidates.begin(), candidates.end(), [&](size_t i) { return !taken.contains(i); });
    if (free == candidates.end()) {
      throw UserError(Location{state_path, 0, 0},
                      "is of a net with parameter " + name +
                          ", which this one does not have, or shares otherwise; to start a new training from its "
                          "weights use --weights");
    }
    taken.insert(*free);
    places.push_back(*free);
  }
  return places;
}

}  // namespace crema
