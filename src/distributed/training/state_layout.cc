#include "distributed/training/state_layout.h"

#include "crema/error.h"

namespace crema {

void ExpectState(const StateLayout& layout, const Payload& state) {
  if (state->size() == layout.state_bytes(false)) return;
  if (layout.history > 0 && state->size() == layout.state_bytes(true)) return;
  throw EnvironmentError("the coordinator's parameters take " + std::to_string(state->size()) +
                         " bytes, those of the net here " + std::to_string(layout.state_bytes(false)));
}

}  // namespace crema
