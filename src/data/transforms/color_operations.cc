#include "data/transforms/color_operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/multiversion.h"
#include "data/transforms/channel_histograms.h"

namespace crema {

namespace {

using LookupTable = std::array<uint8_t, 256>;

template <typename Formula>
LookupTable TableOf(const Formula& formula) {
  LookupTable table;
  for (int value = 0; value < 256; ++value) {
    table[static_cast<size_t>(value)] = static_cast<uint8_t>(std::clamp<int>(formula(value), 0, 255));
  }
  return table;
}

void Look(const LookupTable& table, SeenImage* seen) {
  const int channels = seen->image.channels;
  seen->ForEachRun([&](uint8_t* pixels, int count) {
    for (uint8_t* const end = pixels + count * channels; pixels < end; ++pixels) *pixels = table[*pixels];
  });
}

// A table for each channel, which table_of(histogram) makes.
template <typename TableOfHistogram>
void LookByHistogram(SeenImage* seen, const TableOfHistogram& table_of) {
  const auto channels = static_cast<size_t>(seen->image.channels);
  ChannelHistograms histograms(seen->image.channels);
  seen->ForEachRun([&](const uint8_t* pixels, int count) { histograms.Add(pixels, count); });
  const std::array<ByteHistogram, 3>& sum = histograms.Sum();
  std::array<LookupTable, 3> tables;
  for (size_t c = 0; c < channels; ++c) tables[c] = table_of(sum[c]);
  seen->ForEachRun([&](uint8_t* pixels, int count) {
    for (int i = 0; i < count; ++i, pixels += channels) {
      for (size_t c = 0; c < channels; ++c) pixels[c] = tables[c][pixels[c]];
    }
  });
}

// Factors, up to 2, have 20 bits behind the point, so that results are the same bits on every CPU. A little more than
// nothing is added, so that whole numbers stay so although factors are rounded.
constexpr int kFactorBits = 20, kMoreThanNothing = 1 << 7;

int FixedFactor(double factor) { return static_cast<int>(std::lrint(factor * (1 << kFactorBits))); }

CREMA_INLINE int Blended(int from, int value, int factor) {
  const int sum = (from << kFactorBits) + (value - from) * factor + kMoreThanNothing;
  return std::min(255, std::max(0, sum >> kFactorBits));
}

// Of blue, green and red, as Pillow's convert("L").
CREMA_INLINE int Luminance(int blue, int green, int red) {
  return (7471 * blue + 38470 * green + 19595 * red + (1 << 15)) >> 16;
}

CREMA_MULTIVERSION uint32_t SumOfLuminance(const uint8_t* pixels, int count) {
  uint32_t sum = 0;
  for (int i = 0; i < count; ++i) {
    sum += static_cast<uint32_t>(Luminance(pixels[3 * i], pixels[3 * i + 1], pixels[3 * i + 2]));
  }
  return sum;
}

CREMA_MULTIVERSION void ChangeColorOfRow(uint8_t* pixels, int count, int factor) {
  for (int i = 0; i < count; ++i) {
    const int blue = pixels[3 * i], green = pixels[3 * i + 1], red = pixels[3 * i + 2];
    const int luminance = Luminance(blue, green, red);
    pixels[3 * i] = static_cast<uint8_t>(Blended(luminance, blue, factor));
    pixels[3 * i + 1] = static_cast<uint8_t>(Blended(luminance, green, factor));
    pixels[3 * i + 2] = static_cast<uint8_t>(Blended(luminance, red, factor));
  }
}

// `count` bytes; those of the pixels at the left and right lie `channels` bytes away.
CREMA_MULTIVERSION void SharpenRow(const uint8_t* above, const uint8_t* row, const uint8_t* below, int channels,
                                   int count, int factor, uint8_t* __restrict to) {
  const uint8_t *left_above = above - channels, *left = row - channels, *left_below = below - channels;
  const uint8_t *right_above = above + channels, *right = row + channels, *right_below = below + channels;
  for (int i = 0; i < count; ++i) {
    const int around =
        left_above[i] + above[i] + right_above[i] + left[i] + right[i] + left_below[i] + below[i] + right_below[i];
    // 5042 / 2^16 is 1 / 13, as exactly as sums of 13 bytes need it.
    const int smooth = ((around + 5 * row[i] + 6) * 5042) >> 16;
    to[i] = static_cast<uint8_t>(Blended(smooth, row[i], factor));
  }
}

int MeanLuminanceOf(SeenImage* seen) {
  uint64_t sum = 0, pixels = 0;
  seen->ForEachRun([&](const uint8_t* row, int count) {
    if (seen->image.channels == 3) {
      sum += SumOfLuminance(row, count);
    } else {
      for (int i = 0; i < count; ++i) sum += row[i];
    }
    pixels += static_cast<uint64_t>(count);
  });
  return pixels == 0 ? 0 : static_cast<int>((2 * sum + pixels) / (2 * pixels));
}

}  // namespace

void ChangeBrightness(double factor, SeenImage* seen) {
  const int fixed = FixedFactor(factor);
  Look(TableOf([&](int value) { return Blended(0, value, fixed); }), seen);
}

void ChangeContrast(double factor, SeenImage* seen) {
  const int fixed = FixedFactor(factor), mean = MeanLuminanceOf(seen);
  Look(TableOf([&](int value) { return Blended(mean, value, fixed); }), seen);
}

void ChangeColor(double factor, SeenImage* seen) {
  if (seen->image.channels != 3) return;
  const int fixed = FixedFactor(factor);
  seen->ForEachRun([&](uint8_t* pixels, int count) { ChangeColorOfRow(pixels, count, fixed); });
}

void ChangeSharpness(double factor, SeenImage* seen) {
  const Image& image = seen->image;
  const int fixed = FixedFactor(factor), channels = image.channels;
  if (image.height < 3 || image.width < 3) return;
  seen->other.Resize(image.height, image.width, channels);
  for (int y = 0; y < image.height; ++y) {
    const uint8_t* const row = image.row(y);
    const auto bytes = static_cast<int>(image.row_bytes());
    uint8_t* const to = seen->other.row(y);
    if (y == 0 || y == image.height - 1) {
      std::copy(row, row + bytes, to);
      continue;
    }
    std::copy(row, row + channels, to);
    SharpenRow(image.row(y - 1) + channels, row + channels, image.row(y + 1) + channels, channels, bytes - 2 * channels,
               fixed, to + channels);
    std::copy(row + bytes - channels, row + bytes, to + bytes - channels);
  }
  seen->Swap();
  seen->RestoreBorder();
}

void Posterize(int bits, SeenImage* seen) {
  const int mask = 0xFF << (8 - bits);
  Look(TableOf([&](int value) { return value & mask; }), seen);
}

void Solarize(int threshold, SeenImage* seen) {
  Look(TableOf([&](int value) { return value < threshold ? value : 255 - value; }), seen);
}

void AutoContrast(SeenImage* seen) {
  LookByHistogram(seen, [](const ByteHistogram& histogram) {
    int low = 0, high = 255;
    while (low < 255 && histogram[static_cast<size_t>(low)] == 0) ++low;
    while (high > 0 && histogram[static_cast<size_t>(high)] == 0) --high;
    return TableOf([&](int value) { return high <= low ? value : std::max(0, value - low) * 255 / (high - low); });
  });
}

void Equalize(SeenImage* seen) {
  LookByHistogram(seen, [](const ByteHistogram& histogram) {
    uint32_t pixels = 0, of_highest = 0;
    for (const uint32_t count : histogram) {
      pixels += count;
      if (count > 0) of_highest = count;
    }
    const uint32_t step = (pixels - of_highest) / 255;
    uint32_t below = step / 2;
    return TableOf([&](int value) {
      if (step == 0) return value;
      const uint32_t equal = below / step;
      below += histogram[static_cast<size_t>(value)];
      return static_cast<int>(std::min<uint32_t>(equal, 255));
    });
  });
}

}  // namespace crema
