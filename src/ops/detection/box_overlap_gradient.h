// Overlaps of boxes and their derivatives, shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_DETECTION_BOX_OVERLAP_GRADIENT_H_
#define CREMA_OPS_DETECTION_BOX_OVERLAP_GRADIENT_H_

#include "ops/detection/yolo.h"

namespace crema::overlaps {

// A number and its derivatives by the four that a box is told by (forward accumulation).
struct Dual {
  float value;
  float by[4];
};

CREMA_FORMULA Dual Constant(float value) { return {value, {0, 0, 0, 0}}; }
CREMA_FORMULA Dual Variable(float value, int which) {
  Dual made = Constant(value);
  made.by[which] = 1;
  return made;
}

// a_weight * a + b_weight * b, with this value.
CREMA_FORMULA Dual Combined(float value, float a_weight, const Dual& a, float b_weight, const Dual& b) {
  Dual made{value, {}};
  for (int i = 0; i < 4; ++i) made.by[i] = a_weight * a.by[i] + b_weight * b.by[i];
  return made;
}
CREMA_FORMULA Dual operator+(const Dual& a, const Dual& b) { return Combined(a.value + b.value, 1, a, 1, b); }
CREMA_FORMULA Dual operator-(const Dual& a, const Dual& b) { return Combined(a.value - b.value, 1, a, -1, b); }
CREMA_FORMULA Dual operator*(const Dual& a, const Dual& b) {
  return Combined(a.value * b.value, b.value, a, a.value, b);
}
CREMA_FORMULA Dual operator/(const Dual& a, const Dual& b) {
  return Combined(a.value / b.value, 1 / b.value, a, -a.value / (b.value * b.value), b);
}
CREMA_FORMULA Dual Smaller(const Dual& a, const Dual& b) { return a.value < b.value ? a : b; }
CREMA_FORMULA Dual Larger(const Dual& a, const Dual& b) { return a.value > b.value ? a : b; }
CREMA_FORMULA Dual ArcTangent(const Dual& a) {
  return Combined(::atanf(a.value), 1 / (1 + a.value * a.value), a, 0, a);
}

// Centre and sides, both of which are above 0.
template <typename Number>
struct Centred {
  Number x, y, width, height;
};

// How much a box overlaps an object's, 1 where they are the same, as `loss` counts it; kSquares: as kOverlap. By the
// box's x, y, width and height.
CREMA_FORMULA Dual Overlap(YoloBoxLoss loss, const Centred<float>& box, const Centred<float>& object) {
  const Dual x = Variable(box.x, 0), y = Variable(box.y, 1), width = Variable(box.width, 2),
             height = Variable(box.height, 3), half = Constant(0.5f);
  const Dual left = x - half * width, right = x + half * width, top = y - half * height, bottom = y + half * height;
  const Dual object_left = Constant(object.x - object.width / 2), object_right = Constant(object.x + object.width / 2),
             object_top = Constant(object.y - object.height / 2),
             object_bottom = Constant(object.y + object.height / 2);
  const Dual none = Constant(0);
  const Dual shared = Larger(Smaller(right, object_right) - Larger(left, object_left), none) *
                      Larger(Smaller(bottom, object_bottom) - Larger(top, object_top), none);
  const Dual joined = width * height + Constant(object.width * object.height) - shared;
  const Dual overlap = shared / joined;
  if (loss == YoloBoxLoss::kSquares || loss == YoloBoxLoss::kOverlap) return overlap;

  const Dual around_width = Larger(right, object_right) - Smaller(left, object_left),
             around_height = Larger(bottom, object_bottom) - Smaller(top, object_top);
  if (loss == YoloBoxLoss::kGeneralized) {
    const Dual around = around_width * around_height;
    return overlap - (around - joined) / around;
  }
  const Dual to_right = x - Constant(object.x), down = y - Constant(object.y);
  const Dual apart =
      (to_right * to_right + down * down) / (around_width * around_width + around_height * around_height);
  if (loss == YoloBoxLoss::kDistance) return overlap - apart;

  const Dual turned = Constant(::atanf(object.width / object.height)) - ArcTangent(width / height);
  const Dual proportions = Constant(0.405284735f) * turned * turned;  // 4 / pi^2
  // A weight that is no part of the derivative, as in the paper.
  const float weight = proportions.value > 0 ? proportions.value / (1 - overlap.value + proportions.value) : 0;
  return overlap - apart - Constant(weight) * proportions;
}

}  // namespace crema::overlaps

#endif  // CREMA_OPS_DETECTION_BOX_OVERLAP_GRADIENT_H_
