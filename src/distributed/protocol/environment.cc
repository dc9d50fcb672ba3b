#include "distributed/protocol/environment.h"

#include <chrono>
#include <random>

namespace crema {

Milliseconds Now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

uint64_t Draw() {
  std::random_device random;
  return (uint64_t{random()} << 32) | random() | 1;
}

}  // namespace crema
