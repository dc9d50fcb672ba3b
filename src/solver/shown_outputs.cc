#include "solver/shown_outputs.h"

#include <cstdint>

namespace crema {

std::vector<NetOutput> ShownOutputs(const Net& net) {
  constexpr int64_t kMostOfOne = 256, kMost = 4096;
  std::vector<NetOutput> outputs = net.outputs();
  int64_t numbers = 0;
  std::erase_if(outputs, [&](const NetOutput& output) {
    const int64_t count = output.value.count();
    if (count > kMostOfOne || numbers + count > kMost) return true;
    numbers += count;
    return false;
  });
  return outputs;
}

}  // namespace crema
