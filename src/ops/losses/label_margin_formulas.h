// Formulas of ops/losses/label_margin.h, for CPUs and GPUs.
#ifndef CREMA_OPS_LOSSES_LABEL_MARGIN_FORMULAS_H_
#define CREMA_OPS_LOSSES_LABEL_MARGIN_FORMULAS_H_

#include <cmath>

#include "base/multiversion.h"
#include "ops/losses/label_margin.h"

namespace crema::margin {

struct Score {
  float value, slope, pull;
};

CREMA_HOST_DEVICE inline float Cosine(float x) { return x < -1 ? -1.0f : x > 1 ? 1.0f : x; }

CREMA_HOST_DEVICE inline Score Added(float amount, float x) { return {x > -amount ? x + amount : x, 1, 0}; }

CREMA_HOST_DEVICE inline Score AngleAdded(float amount, float x) {
  constexpr float kLeastSine = 1e-4f;  // bounds the slope near the angle 0
  const float cosine = Cosine(x), sine = sqrtf(1 - cosine * cosine);
  const float of_cosine = cosf(amount), of_sine = sinf(amount);
  if (cosine <= -of_cosine) return {x - amount * of_sine, 1, 0};
  return {cosine * of_cosine - sine * of_sine, of_cosine + of_sine * cosine / (sine > kLeastSine ? sine : kLeastSine),
          0};
}

// cos(times * a) by c = cos(a), and its derivative.
CREMA_HOST_DEVICE inline void MultipleAngle(int32_t times, float c, float* value, float* slope) {
  const float square = c * c;
  switch (times) {
    case 2:
      *value = 2 * square - 1;
      *slope = 4 * c;
      return;
    case 3:
      *value = (4 * square - 3) * c;
      *slope = 12 * square - 3;
      return;
    case 4:
      *value = 8 * (square - 1) * square + 1;
      *slope = (32 * square - 16) * c;
      return;
    default:
      *value = c;
      *slope = 1;
  }
}

// In how many of the parts of [0, pi], as many as `times`, the angle is beyond the end.
CREMA_HOST_DEVICE inline int PartsBehind(int32_t times, float c) {
  constexpr float kHalf = 0.5f, kOfEighth = 0.70710678f;  // cos(pi / 3), cos(pi / 4)
  switch (times) {
    case 2:
      return c <= 0;
    case 3:
      return (c <= kHalf) + (c <= -kHalf);
    case 4:
      return (c <= kOfEighth) + (c <= 0) + (c <= -kOfEighth);
    default:
      return 0;
  }
}

CREMA_HOST_DEVICE inline Score AngleTimes(int32_t times, float lambda, float square, float x) {
  const float length = sqrtf(square);
  if (!(length > 0)) return {x, 1, 0};
  const float c = Cosine(x / length);
  float psi, slope;
  MultipleAngle(times, c, &psi, &slope);
  const int behind = PartsBehind(times, c);
  if (behind % 2 == 1) {
    psi = -psi;
    slope = -slope;
  }
  psi -= 2 * static_cast<float>(behind);
  const float share = 1 / (1 + lambda);
  return {(lambda * x + length * psi) * share, (lambda + slope) * share, (psi - c * slope) * share / length};
}

CREMA_HOST_DEVICE inline float Lambda(const LabelMargin& margin, uint64_t pass) {
  const double now = margin.base * pow(1 + margin.gamma * (margin.first + static_cast<double>(pass)), -margin.power);
  return static_cast<float>(now > margin.least ? now : margin.least);
}

CREMA_HOST_DEVICE inline Score Apply(const LabelMargin& margin, float lambda, float square, float x) {
  if (margin.kind == LabelMargin::Kind::kAdded) return Added(margin.amount, x);
  if (margin.kind == LabelMargin::Kind::kAngleAdded) return AngleAdded(margin.amount, x);
  return AngleTimes(margin.times, lambda, square, x);
}

}  // namespace crema::margin

#endif  // CREMA_OPS_LOSSES_LABEL_MARGIN_FORMULAS_H_
