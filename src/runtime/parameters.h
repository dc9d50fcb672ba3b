// The memory of a net's parameters and their gradients.
#ifndef CREMA_RUNTIME_PARAMETERS_H_
#define CREMA_RUNTIME_PARAMETERS_H_

#include <functional>
#include <span>
#include <vector>

#include "crema/net.h"
#include "device/device.h"
#include "graph/graph.h"

namespace crema {

// All parameters of a net in one contiguous block, in graph order, each padded with zeros to whole cache lines;
// gradients in a second block of the same layout. Parameters shared with another net live in that net's block.
class ParameterStore {
 public:
  // shared(parameter of the graph) gives the other net's parameter, or null. Parameters of this net's own are filled
  // as their fillers say, each from a stream of `seed` that depends on the layer's name only. `trains_shared`:
  // the others' parameters have gradients here, too.
  ParameterStore(const Graph& graph, Device& device, uint64_t seed, bool gradients,
                 const std::function<const Parameter*(int param)>& shared, bool trains_shared = false);

  std::span<Parameter> list() { return list_; }
  std::span<const Parameter> list() const { return list_; }
  std::span<float> values() const { return block(values_); }
  std::span<float> gradients() const { return block(gradients_); }

 private:
  static std::span<float> block(const Buffer& buffer) {
    return {reinterpret_cast<float*>(buffer.data()), buffer.bytes() / sizeof(float)};
  }

  std::vector<Parameter> list_;
  Buffer values_, gradients_;
};

}  // namespace crema

#endif  // CREMA_RUNTIME_PARAMETERS_H_
