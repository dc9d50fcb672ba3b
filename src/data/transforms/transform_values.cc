// The values of a transformed image, where its pixels are known.
#include <algorithm>

#include "base/check.h"
#include "data/transforms/pixel_values.h"
#include "data/transforms/transform.h"

namespace crema {

float Transform::MeanOf(int64_t channel) const {
  return mean_values_.empty() ? 0 : mean_values_[mean_values_.size() > 1 ? channel : 0];
}

float Transform::FactorOf(int64_t channel) const {
  return std_values_.empty() ? scale_ : scale_ / std_values_[std_values_.size() > 1 ? channel : 0];
}

template <typename Value>
void Transform::ApplyToPlanes(const Value* planes, const ImageSize& size, const RandomStream& random,
                              float* out) const {
  const Window window = WindowOf(size.height, size.width, random);
  const int64_t plane = int64_t{window.height} * window.width;
  if (!window.covers()) std::fill(out, out + plane * size.channels, 0.0f);
  // Where rows follow each other in the image and in the result, a whole plane is one row.
  const bool whole = !window.mirrored && !window.upside_down && window.covers() && window.width == size.width;
  const int rows = whole ? 1 : window.seen.height;
  const int64_t count = whole ? plane : window.seen.width;
  for (int64_t c = 0; c < size.channels; ++c) {
    const float mean = mean_ ? 0 : MeanOf(c), factor = mean_ ? 1 : FactorOf(c);
    for (int y = 0; y < rows; ++y) {
      const Value* from = planes + (c * size.height + window.seen.top + y) * size.width + window.seen.left;
      const int64_t place = whole ? 0 : window.PlaceOf(y, window.RunOf(y));
      WriteRow(from, count, mean, factor, window.mirrored, out + c * plane + place);
    }
  }
  if (mean_) SubtractMeanImage(window, size.channels, out);
  Erase(window, size.channels, random, out);
}

template void Transform::ApplyToPlanes(const uint8_t*, const ImageSize&, const RandomStream&, float*) const;
template void Transform::ApplyToPlanes(const float*, const ImageSize&, const RandomStream&, float*) const;

void Transform::WritePixels(const Image& image, const Window& window, const RandomStream& random,
                            TransformScratch* scratch, float* out) const {
  CREMA_CHECK(max_angle_ == 0 || !window.runs.empty()) << "a part of an image is not turned";
  const double sigma = blur_ ? blur_->Draw(random, kBlur) : 0;
  if (policy_ || sigma > 0) {
    WriteSeen(image, window, random, sigma, scratch, out);
  } else {
    WriteValues(image, window, DrawChange(image, window, random), out);
  }
  if (mean_) SubtractMeanImage(window, image.channels, out);
  Erase(window, image.channels, random, out);
}

std::optional<ColorChange> Transform::DrawChange(const Image& image, const Window& window,
                                                 const RandomStream& random) const {
  if (!jitter_.changes()) return {};
  return jitter_.Draw(image, window.seen, random, kJitter, kHue, window.runs);
}

void Transform::WriteValues(const Image& image, const Window& window, const std::optional<ColorChange>& change,
                            float* out) const {
  const int channels = image.channels;
  const int64_t plane = int64_t{window.height} * window.width;
  if (!window.covers()) std::fill(out, out + plane * channels, 0.0f);
  const bool colored = channels == 3;
  ColorValues values;
  for (int c = 0; c < 3 && colored && !mean_; ++c) {
    values.mean[c] = MeanOf(c);
    values.factor[c] = FactorOf(c);
  }
  for (int y = 0; y < window.seen.height; ++y) {
    const PixelRun run = window.RunOf(y);
    const int n = run.count;
    const uint8_t* from = image.row(window.seen.top + y) + (window.seen.left + run.first) * channels;
    float* to = out + window.PlaceOf(y, run);
    if (colored) {
      const std::array<float*, 3> rows = {to, to + plane, to + 2 * plane};
      change ? WriteChangedColorRow(from, n, *change, values, window.mirrored, rows)
             : WriteColorRow(from, n, values, window.mirrored, rows);
      continue;
    }
    for (int c = 0; c < channels; ++c) {
      const float mean = mean_ ? 0 : MeanOf(c), factor = mean_ ? 1 : FactorOf(c);
      change ? WriteChangedRow(from, n, *change, mean, factor, window.mirrored, to)
             : WriteChannelRow(from + c, channels, n, mean, factor, window.mirrored, to + c * plane);
    }
  }
}

void Transform::WriteLabels(const Image& labels, const Window& window, const RandomStream& random,
                            TransformScratch* scratch, float border, float* out) const {
  if (policy_) return WriteSeenLabels(labels, window, random, scratch, border, out);
  if (!window.covers()) std::fill(out, out + int64_t{window.height} * window.width, border);
  for (int y = 0; y < window.seen.height; ++y) {
    const PixelRun run = window.RunOf(y);
    WriteRow(labels.row(window.seen.top + y) + window.seen.left + run.first, run.count, 0, 1, window.mirrored,
             out + window.PlaceOf(y, run));
  }
}

// A mean image is one for the whole record: it is cropped and mirrored along. Where sizes are random its centre serves.
void Transform::SubtractMeanImage(const Window& window, int channels, float* out) const {
  const int64_t height = mean_->shape[1], width = mean_->shape[2];
  const int64_t top = random_resize_ ? (height - window.height) / 2 : window.seen.top;
  const int64_t left = random_resize_ ? (width - window.width) / 2 : window.seen.left;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t y = 0; y < window.height; ++y, out += window.width) {
      const int64_t row = top + (window.upside_down ? window.height - 1 - y : y);
      const float* mean = mean_->values.data() + (c * height + row) * width + left;
      SubtractRow(mean, window.width, FactorOf(c), window.mirrored, out);
    }
  }
}

void Transform::Erase(const Window& window, int channels, const RandomStream& random, float* out) const {
  if (!erased_area_ || !(random.Uniform(kErases) < erasing_probability_)) return;
  const std::optional<ImageArea> area = erased_area_->Try(window.height, window.width, random, kErased);
  if (!area) return;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t y = area->top; y < area->top + area->height; ++y) {
      std::fill_n(out + (c * window.height + y) * window.width + area->left, area->width, 0.0f);
    }
  }
}

}  // namespace crema
