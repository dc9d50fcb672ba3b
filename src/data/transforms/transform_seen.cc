// What changes the bytes of an image before they become values: policies, and colours where a blur follows.
#include <algorithm>
#include <cmath>

#include "data/transforms/pixel_values.h"
#include "data/transforms/transform.h"

namespace crema {

namespace {

void CopyPixels(const uint8_t* from, int count, int channels, bool mirrored, uint8_t* to) {
  if (!mirrored) {
    std::copy_n(from, static_cast<size_t>(count) * channels, to);
    return;
  }
  to += (count - 1) * channels;
  for (int i = 0; i < count; ++i, from += channels, to -= channels) std::copy_n(from, channels, to);
}

void ChangeColors(const ColorChange& change, std::vector<float>* values, SeenImage* seen) {
  const int channels = seen->image.channels, width = seen->image.width;
  values->resize(static_cast<size_t>(width) * channels);
  float* const first = values->data();
  seen->ForEachRun([&](uint8_t* pixels, int count) {
    if (channels == 3) {
      WriteChangedColorRow(pixels, count, change, {}, false, {first, first + width, first + 2 * width});
    } else {
      WriteChangedRow(pixels, count, change, 0, 1, false, first);
    }
    for (int c = 0; c < channels; ++c) {
      const float* from = first + c * width;
      for (int i = 0; i < count; ++i) pixels[i * channels + c] = static_cast<uint8_t>(from[i] + 0.5f);
    }
  });
}

}  // namespace

std::string Transform::ChangeProblem(const ImageSize& image, Values values) const {
  const char* const policy = policy_ ? policy_->field() : "";
  if (values == Values::kFloats) {
    const std::pair<const char*, bool> fields[] = {
        {"max_rotation_angle", max_angle_ > 0}, {policy, policy_.has_value()}, {"gaussian_blur", blur_.has_value()}};
    for (const auto& [field, set] : fields) {
      if (!set) continue;
      return std::string(field) + (max_angle_ > 0 ? " turns" : " changes") +
             " images of bytes, but the record holds float_data; leave " + field + " out";
    }
    return {};
  }
  if (image.channels == 1 || image.channels == 3) return {};
  for (const auto& [field, set] : {std::pair("color_jitter", jitter_.changes()), {policy, policy_.has_value()}}) {
    if (!set) continue;
    return std::string(field) + " changes images of 1 or 3 channels, but the image is " + image.ToString() +
           " (channels x height x width); leave " + field + " out";
  }
  return {};
}

void Transform::Place(const Image& image, const Window& window, SeenImage* seen) {
  const int channels = image.channels;
  seen->image.Resize(window.height, window.width, channels);
  seen->runs.assign(static_cast<size_t>(window.height), PixelRun{});
  for (int y = 0; y < window.seen.height; ++y) {
    const PixelRun run = window.RunOf(y);
    if (run.count == 0) continue;
    const int64_t place = window.PlaceOf(y, run);
    const auto row = static_cast<int>(place / window.width), column = static_cast<int>(place % window.width);
    CopyPixels(image.row(window.seen.top + y) + (window.seen.left + run.first) * channels, run.count, channels,
               window.mirrored, seen->image.row(row) + column * channels);
    seen->runs[static_cast<size_t>(row)] = {column, run.count};
  }
  seen->RestoreBorder();
}

void Transform::WriteSeen(const Image& image, const Window& window, const RandomStream& random, double sigma,
                          TransformScratch* scratch, float* out) const {
  SeenImage& seen = scratch->seen;
  seen.border.clear();
  for (int c = 0; c < image.channels; ++c) {
    seen.border.push_back(static_cast<uint8_t>(std::lrint(std::clamp(MeanOf(c), 0.0f, 255.0f))));
  }
  Place(image, window, &seen);
  if (policy_) policy_->Apply(random, kPolicy, &seen);
  Window changed;
  changed.height = window.height;
  changed.width = window.width;
  changed.part = changed.seen = {0, 0, window.height, window.width};
  if (!seen.covers()) changed.runs = seen.runs;
  std::optional<ColorChange> change = DrawChange(seen.image, changed, random);
  if (sigma > 0) {
    if (change) ChangeColors(*change, &scratch->values, &seen);
    change.reset();
    BlurGaussian(seen.image, sigma, &scratch->blur, &seen.other);
    seen.Swap();
    seen.RestoreBorder();
  }
  WriteValues(seen.image, changed, change, out);
}

// Beside each label stands whether it is one, so that what comes from beside the image is told from all labels.
void Transform::WriteSeenLabels(const Image& labels, const Window& window, const RandomStream& random,
                                TransformScratch* scratch, float border, float* out) const {
  Image& marked = scratch->image;
  marked.Resize(labels.height, labels.width, 2);
  for (size_t i = 0; i < labels.size(); ++i) {
    marked.pixels[2 * i] = labels.pixels[i];
    marked.pixels[2 * i + 1] = 1;
  }
  SeenImage& seen = scratch->seen;
  seen.border.assign(2, 0);
  Place(marked, window, &seen);
  policy_->ApplyToLabels(random, kPolicy, &seen);
  for (int y = 0; y < window.height; ++y) {
    const uint8_t* from = seen.image.row(y);
    for (int x = 0; x < window.width; ++x, from += 2) *out++ = from[1] == 1 ? from[0] : border;
  }
}

}  // namespace crema
