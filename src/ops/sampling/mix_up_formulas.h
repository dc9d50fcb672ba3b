// Formulas of ops/sampling/mix_up.h, for CPUs and GPUs.
#ifndef CREMA_OPS_SAMPLING_MIX_UP_FORMULAS_H_
#define CREMA_OPS_SAMPLING_MIX_UP_FORMULAS_H_

#include "base/multiversion.h"
#include "ops/sampling/mix_up.h"

namespace crema::mix_up {

// Counters of an image in the stream: two for what is drawn once, then kTries for each number of a gamma distribution.
inline constexpr uint64_t kCounters = 256;
inline constexpr int kTries = 64;
static_assert(2 + 2 * kTries <= kCounters);

// In (0, 1).
CREMA_HOST_DEVICE inline double Uniform(uint32_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1p-32; }
// In [0, n).
CREMA_HOST_DEVICE inline int64_t Below(uint32_t bits, int64_t n) {
  return static_cast<int64_t>((uint64_t{bits} * static_cast<uint64_t>(n)) >> 32);
}

// The logarithm of a number from the gamma distribution of this shape, from counters `first` on (Marsaglia and Tsang,
// "A Simple Method for Generating Gamma Variables", 2000; shapes below 1 by their section 6). Logarithms, since with
// small shapes most numbers are below what a double holds. A try is turned down with a probability below 0.05, all of
// them with one below 1e-83; then it is the most likely number.
CREMA_HOST_DEVICE inline double LogOfGamma(const RandomStream& random, uint64_t first, double shape) {
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, spread = 1 / sqrt(9 * d);
  double log_of_cube = 0, of_small = 0.5;
  for (int i = 0; i < kTries; ++i) {
    const auto bits = random.Bits(first + static_cast<uint64_t>(i));
    const double normal = sqrt(-2 * log(Uniform(bits[0]))) * cos(6.283185307179586 * Uniform(bits[1]));
    const double t = spread * normal;
    if (t <= -1) continue;
    const double log_of_v = 3 * log1p(t), v_less_1 = t * (3 + t * (3 + t));
    if (log(Uniform(bits[2])) >= 0.5 * normal * normal + d * (log_of_v - v_less_1)) continue;
    log_of_cube = log_of_v;
    of_small = Uniform(bits[3]);
    break;
  }
  return log(d) + log_of_cube + (shape < 1 ? log(of_small) / shape : 0);
}

// From Beta(alpha, alpha).
CREMA_HOST_DEVICE inline double DrawShare(const RandomStream& random, uint64_t first, float alpha) {
  constexpr double kLargest = 1e16;  // from there on a float is 0.5 anyway
  const double shape = alpha < kLargest ? alpha : kLargest;
  const double own = LogOfGamma(random, first, shape), other = LogOfGamma(random, first + kTries, shape);
  return 1 / (1 + exp(other - own));
}

// Where a stretch of `length` around `centre` begins and ends within [0, extent).
CREMA_HOST_DEVICE inline void Clip(int64_t centre, int64_t length, int64_t extent, int32_t* begin, int32_t* end) {
  const int64_t from = centre - length / 2, to = from + length;
  *begin = static_cast<int32_t>(from < 0 ? 0 : from);
  *end = static_cast<int32_t>(to > extent ? extent : to);
}

CREMA_HOST_DEVICE inline ImageMix DrawMix(const MixUpProblem& p, const RandomStream& random, int64_t image) {
  ImageMix mix = {1, static_cast<int32_t>(image), 0, 0, 0, 0};
  const uint64_t first = static_cast<uint64_t>(image) * kCounters;
  const auto bits = random.Bits(first);
  if (p.images < 2 || !(Uniform(bits[0]) < p.probability)) return mix;
  mix.other = static_cast<int32_t>((image + 1 + Below(bits[2], p.images - 1)) % p.images);
  const bool cuts = p.alpha > 0 ? p.cutmix_alpha > 0 && Uniform(bits[1]) < p.cutmix_share : true;
  const double share = DrawShare(random, first + 2, cuts ? p.cutmix_alpha : p.alpha);
  if (!cuts) {
    mix.share = static_cast<float>(share);
    return mix;
  }
  const double side = sqrt(1 - share);
  const auto centre = random.Bits(first + 1);
  const auto height = static_cast<double>(p.height), width = static_cast<double>(p.width);
  Clip(Below(centre[0], p.height), static_cast<int64_t>(height * side + 0.5), p.height, &mix.top, &mix.bottom);
  Clip(Below(centre[1], p.width), static_cast<int64_t>(width * side + 0.5), p.width, &mix.left, &mix.right);
  const double area = static_cast<double>(mix.bottom - mix.top) * static_cast<double>(mix.right - mix.left);
  mix.share = static_cast<float>(1 - area / (height * width));
  return mix;
}

CREMA_HOST_DEVICE inline float TargetOf(float share, float own_label, float other_label, int64_t c) {
  const auto number = static_cast<float>(c);
  if (own_label == other_label) return own_label == number ? 1.0f : 0.0f;
  return own_label == number ? share : other_label == number ? 1.0f - share : 0.0f;
}

}  // namespace crema::mix_up

#endif  // CREMA_OPS_SAMPLING_MIX_UP_FORMULAS_H_
