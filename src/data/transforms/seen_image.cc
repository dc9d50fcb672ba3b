#include "data/transforms/seen_image.h"

#include <algorithm>

namespace crema {

namespace {

void FillPixels(const std::vector<uint8_t>& color, int count, uint8_t* to) {
  for (int i = 0; i < count; ++i) to = std::copy(color.begin(), color.end(), to);
}

}  // namespace

bool SeenImage::covers() const {
  return std::ranges::all_of(runs, [this](const PixelRun& run) { return run.count == image.width; });
}

void SeenImage::RestoreBorder() {
  for (int y = 0; y < image.height; ++y) {
    const PixelRun& run = runs[static_cast<size_t>(y)];
    const int behind = run.first + run.count;
    FillPixels(border, run.first, image.row(y));
    FillPixels(border, image.width - behind, image.row(y) + behind * image.channels);
  }
}

void SeenImage::Move(const AffineMap& map, Sampling sampling) {
  FindCovered(map, {image.height, image.width}, image.height, image.width, &other_runs);
  CutUncovered(map, runs, &other_runs);
  if (sampling == Sampling::kBilinear) {
    SampleBilinear(image, map, other_runs, image.width, &other);
  } else {
    SampleNearest(image, map, other_runs, image.width, &other);
  }
  Swap();
  runs.swap(other_runs);
  RestoreBorder();
}

}  // namespace crema
