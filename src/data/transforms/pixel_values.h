// From rows of pixels to rows of floats, one for each channel: (x - mean) * factor.
#ifndef CREMA_DATA_TRANSFORMS_PIXEL_VALUES_H_
#define CREMA_DATA_TRANSFORMS_PIXEL_VALUES_H_

#include <array>
#include <cstdint>

#include "data/transforms/color_jitter.h"

namespace crema {

// to[i] = (from[i] - mean) * factor, or to[n - 1 - i] where mirrored.
void WriteRow(const uint8_t* from, int64_t n, float mean, float factor, bool mirrored, float* to);
void WriteRow(const float* from, int64_t n, float mean, float factor, bool mirrored, float* to);

// The same of one channel of pixels that have `channels`.
void WriteChannelRow(const uint8_t* from, int channels, int64_t n, float mean, float factor, bool mirrored, float* to);

// Three channels at once.
struct ColorValues {
  std::array<float, 3> mean = {0, 0, 0}, factor = {1, 1, 1};
};
void WriteColorRow(const uint8_t* from, int64_t n, const ColorValues& values, bool mirrored,
                   const std::array<float*, 3>& to);

// The same behind a change of colour; of grey images without one of saturation and hue.
void WriteChangedRow(const uint8_t* from, int64_t n, const ColorChange& change, float mean, float factor, bool mirrored,
                     float* to);
void WriteChangedColorRow(const uint8_t* from, int64_t n, const ColorChange& change, const ColorValues& values,
                          bool mirrored, const std::array<float*, 3>& to);

// to[i] = (to[i] - mean[i]) * factor, with mean[n - 1 - i] where mirrored.
void SubtractRow(const float* mean, int64_t n, float factor, bool mirrored, float* to);

}  // namespace crema

#endif  // CREMA_DATA_TRANSFORMS_PIXEL_VALUES_H_
