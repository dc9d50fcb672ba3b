// Where windows lie that move over an axis.
#ifndef CREMA_LAYERS_WINDOW_MAP_H_
#define CREMA_LAYERS_WINDOW_MAP_H_

#include <cstdint>

#include "crema/layer.h"

namespace crema {

// By the middles of windows, from the input to them, or, transposed, from windows to what they are spread over.
inline LayerSetup::AxisMap WindowMap(int64_t reach, int64_t stride, int64_t pad, bool transposed = false) {
  const double by = static_cast<double>(stride), middle = static_cast<double>(reach - 1) / 2 - static_cast<double>(pad);
  if (transposed) return {by, middle};
  return {1 / by, -middle / by};
}

}  // namespace crema

#endif  // CREMA_LAYERS_WINDOW_MAP_H_
