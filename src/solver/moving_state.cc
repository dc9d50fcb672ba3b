#include "solver/moving_state.h"

#include <span>

#include "graph/program.h"

namespace crema {

MovingState::MovingState(Net* net, Device* device) : net_(*net), device_(*device) {
  const auto add = [this](const Tensor& tensor) { kept_.emplace_back(tensor, std::vector<char>(tensor.bytes())); };
  const std::span<const Parameter> parameters = std::as_const(net_).parameters();
  for (const Node& node : net_.compiled().graph.nodes) {
    if (node.param->type() != "BatchNorm" && node.param->type() != "BN") continue;
    for (const int index : node.params) {
      const Parameter& parameter = parameters[static_cast<size_t>(index)];
      if (!parameter.trained) add(parameter.data);
    }
  }
  for (const auto& [layer, state] : net_.recurrent_states()) add(state);
}

void MovingState::Keep() {
  for (auto& [tensor, values] : kept_) device_.CopyOut(tensor.raw(), values.data(), values.size());
}

void MovingState::PutBack() const {
  for (const auto& [tensor, values] : kept_) device_.CopyIn(values.data(), tensor.raw(), values.size());
  net_.ParametersChanged();
}

}  // namespace crema
