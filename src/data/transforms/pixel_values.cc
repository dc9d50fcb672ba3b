#include "data/transforms/pixel_values.h"

#include <algorithm>

#include "base/multiversion.h"

namespace crema {

namespace {

// The arrays never overlap; one loop for each direction, because neither compiles well for a direction that varies.
template <typename Value>
CREMA_INLINE void Write(const Value* __restrict from, int64_t n, float mean, float factor, bool mirrored,
                        float* __restrict to) {
  if (mirrored) {
    for (int64_t i = 0; i < n; ++i) to[i] = (static_cast<float>(from[n - 1 - i]) - mean) * factor;
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = (static_cast<float>(from[i]) - mean) * factor;
  }
}

CREMA_INLINE float Cut(float value) { return std::min(255.0f, std::max(0.0f, value)); }

CREMA_INLINE float Light(float value, const ColorChange& change) {
  const float bright = std::min(255.0f, value * change.brightness);
  return Cut((bright - change.mean) * change.contrast + change.mean);
}

// The hue in HSV, in sixths of a turn from red, shifted by `shift` of them, at most 3, without branches.
CREMA_INLINE void ShiftHue(float shift, float* blue, float* green, float* red) {
  const float b = *blue, g = *green, r = *red;
  const float value = std::max(b, std::max(g, r)), range = value - std::min(b, std::min(g, r));
  const float sixth = value == r ? g - b : value == g ? b - r + 2 * range : r - g + 4 * range;
  float hue = sixth / (range > 0 ? range : 1) + shift;
  hue = hue < 0 ? hue + 6 : hue;
  hue = hue >= 6 ? hue - 6 : hue;
  // How far a channel lies below the largest value goes up and down again once in a turn.
  const auto channel = [&](float begin) {
    float place = hue + begin;
    place = place >= 6 ? place - 6 : place;
    return value - range * std::max(0.0f, std::min(1.0f, std::min(place, 4 - place)));
  };
  *red = channel(5);
  *green = channel(3);
  *blue = channel(1);
}

template <bool kShiftsHue>
CREMA_INLINE void ChangedPixel(const uint8_t* from, const ColorChange& change, const ColorValues& values, float* blue,
                               float* green, float* red) {
  float b = Light(from[0], change), g = Light(from[1], change), r = Light(from[2], change);
  const float luminance = kBlueShare * b + kGreenShare * g + kRedShare * r;
  b = Cut((b - luminance) * change.saturation + luminance);
  g = Cut((g - luminance) * change.saturation + luminance);
  r = Cut((r - luminance) * change.saturation + luminance);
  if constexpr (kShiftsHue) ShiftHue(6 * change.hue, &b, &g, &r);
  *blue = (b - values.mean[0]) * values.factor[0];
  *green = (g - values.mean[1]) * values.factor[1];
  *red = (r - values.mean[2]) * values.factor[2];
}

template <bool kShiftsHue>
CREMA_INLINE void WriteChanged(const uint8_t* __restrict from, int64_t n, const ColorChange& change,
                               const ColorValues& values, const std::array<float*, 3>& to) {
  float* __restrict blue = to[0], * __restrict green = to[1], * __restrict red = to[2];
  const ColorChange own = change;
  const ColorValues scaling = values;
  for (int64_t i = 0; i < n; ++i) ChangedPixel<kShiftsHue>(from + 3 * i, own, scaling, blue + i, green + i, red + i);
}

CREMA_INLINE void Pixel(const uint8_t* from, const ColorValues& values, float* blue, float* green, float* red) {
  *blue = (static_cast<float>(from[0]) - values.mean[0]) * values.factor[0];
  *green = (static_cast<float>(from[1]) - values.mean[1]) * values.factor[1];
  *red = (static_cast<float>(from[2]) - values.mean[2]) * values.factor[2];
}

// Behind the loop that tells channels apart, which is vectorised in one direction only.
CREMA_INLINE void Mirror(const std::array<float*, 3>& rows, int64_t n) {
  for (float* row : rows) std::reverse(row, row + n);
}

CREMA_MULTIVERSION void WriteRowOfSameHue(const uint8_t* from, int64_t n, const ColorChange& change,
                                          const ColorValues& values, const std::array<float*, 3>& to) {
  WriteChanged<false>(from, n, change, values, to);
}

CREMA_MULTIVERSION void WriteRowOfOtherHue(const uint8_t* from, int64_t n, const ColorChange& change,
                                           const ColorValues& values, const std::array<float*, 3>& to) {
  WriteChanged<true>(from, n, change, values, to);
}

}  // namespace

CREMA_MULTIVERSION void WriteRow(const uint8_t* from, int64_t n, float mean, float factor, bool mirrored, float* to) {
  Write(from, n, mean, factor, mirrored, to);
}

CREMA_MULTIVERSION void WriteRow(const float* from, int64_t n, float mean, float factor, bool mirrored, float* to) {
  Write(from, n, mean, factor, mirrored, to);
}

void WriteChannelRow(const uint8_t* from, int channels, int64_t n, float mean, float factor, bool mirrored, float* to) {
  if (channels == 1) return WriteRow(from, n, mean, factor, mirrored, to);
  for (int64_t i = 0; i < n; ++i, from += channels) {
    to[mirrored ? n - 1 - i : i] = (static_cast<float>(*from) - mean) * factor;
  }
}

CREMA_MULTIVERSION void WriteColorRow(const uint8_t* from, int64_t n, const ColorValues& values, bool mirrored,
                                      const std::array<float*, 3>& to) {
  const uint8_t* __restrict pixels = from;
  float* __restrict blue = to[0], * __restrict green = to[1], * __restrict red = to[2];
  const ColorValues own = values;
  for (int64_t i = 0; i < n; ++i) Pixel(pixels + 3 * i, own, blue + i, green + i, red + i);
  if (mirrored) Mirror(to, n);
}

CREMA_MULTIVERSION void WriteChangedRow(const uint8_t* from, int64_t n, const ColorChange& change, float mean,
                                        float factor, bool mirrored, float* to) {
  const uint8_t* __restrict pixels = from;
  float* __restrict values = to;
  const ColorChange own = change;
  for (int64_t i = 0; i < n; ++i) values[i] = (Light(pixels[i], own) - mean) * factor;
  if (mirrored) std::reverse(to, to + n);
}

void WriteChangedColorRow(const uint8_t* from, int64_t n, const ColorChange& change, const ColorValues& values,
                          bool mirrored, const std::array<float*, 3>& to) {
  (change.hue == 0 ? WriteRowOfSameHue : WriteRowOfOtherHue)(from, n, change, values, to);
  if (mirrored) Mirror(to, n);
}

CREMA_MULTIVERSION void SubtractRow(const float* mean, int64_t n, float factor, bool mirrored, float* to) {
  const float* __restrict subtrahend = mean;
  float* __restrict values = to;
  if (mirrored) {
    for (int64_t i = 0; i < n; ++i) values[i] = (values[i] - subtrahend[n - 1 - i]) * factor;
  } else {
    for (int64_t i = 0; i < n; ++i) values[i] = (values[i] - subtrahend[i]) * factor;
  }
}

}  // namespace crema
