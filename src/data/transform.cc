#include "data/transform.h"

#include <algorithm>
#include <cstdlib>

#include "base/check.h"
#include "crema/error.h"
#include "data/pixel_values.h"
#include "data/transform_check.h"

namespace crema {

namespace {

enum RandomNumber : uint64_t { kTop = 1, kLeft = 2, kJitter = 3, kArea = 6 };

DecodeOptions::Colors ColorsOf(const TransformationParameter& param) {
  return param.force_color()  ? DecodeOptions::Colors::kColor
         : param.force_gray() ? DecodeOptions::Colors::kGray
                              : DecodeOptions::Colors::kAsStored;
}

// Without making a Shape, which allocates.
bool SameExtents(const MeanImage& mean, const ImageSize& image) {
  return mean.shape[0] == image.channels && mean.shape[1] == image.height && mean.shape[2] == image.width;
}

std::string CountProblem(const char* field, size_t count, const ImageSize& image) {
  if (count <= 1 || static_cast<int32_t>(count) == image.channels) return {};
  return "there are " + std::to_string(count) + " " + field + " fields, but the image " + image.ToString() + " has " +
         std::to_string(image.channels) + " channel(s); give one value, or one per channel";
}

}  // namespace

ImageExtent FixedResize(const TransformationParameter& param) {
  if (param.has_resize_param()) {
    return {static_cast<int>(param.resize_param().height()), static_cast<int>(param.resize_param().width())};
  }
  return {static_cast<int>(param.resize_height()), static_cast<int>(param.resize_width())};
}

std::optional<ImageExtent> FixedExtentOf(const TransformationParameter& param) {
  const auto crop = static_cast<int>(param.crop_size()), border = 2 * static_cast<int>(param.pad());
  if (crop > 0) return ImageExtent{crop, crop};
  const ImageExtent resized = FixedResize(param);
  if (resized.height == 0) return {};
  return ImageExtent{resized.height + border, resized.width + border};
}

Transform::Transform(const TransformationParameter& param, Phase phase, const std::string& mean_file,
                     SmallImages small_images)
    : scale_(param.scale()),
      mirror_(param.mirror()),
      train_(phase == TRAIN),
      pads_small_(small_images == SmallImages::kPadded),
      crop_(static_cast<int32_t>(param.crop_size())),
      pad_(static_cast<int32_t>(param.pad())),
      shorter_side_(static_cast<int32_t>(param.resize_shorter_side())),
      resize_height_(FixedResize(param).height),
      resize_width_(FixedResize(param).width),
      colors_(ColorsOf(param)),
      fixed_extent_(FixedExtentOf(param)),
      mean_values_(param.mean_value().begin(), param.mean_value().end()),
      std_values_(param.std_value().begin(), param.std_value().end()),
      mean_file_(mean_file) {
  if (const auto mistake = FindMistake(param)) throw UserError("transform_param: " + mistake->message);
  if (train_ && param.has_random_resized_crop()) random_area_.emplace(param.random_resized_crop());
  if (train_) jitter_ = ColorJitter(param.color_jitter());
  if (!param.has_mean_file()) return;
  CREMA_CHECK(!pads_small_);
  mean_ = ReadMean(mean_file);
  if (resize_height_ > 0 && (mean_->shape[1] != resize_height_ || mean_->shape[2] != resize_width_)) {
    throw UserError("the mean image in \"" + mean_file_ + "\" is " + mean_->shape.ToString() +
                    " (channels x height x width), but images are resized to " + std::to_string(resize_height_) + "x" +
                    std::to_string(resize_width_) + " before it is subtracted; give one mean_value per channel, or " +
                    "the mean of a database of that size");
  }
}

ImageExtent Transform::ResizedExtent(int height, int width) const {
  if (resize_height_ > 0) return {resize_height_, resize_width_};
  if (shorter_side_ > 0) return WithShorterSide(height, width, shorter_side_);
  return {height, width};
}

ImageSize Transform::OutputSize(const ImageSize& image, Values values) const {
  if (crop_ > 0) return {image.channels, crop_, crop_};
  ImageExtent extent{image.height, image.width};
  if (values == Values::kBytes) extent = ResizedExtent(image.height, image.width);
  return {image.channels, extent.height + 2 * pad_, extent.width + 2 * pad_};
}

ImageExtent Transform::ShownExtent(const ImageExtent& image) const {
  if (random_area_) return {crop_, crop_};
  const ImageExtent extent = ResizedExtent(image.height, image.width);
  return crop_ > 0 ? ImageExtent{std::min(extent.height, crop_), std::min(extent.width, crop_)} : extent;
}

std::string Transform::Check(const ImageSize& image, Values values) const {
  ImageExtent extent{image.height, image.width};
  if (values == Values::kBytes) extent = ResizedExtent(image.height, image.width);
  const ImageSize resized{image.channels, extent.height, extent.width};
  if (mean_ && !SameExtents(*mean_, resized)) {
    return "the image is " + resized.ToString() + ", but the mean image in \"" + mean_file_ + "\" is " +
           mean_->shape.ToString() + " (channels x height x width); compute the mean of this database with " +
           "compute_image_mean, or give one mean_value per channel";
  }
  for (const std::string& problem :
       {CountProblem("mean_value", mean_values_.size(), image), CountProblem("std_value", std_values_.size(), image)}) {
    if (!problem.empty()) return problem;
  }
  if (values == Values::kBytes && jitter_.changes() && image.channels != 1 && image.channels != 3) {
    return "color_jitter changes images of 1 or 3 channels, but the image is " + image.ToString() +
           " (channels x height x width); leave color_jitter out";
  }
  if ((random_area_ || pads_small_) && values == Values::kBytes) return {};
  if (crop_ > extent.height + 2 * pad_ || crop_ > extent.width + 2 * pad_) {
    return "crop_size " + std::to_string(crop_) + " exceeds the image, which is " + resized.ToString() +
           " (channels x height x width)" + (pad_ > 0 ? " with a border of " + std::to_string(pad_) : "") +
           "; enlarge small images with resize_shorter_side: " + std::to_string(crop_) + " or more, lower crop_size, " +
           "or convert the images again with a larger size";
  }
  return {};
}

int Transform::ReductionFor(const ImageExtent& whole, const RandomStream& random) const {
  if (!random_area_) return 1;
  return LargestReduction(random_area_->Draw(whole.height, whole.width, random, kArea), crop_);
}

Transform::Window Transform::WindowOf(int height, int width, const RandomStream& random) const {
  Window window;
  window.mirrored = Mirrors(random);
  const int least = pads_small_ ? crop_ : 0;
  const int padded_height = std::max(height + 2 * pad_, least), padded_width = std::max(width + 2 * pad_, least);
  window.height = crop_ > 0 ? crop_ : padded_height;
  window.width = crop_ > 0 ? crop_ : padded_width;
  int top = (padded_height - window.height) / 2, left = (padded_width - window.width) / 2;
  if (train_ && crop_ > 0) {
    top = static_cast<int>(random.Below(kTop, static_cast<uint64_t>(padded_height - window.height + 1)));
    left = static_cast<int>(random.Below(kLeft, static_cast<uint64_t>(padded_width - window.width + 1)));
  }
  // From places in the padded image to places in the image.
  top -= pad_;
  left -= pad_;
  window.seen.top = std::clamp(top, 0, height);
  window.seen.left = std::clamp(left, 0, width);
  window.seen.height = std::clamp(top + window.height, 0, height) - window.seen.top;
  window.seen.width = std::clamp(left + window.width, 0, width) - window.seen.left;
  window.top = window.seen.top - top;
  window.left = window.seen.left - left;
  if (window.mirrored) window.left = window.width - window.left - window.seen.width;
  return window;
}

Transform::Window Transform::WholeWindow(const RandomStream& random) const {
  Window window;
  window.mirrored = Mirrors(random);
  window.height = window.width = crop_;
  window.seen = {0, 0, crop_, crop_};
  return window;
}

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
  const bool whole = !window.mirrored && window.covers() && window.width == size.width;
  const int64_t rows = whole ? 1 : window.seen.height, run = whole ? plane : window.seen.width;
  for (int64_t c = 0; c < size.channels; ++c) {
    const float mean = mean_ ? 0 : MeanOf(c), factor = mean_ ? 1 : FactorOf(c);
    for (int64_t y = 0; y < rows; ++y) {
      const Value* from = planes + (c * size.height + window.seen.top + y) * size.width + window.seen.left;
      WriteRow(from, run, mean, factor, window.mirrored,
               out + c * plane + (window.top + y) * window.width + window.left);
    }
  }
  if (mean_) SubtractMeanImage(window, size.channels, out);
}

