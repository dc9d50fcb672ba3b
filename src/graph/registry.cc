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

}  // namespace crema
