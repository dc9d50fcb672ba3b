// How much elements count in a loss.
#ifndef CREMA_OPS_LOSSES_ELEMENT_WEIGHTS_H_
#define CREMA_OPS_LOSSES_ELEMENT_WEIGHTS_H_

#include <cstdint>

#include "base/multiversion.h"

namespace crema {

// One f32 weight for each `elements` elements that follow each other in memory.
struct ElementWeights {
  const float* data = nullptr;  // null: 1 for all
  int64_t elements = 1;

  CREMA_HOST_DEVICE bool given() const { return data != nullptr; }
  CREMA_HOST_DEVICE float operator[](int64_t i) const { return data ? data[i / elements] : 1.0f; }
};

// A term or gradient times its weight, as 0 of a weight of 0, whatever it is.
template <typename Number>
CREMA_HOST_DEVICE CREMA_INLINE Number Weighted(float weight, Number of_element) {
  const Number product = static_cast<Number>(weight) * of_element;
  return weight == 0.0f ? Number(0) : product;
}

}  // namespace crema

#endif  // CREMA_OPS_LOSSES_ELEMENT_WEIGHTS_H_
