// How several layers become one that does their work in fewer passes over memory, and how that is registered.
#ifndef CREMA_FUSION_H_
#define CREMA_FUSION_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "crema/layer.h"

namespace crema {

// A chain of layers, each reading what the one before makes and nobody else reads, that one Layer can do in fewer
// passes over memory. Its bottoms are those of the chain that come from outside, in the order of the members (but see
// onto_addend); its tops the last member's; its parameters those of the members, in their order, which Setup asks for
// again.
struct Fusion {
  // For each layer of the chain the types it may be of: "Convolution", "ReLU|Sigmoid". A last entry that ends in '+'
  // stands for any number of such layers, at least one.
  std::vector<std::string> types;
  // Layers of a chain that repeats, at most; what follows becomes another chain.
  int most_members = 16;
  // Only where there is no backward pass.
  bool inference_only = false;
  // Whether the members' settings allow it, with the reason in *why_not where they do not; null: always. Of a repeating
  // chain shorter ones are tried next.
  bool (*accepts)(std::span<const LayerSetup* const> members, std::string* why_not) = nullptr;
  // What later members read from outside comes before what the first one reads, and is made before it runs: the top may
  // be written over it (AllowInPlace).
  bool onto_addend = false;
  // Not a chain: a layer of the second entry with those that make its bottoms, which are all of the first entry and
  // have no other reader. Members are these in the order of the bottoms, then it, whose message LayerSetup::param() is.
  // Taken before any chain is, and only where a backward pass gains by it.
  bool gathers = false;
  std::unique_ptr<Layer> (*create)() = nullptr;

  bool repeats() const { return types.back().ends_with('+'); }
  // Whether a layer of this type may be member `position` of the chain.
  bool Takes(size_t position, std::string_view type) const;
};

// All registered fusions, those of more entries first.
const std::vector<const Fusion*>& Fusions();

// Registers a fusion before `main` runs: an object at namespace scope, or an element of a container there where chains
// are many.
struct FusionRegistrar {
  explicit FusionRegistrar(Fusion fusion);
};

// At namespace scope; behind the name and the class stand members of Fusion, in their order:
//   REGISTER_FUSION(EltwiseRelu, EltwiseLayer, .types = {"Eltwise", "ReLU"}, .accepts = AcceptsSum);
#define REGISTER_FUSION(Name, Class, ...)                       \
  static const ::crema::FusionRegistrar register_fusion_##Name( \
      {__VA_ARGS__, .create = []() -> std::unique_ptr<::crema::Layer> { return std::make_unique<Class>(); }})

}  // namespace crema

#endif  // CREMA_FUSION_H_
