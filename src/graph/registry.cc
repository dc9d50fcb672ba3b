#include <algorithm>

#include "base/check.h"
#include "crema/layer.h"

namespace crema {

namespace {

// Function-local: registrars of other translation units may run before this one's globals exist. Never destroyed, so
// that the types stay reachable for leak checkers.
std::vector<const LayerType*>& Registry() {
  static auto& types = *new std::vector<const LayerType*>;
  return types;
}

const auto kByName = [](const LayerType* type, std::string_view name) { return type->name < name; };

std::vector<const Fusion*>& FusionRegistry() {
  static auto& fusions = *new std::vector<const Fusion*>;
  return fusions;
}

}  // namespace

const std::vector<const LayerType*>& LayerTypes() { return Registry(); }

const LayerType* FindLayerType(std::string_view name) {
  const auto at = std::lower_bound(Registry().begin(), Registry().end(), name, kByName);
  return at != Registry().end() && (*at)->name == name ? *at : nullptr;
}

internal::LayerRegistrar::LayerRegistrar(std::string name, std::unique_ptr<Layer> (*create)(),
                                         std::vector<std::string> reads) {
  auto& types = Registry();
  const auto at = std::lower_bound(types.begin(), types.end(), name, kByName);
  CREMA_CHECK(at == types.end() || (*at)->name != name) << "layer type " << name << " is registered twice";
  types.insert(at, new LayerType{std::move(name), create, std::move(reads)});
}

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

internal::FusionRegistrar::FusionRegistrar(Fusion fusion) {
  auto& fusions = FusionRegistry();
  // Among equally long ones by name, so that the order of linking does not matter.
  const auto before = [](const Fusion* a, const Fusion* b) {
    return a->types.size() != b->types.size() ? a->types.size() > b->types.size() : a->types < b->types;
  };
  const auto* registered = new Fusion(std::move(fusion));
  fusions.insert(std::upper_bound(fusions.begin(), fusions.end(), registered, before), registered);
}

}  // namespace crema
