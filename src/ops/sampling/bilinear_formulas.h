// What lies between the elements of an image, interpolated bilinearly, and how it changes with the position: one text
// for the CPU and GPUs.
#ifndef CREMA_OPS_SAMPLING_BILINEAR_FORMULAS_H_
#define CREMA_OPS_SAMPLING_BILINEAR_FORMULAS_H_

#include <cmath>
#include <cstdint>

#include "ops/arrays/elementary_functions.h"

namespace crema::bilinear {

// What two neighbouring elements of an axis count for a position between them; 0 what is not in the image.
struct Shares {
  float low, high;
  float low_in, high_in;  // 1: is in the image
};

// Whether the position is in the image, or where that fades.
CREMA_FORMULA bool IsInside(const Shares& shares) { return shares.low + shares.high != 0.0f; }

// Their indices; of one that is not in the image that of some other.
struct Point {
  int32_t low, high;
  Shares shares;

  CREMA_FORMULA float Of(int32_t element) const {
    return (element == low ? shares.low : 0.0f) + (element == high ? shares.high : 0.0f);
  }
};

// An image fades to 0 within one pixel around it.
CREMA_FORMULA Point PointAt(float position, int32_t extent) {
  const bool inside = position > -1.0f && position < static_cast<float>(extent);
  const float floor = std::floor(inside ? position : 0.0f);
  const float beyond = (inside ? position : 0.0f) - floor;
  const auto first = static_cast<int32_t>(floor);
  const float low_in = inside && first >= 0 ? 1.0f : 0.0f, high_in = inside && first + 1 < extent ? 1.0f : 0.0f;
  return {first >= 0 ? first : 0,
          first + 1 < extent ? first + 1 : extent - 1,
          {low_in * (1.0f - beyond), high_in * beyond, low_in, high_in}};
}

// An image ends before its first element and one pixel behind its last one, which counts alone from there on.
CREMA_FORMULA Point PointOfEdged(float position, int32_t extent) {
  const bool inside = position >= 0.0f && position < static_cast<float>(extent);
  const float at = inside ? position : 0.0f, floor = std::floor(at);
  const auto first = static_cast<int32_t>(floor);
  const bool last = first + 1 >= extent;
  const float in = inside ? 1.0f : 0.0f, between = inside && !last ? 1.0f : 0.0f, beyond = between * (at - floor);
  return {first, last ? first : first + 1, {in * (1.0f - beyond), in * beyond, between, between}};
}

// The elements around a position.
struct Corners {
  float upper_left, upper_right, lower_left, lower_right;

  CREMA_FORMULA float Above(const Shares& across) const { return across.low * upper_left + across.high * upper_right; }
  CREMA_FORMULA float Below(const Shares& across) const { return across.low * lower_left + across.high * lower_right; }

  CREMA_FORMULA float Value(const Shares& down, const Shares& across) const {
    return down.low * Above(across) + down.high * Below(across);
  }
  // For each pixel that the position moves down, or to the right.
  CREMA_FORMULA float SlopeDown(const Shares& down, const Shares& across) const {
    return down.high_in * Below(across) - down.low_in * Above(across);
  }
  CREMA_FORMULA float SlopeAcross(const Shares& down, const Shares& across) const {
    const float left = down.low * upper_left + down.high * lower_left;
    const float right = down.low * upper_right + down.high * lower_right;
    return across.high_in * right - across.low_in * left;
  }
};

}  // namespace crema::bilinear

#endif  // CREMA_OPS_SAMPLING_BILINEAR_FORMULAS_H_
