#include "data/transforms/color_distortion.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace crema {

namespace {

enum DistortionNumber : uint64_t {
  kOrder = 0,
  kBrightness = 1,  // whether, and the number behind it: how much
  kContrast = 3,
  kSaturation = 5,
  kHue = 7,
  kChannels = 9,
};

using ByteTable = std::array<uint8_t, 256>;

uint8_t RoundedByte(float value) { return static_cast<uint8_t>(std::lrint(std::clamp(value, 0.0f, 255.0f))); }

template <typename Formula>
void Change(ByteTable* table, const Formula& formula) {
  for (uint8_t& value : *table) value = RoundedByte(formula(static_cast<float>(value)));
}

// One draw of all that happens to an image.
struct Drawn {
  ByteTable before, behind;       // the step in HSV
  float saturation = 1, hue = 0;  // factor, and shift in units of two degrees
  std::array<uint8_t, 3> channels{0, 1, 2};

  bool in_hsv() const { return saturation != 1 || hue != 0; }
};

// What one over a byte is worth, in units of 1/4096, as OpenCV's fixed-point arithmetic has it.
struct Reciprocals {
  std::array<int, 256> of_saturation{}, of_hue{};

  Reciprocals() {
    for (size_t i = 1; i < 256; ++i) {
      of_saturation[i] = static_cast<int>(std::lrint(255.0 * 4096 / static_cast<double>(i)));
      of_hue[i] = static_cast<int>(std::lrint(180.0 * 4096 / (6.0 * static_cast<double>(i))));
    }
  }
};

void ChangeInHsv(const Reciprocals& reciprocals, const Drawn& drawn, uint8_t* pixel) {
  const int b = pixel[0], g = pixel[1], r = pixel[2];
  const int value = std::max({b, g, r}), range = value - std::min({b, g, r});
  const auto rounded = [](int product) { return (product + 2048) >> 12; };
  const int old_saturation = rounded(range * reciprocals.of_saturation[static_cast<size_t>(value)]);
  const int sixth = value == r ? g - b : value == g ? b - r + 2 * range : r - g + 4 * range;
  int old_hue = rounded(sixth * reciprocals.of_hue[static_cast<size_t>(range)]);
  if (old_hue < 0) old_hue += 180;

  const int saturation = RoundedByte(static_cast<float>(old_saturation) * drawn.saturation);
  const int hue = RoundedByte(static_cast<float>(old_hue) + drawn.hue);
  if (saturation == 0) {
    pixel[0] = pixel[1] = pixel[2] = static_cast<uint8_t>(value);
    return;
  }
  float place = static_cast<float>(hue) / 30;
  if (place >= 6) place -= 6;
  const int sector = static_cast<int>(place);
  const float within = place - static_cast<float>(sector), v = static_cast<float>(value);
  const float s = static_cast<float>(saturation) / 255;
  const uint8_t high = static_cast<uint8_t>(value), low = RoundedByte(v * (1 - s));
  const uint8_t falling = RoundedByte(v * (1 - s * within)), rising = RoundedByte(v * (1 - s * (1 - within)));
  const auto set = [pixel](uint8_t blue, uint8_t green, uint8_t red) {
    pixel[0] = blue;
    pixel[1] = green;
    pixel[2] = red;
  };
  switch (sector) {
    case 0:
      return set(low, rising, high);
    case 1:
      return set(low, high, falling);
    case 2:
      return set(rising, high, low);
    case 3:
      return set(high, falling, low);
    case 4:
      return set(high, low, rising);
    default:
      return set(falling, low, high);
  }
}

Drawn DrawFrom(const DistortionParameter& param, const RandomStream& random, uint64_t first) {
  const auto happens = [&](float prob, uint64_t number) { return random.Uniform(first + number) < prob; };
  const auto between = [&](float low, float high, uint64_t number) {
    return low + (high - low) * random.Uniform(first + number + 1);
  };
  Drawn drawn;
  for (size_t i = 0; i < 256; ++i) drawn.before[i] = drawn.behind[i] = static_cast<uint8_t>(i);
  if (happens(param.brightness_prob(), kBrightness)) {
    const float shift = between(-param.brightness_delta(), param.brightness_delta(), kBrightness);
    Change(&drawn.before, [shift](float x) { return x + shift; });
  }
  if (happens(param.contrast_prob(), kContrast)) {
    const float factor = between(param.contrast_lower(), param.contrast_upper(), kContrast);
    const bool early = random.Uniform(first + kOrder) > 0.5f;
    Change(early ? &drawn.before : &drawn.behind, [factor](float x) { return x * factor; });
  }
  if (happens(param.saturation_prob(), kSaturation)) {
    drawn.saturation = between(param.saturation_lower(), param.saturation_upper(), kSaturation);
  }
  if (happens(param.hue_prob(), kHue)) drawn.hue = between(-param.hue_delta(), param.hue_delta(), kHue);
  if (happens(param.random_order_prob(), kChannels)) {
    uint64_t order = random.Below(first + kChannels + 1, 6);
    while (order-- > 0) std::next_permutation(drawn.channels.begin(), drawn.channels.end());
  }
  return drawn;
}

}  // namespace

void ColorDistortion::Apply(const RandomStream& random, uint64_t first, const ImageArea& area, Image* image) const {
  static const Reciprocals reciprocals;
  const Drawn drawn = DrawFrom(param_, random, first);
  for (int y = area.top; y < area.top + area.height; ++y) {
    uint8_t* pixel = image->row(y) + area.left * image->channels;
    uint8_t* const end = pixel + area.width * image->channels;
    if (image->channels != 3) {
      for (; pixel < end; ++pixel) *pixel = drawn.behind[drawn.before[*pixel]];
      continue;
    }
    for (; pixel < end; pixel += 3) {
      for (int c = 0; c < 3; ++c) pixel[c] = drawn.before[pixel[c]];
      if (drawn.in_hsv()) ChangeInHsv(reciprocals, drawn, pixel);
      const std::array<uint8_t, 3> now = {drawn.behind[pixel[0]], drawn.behind[pixel[1]], drawn.behind[pixel[2]]};
      for (size_t c = 0; c < 3; ++c) pixel[c] = now[drawn.channels[c]];
    }
  }
}

}  // namespace crema
