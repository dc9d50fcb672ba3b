#include "data/transform.h"

#include "crema/error.h"

namespace crema {

namespace {

template <typename Value>
void Row(const Value* __restrict from, int64_t n, float mean, float scale, float* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i] = (static_cast<float>(from[i]) - mean) * scale;
}

template <typename Value>
void Row(const Value* __restrict from, int64_t n, const float* __restrict mean, float scale, float* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i] = (static_cast<float>(from[i]) - mean[i]) * scale;
}

template <typename Value>
void MirroredRow(const Value* __restrict from, int64_t n, float mean, float scale, float* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[n - 1 - i] = (static_cast<float>(from[i]) - mean) * scale;
}

template <typename Value>
void MirroredRow(const Value* __restrict from, int64_t n, const float* __restrict mean, float scale,
                 float* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[n - 1 - i] = (static_cast<float>(from[i]) - mean[i]) * scale;
}

}  // namespace

Transform::Transform(const TransformationParameter& param, Phase phase, const std::string& mean_file)
    : scale_(param.scale()),
      mirror_(param.mirror()),
      crop_(static_cast<int32_t>(param.crop_size())),
      random_crop_(phase == TRAIN),
      mean_values_(param.mean_value().begin(), param.mean_value().end()),
      mean_file_(mean_file) {
  if (param.has_mean_file() && !mean_values_.empty()) {
    throw UserError("mean_file and mean_value are both set; keep the one to subtract");
  }
  if (param.crop_size() > INT32_MAX)
    throw UserError("crop_size " + std::to_string(param.crop_size()) + " is too large");
  if (param.has_mean_file()) mean_ = ReadMean(mean_file);
}

ImageSize Transform::OutputSize(const ImageSize& image) const {
  return crop_ > 0 ? ImageSize{image.channels, crop_, crop_} : image;
}

std::string Transform::Check(const ImageSize& image) const {
  if (mean_ && image.shape() != mean_->shape) {
    return "the image is " + image.ToString() + ", but the mean image in \"" + mean_file_ + "\" is " +
           mean_->shape.ToString() + " (channels x height x width); compute the mean of this database with " +
           "compute_image_mean, or give one mean_value per channel";
  }
  if (mean_values_.size() > 1 && static_cast<int32_t>(mean_values_.size()) != image.channels) {
    return "there are " + std::to_string(mean_values_.size()) + " mean_value fields, but the image " +
           image.ToString() + " has " + std::to_string(image.channels) +
           " channel(s); give one value, or one per channel";
  }
  if (crop_ > image.height || crop_ > image.width) {
    return "crop_size " + std::to_string(crop_) + " exceeds the image, which is " + image.ToString() +
           " (channels x height x width); lower crop_size, or convert the images again with a larger size";
  }
  return {};
}

template <typename Value>
void Transform::ApplyTo(const Value* image, const ImageSize& size, const RandomStream& random, float* out) const {
  const int64_t image_height = size.height, image_width = size.width;
  const int64_t height = crop_ > 0 ? crop_ : image_height, width = crop_ > 0 ? crop_ : image_width;
  const bool mirrored = mirror_ && random.Below(0, 2) == 1;
  int64_t top = (image_height - height) / 2, left = (image_width - width) / 2;
  if (random_crop_ && crop_ > 0) {
    top = static_cast<int64_t>(random.Below(1, image_height - height + 1));
    left = static_cast<int64_t>(random.Below(2, image_width - width + 1));
  }
  // A mean image is one for the whole record: it is cropped along.
  const float* mean_image = mean_ ? mean_->values.data() : nullptr;
  // Where rows follow each other in the image and in the result, a whole plane is one row.
  const bool whole = !mirrored && width == image_width;
  const int64_t rows = whole ? 1 : height, run = whole ? height * width : width;
  for (int64_t c = 0; c < size.channels; ++c) {
    const float mean = mean_values_.empty() ? 0.0f : mean_values_[mean_values_.size() > 1 ? c : 0];
    for (int64_t h = 0; h < rows; ++h, out += run) {
      const int64_t start = (c * image_height + top + h) * image_width + left;
      if (mean_image) {
        const float* mean_row = mean_image + start;
        mirrored ? MirroredRow(image + start, run, mean_row, scale_, out)
                 : Row(image + start, run, mean_row, scale_, out);
      } else {
        mirrored ? MirroredRow(image + start, run, mean, scale_, out) : Row(image + start, run, mean, scale_, out);
      }
    }
  }
}

void Transform::Apply(const uint8_t* image, const ImageSize& size, const RandomStream& random, float* out) const {
  ApplyTo(image, size, random, out);
}

void Transform::Apply(const float* image, const ImageSize& size, const RandomStream& random, float* out) const {
  ApplyTo(image, size, random, out);
}

}  // namespace crema
