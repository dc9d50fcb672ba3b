#include "data/transforms/color_jitter.h"

#include <algorithm>
#include <array>

#include "data/transforms/channel_histograms.h"

namespace crema {

namespace {

float FactorOf(float range, const RandomStream& random, uint64_t number) {
  return range > 0 ? 1 - range + 2 * range * random.Uniform(number) : 1;
}

double MeanOf(const ByteHistogram& histogram, float brightness, double count) {
  double sum = 0;
  for (int value = 0; value < 256; ++value) {
    sum += static_cast<double>(histogram[value]) * std::min(255.0f, static_cast<float>(value) * brightness);
  }
  return sum / count;
}

// By way of histograms, so that the sum does not depend on the order of pixels or the kind of CPU.
float MeanLuminance(const Image& image, const ImageArea& area, std::span<const PixelRun> runs, float brightness) {
  ChannelHistograms all(image.channels);
  int64_t pixels = 0;
  for (int y = 0; y < area.height; ++y) {
    const PixelRun run = runs.empty() ? PixelRun{0, area.width} : runs[static_cast<size_t>(y)];
    all.Add(image.row(area.top + y) + (area.left + run.first) * image.channels, run.count);
    pixels += run.count;
  }
  const std::array<ByteHistogram, 3>& histograms = all.Sum();
  const auto count = static_cast<double>(std::max<int64_t>(pixels, 1));
  const double first = MeanOf(histograms[0], brightness, count);
  if (image.channels == 1) return static_cast<float>(first);
  return static_cast<float>(kBlueShare * first + kGreenShare * MeanOf(histograms[1], brightness, count) +
                            kRedShare * MeanOf(histograms[2], brightness, count));
}

}  // namespace

ColorChange ColorJitter::Draw(const Image& image, const ImageArea& area, const RandomStream& random, uint64_t first,
                              uint64_t hue, std::span<const PixelRun> runs) const {
  ColorChange change;
  change.brightness = FactorOf(brightness_, random, first);
  change.contrast = FactorOf(contrast_, random, first + 1);
  change.saturation = FactorOf(saturation_, random, first + 2);
  if (hue_ > 0) change.hue = hue_ * (2 * random.Uniform(hue) - 1);
  if (contrast_ > 0) change.mean = MeanLuminance(image, area, runs, change.brightness);
  return change;
}

}  // namespace crema