// A mean image is one for the whole record: it is cropped and mirrored along.
void Transform::SubtractMeanImage(const Window& window, int channels, float* out) const {
  const int64_t height = mean_->shape[1], width = mean_->shape[2];
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t y = 0; y < window.height; ++y, out += window.width) {
      const float* mean = mean_->values.data() + (c * height + window.seen.top + y) * width + window.seen.left;
      SubtractRow(mean, window.width, FactorOf(c), window.mirrored, out);
    }
  }
}

void Transform::Apply(const float* planes, const ImageSize& size, const RandomStream& random, float* out) const {
  ApplyToPlanes(planes, size, random, out);
}

void Transform::Apply(const uint8_t* planes, const ImageSize& size, const RandomStream& random,
                      TransformScratch* scratch, float* out) const {
  const ImageExtent resized = ResizedExtent(size.height, size.width);
  if (!random_area_ && !jitter_.changes() && resized.height == size.height && resized.width == size.width) {
    return ApplyToPlanes(planes, size, random, out);
  }
  FromPlanes(planes, size.channels, size.height, size.width, &scratch->image);
  Apply(scratch->image, random, scratch, out);
}

void Transform::Apply(const Image& image, const RandomStream& random, TransformScratch* scratch, float* out,
                      const Reduction& reduced) const {
  if (random_area_) {
    const bool whole = reduced.reduction == 1;
    ImageArea area = random_area_->Draw(whole ? image.height : reduced.whole.height,
                                        whole ? image.width : reduced.whole.width, random, kArea);
    if (!whole) area = Reduced(area, reduced.reduction);
    ResizeBilinear(image, area, crop_, crop_, &scratch->buffers, &scratch->resized);
    return WritePixels(scratch->resized, WholeWindow(random), random, out);
  }
  CREMA_CHECK(reduced.reduction == 1) << "an image was decoded smaller that is not resized";
  ApplyToPart(image, {0, 0, image.height, image.width}, random, scratch, out);
}

