#include "crema/fusion.h"

#include <algorithm>

namespace crema {

namespace {

// See Registry() of registry.cc.
std::vector<const Fusion*>& FusionRegistry() {
  static auto& fusions = *new std::vector<const Fusion*>;
  return fusions;
}

}  // namespace

bool Fusion::Takes(size_t position, std::string_view type) const {
  if (position >= types.size() && !repeats()) return false;
  std::string_view wanted = types[std::min(position, types.size() - 1)];
  if (wanted.ends_with('+')) wanted.remove_suffix(1);
  while (true) {
    const size_t bar = wanted.find('|');
    if (wanted.substr(0, bar) == type) return true;
    if (bar == std::string_view::npos) return false;
    wanted.remove_prefix(bar + 1);
  }
}

const std::vector<const Fusion*>& Fusions() { return FusionRegistry(); }

FusionRegistrar::FusionRegistrar(Fusion fusion) {
  auto& fusions = FusionRegistry();
  // Among equally long ones by name, so that the order of linking does not matter.
  const auto before = [](const Fusion* a, const Fusion* b) {
    return a->types.size() != b->types.size() ? a->types.size() > b->types.size() : a->types < b->types;
  };
  const auto* registered = new Fusion(std::move(fusion));
  fusions.insert(std::upper_bound(fusions.begin(), fusions.end(), registered, before), registered);
}

}  // namespace crema