void Transform::ApplyFramed(const FramedImage& image, const RandomStream& random, TransformScratch* scratch,
                            float* out) const {
  const ImageExtent extent = ResizedExtent(image.height, image.width);
  ResizeBilinear(image, extent.height, extent.width, &scratch->buffers, &scratch->resized);
  WritePixels(scratch->resized, WindowOf(extent.height, extent.width, random), random, out);
}

void Transform::ApplyToPart(const Image& image, const ImageArea& part, const RandomStream& random,
                            TransformScratch* scratch, float* out) const {
  const ImageExtent extent = ResizedExtent(part.height, part.width);
  const Image* resized = &image;
  const bool whole = part == ImageArea{0, 0, image.height, image.width};
  if (!whole || extent.height != image.height || extent.width != image.width) {
    ResizeBilinear(image, part, extent.height, extent.width, &scratch->buffers, &scratch->resized);
    resized = &scratch->resized;
  }
  WritePixels(*resized, WindowOf(resized->height, resized->width, random), random, out);
}

void Transform::ApplyToLabels(const Image& labels, const RandomStream& random, TransformScratch* scratch, float border,
                              float* out) const {
  CREMA_CHECK(labels.channels == 1);
  ImageArea area{0, 0, labels.height, labels.width};
  ImageExtent extent = ResizedExtent(labels.height, labels.width);
  if (random_area_) {
    area = random_area_->Draw(labels.height, labels.width, random, kArea);
    extent = {crop_, crop_};
  }
  const Window window = random_area_ ? WholeWindow(random) : WindowOf(extent.height, extent.width, random);
  const Image* resized = &labels;
  if (random_area_ || extent.height != labels.height || extent.width != labels.width) {
    ResizeNearest(labels, area, extent.height, extent.width, &scratch->buffers, &scratch->resized);
    resized = &scratch->resized;
  }
  if (!window.covers()) std::fill(out, out + int64_t{window.height} * window.width, border);
  for (int y = 0; y < window.seen.height; ++y) {
    WriteRow(resized->row(window.seen.top + y) + window.seen.left, window.seen.width, 0, 1, window.mirrored,
             out + int64_t{window.top + y} * window.width + window.left);
  }
}

void Transform::WritePixels(const Image& image, const Window& window, const RandomStream& random, float* out) const {
  const int channels = image.channels;
  const int64_t plane = int64_t{window.height} * window.width;
  if (!window.covers()) std::fill(out, out + plane * channels, 0.0f);
  const bool colored = channels == 3, changed = jitter_.changes();
  ColorChange change;
  if (changed) change = jitter_.Draw(image, window.seen, random, kJitter);
  ColorValues values{};
  for (int c = 0; c < 3 && colored; ++c) {
    values.mean[c] = mean_ ? 0 : MeanOf(c);
    values.factor[c] = mean_ ? 1 : FactorOf(c);
  }
  const int n = window.seen.width;
  for (int y = 0; y < window.seen.height; ++y) {
    const uint8_t* from = image.row(window.seen.top + y) + window.seen.left * channels;
    float* to = out + int64_t{window.top + y} * window.width + window.left;
    if (colored) {
      const std::array<float*, 3> rows = {to, to + plane, to + 2 * plane};
      changed ? WriteChangedColorRow(from, n, change, values, window.mirrored, rows)
              : WriteColorRow(from, n, values, window.mirrored, rows);
      continue;
    }
    for (int c = 0; c < channels; ++c) {
      const float mean = mean_ ? 0 : MeanOf(c), factor = mean_ ? 1 : FactorOf(c);
      changed ? WriteChangedRow(from, n, change, mean, factor, window.mirrored, to)
              : WriteChannelRow(from + c, channels, n, mean, factor, window.mirrored, to + c * plane);
    }
  }
  if (mean_) SubtractMeanImage(window, channels, out);
}

}  // namespace crema
