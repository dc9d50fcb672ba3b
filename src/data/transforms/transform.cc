#include "data/transforms/transform.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "crema/error.h"
#include "data/transforms/transform_check.h"

namespace crema {

namespace {

DecodeOptions::Colors ColorsOf(const TransformationParameter& param) {
  return param.force_color()  ? DecodeOptions::Colors::kColor
         : param.force_gray() ? DecodeOptions::Colors::kGray
                              : DecodeOptions::Colors::kAsStored;
}

// Mistakes are told before the file is looked for.
std::optional<MeanImage> ReadMeanOf(const TransformationParameter& param, const std::string& mean_file) {
  if (!param.has_mean_file() || FindMistake(param)) return {};
  return ReadMean(mean_file);
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

Resizer ResizerOf(const TransformationParameter& param) {
  const ResizeParameter& resize = param.resize_param();
  if (resize.resize_mode() != ResizeParameter::FIT_LARGE_SIZE_AND_PAD) return Resizer();
  ImageBorder border;
  if (resize.pad_mode() == ResizeParameter::MIRRORED) border.kind = ImageBorder::Kind::kMirrored;
  if (resize.pad_mode() == ResizeParameter::REPEAT_NEAREST) border.kind = ImageBorder::Kind::kNearest;
  for (const float value : resize.pad_value()) border.color.push_back(static_cast<uint8_t>(std::lrint(value)));
  if (border.color.empty()) border.color.push_back(0);
  return Resizer(std::move(border));
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
    : Transform(param, phase, mean_file, ReadMeanOf(param, mean_file), small_images) {}

Transform::Transform(const TransformationParameter& param, Phase phase, const std::string& mean_file,
                     std::optional<MeanImage> mean, SmallImages small_images)
    : scale_(param.scale()),
      mirror_(param.mirror()),
      train_(phase == TRAIN),
      pads_small_(small_images == SmallImages::kPadded),
      crop_(static_cast<int32_t>(param.crop_size())),
      pad_(static_cast<int32_t>(param.pad())),
      shorter_side_(static_cast<int32_t>(param.resize_shorter_side())),
      resize_height_(FixedResize(param).height),
      resize_width_(FixedResize(param).width),
      resizer_(ResizerOf(param)),
      border_values_(static_cast<size_t>(param.resize_param().pad_value_size())),
      colors_(ColorsOf(param)),
      fixed_extent_(FixedExtentOf(param)),
      random_resize_(RandomResize::Of(param)),
      mean_values_(param.mean_value().begin(), param.mean_value().end()),
      std_values_(param.std_value().begin(), param.std_value().end()),
      mean_file_(mean_file),
      mean_(std::move(mean)) {
  if (const auto mistake = FindMistake(param)) throw UserError("transform_param: " + mistake->message);
  if (train_ && param.has_random_resized_crop()) random_area_.emplace(param.random_resized_crop());
  if (train_ && param.has_random_erasing()) erased_area_.emplace(param.random_erasing());
  if (train_) {
    crop_choice_ = CropChoice::Of(param);
    mirror_vertical_ = param.mirror_vertical();
    max_angle_ = param.max_rotation_angle();
    erasing_probability_ = param.random_erasing().probability();
    jitter_ = ColorJitter(param.color_jitter());
    policy_ = AugmentationPolicy::Of(param);
    if (param.has_gaussian_blur()) blur_.emplace(param.gaussian_blur());
  }
  if (pads_small_ && param.multi_scale()) {
    throw UserError(
        "transform_param: multi_scale is not done to images that get a border where they are small; "
        "remove it");
  }
  if (!mean_) return;
  CREMA_CHECK(!pads_small_);
  if (resize_height_ > 0 && (mean_->shape[1] != resize_height_ || mean_->shape[2] != resize_width_)) {
    throw UserError("the mean image in \"" + mean_file_ + "\" is " + mean_->shape.ToString() +
                    " (channels x height x width), but images are resized to " + std::to_string(resize_height_) + "x" +
                    std::to_string(resize_width_) + " before it is subtracted; give one mean_value per channel, or " +
                    "the mean of a database of that size");
  }
}

ImageExtent Transform::ResizedExtent(const ImageExtent& image) const {
  if (resize_height_ > 0) return {resize_height_, resize_width_};
  if (shorter_side_ > 0) return WithShorterSide(image.height, image.width, shorter_side_);
  return image;
}

ImageExtent Transform::DrawnExtent(const ImageExtent& image, const RandomStream& random) const {
  return random_resize_ ? random_resize_->Draw(image.height, image.width, random, kResize) : ResizedExtent(image);
}

ImageSize Transform::OutputSize(const ImageSize& image, Values values) const {
  if (crop_ > 0) return {image.channels, crop_, crop_};
  ImageExtent extent{image.height, image.width};
  if (values == Values::kBytes) extent = ResizedExtent({image.height, image.width});
  return {image.channels, extent.height + 2 * pad_, extent.width + 2 * pad_};
}

ImageExtent Transform::ShownExtent(const ImageExtent& image) const {
  if (random_area_ || random_resize_) return {crop_, crop_};
  const ImageExtent extent = ResizedExtent(image);
  return crop_ > 0 ? ImageExtent{std::min(extent.height, crop_), std::min(extent.width, crop_)} : extent;
}

std::string Transform::Check(const ImageSize& image, Values values) const {
  ImageExtent extent{image.height, image.width};
  if (values == Values::kBytes) extent = ResizedExtent({image.height, image.width});
  ImageExtent largest = extent;
  if (random_resize_ && values == Values::kBytes) largest = random_resize_->Largest(image.height, image.width);
  if (std::string problem = ResizeProblem({image.height, image.width}, largest); !problem.empty()) return problem;
  const ImageSize resized{image.channels, extent.height, extent.width};
  if (mean_ && random_resize_) {
    if (mean_->shape[0] != image.channels || mean_->shape[1] < crop_ || mean_->shape[2] < crop_) {
      return "the mean image in \"" + mean_file_ + "\" is " + mean_->shape.ToString() + ", but its centre of " +
             std::to_string(image.channels) + "x" + std::to_string(crop_) + "x" + std::to_string(crop_) +
             " (channels x height x width) is to be subtracted; give one mean_value per channel instead";
    }
  } else if (mean_ && !SameExtents(*mean_, resized)) {
    return "the image is " + resized.ToString() + ", but the mean image in \"" + mean_file_ + "\" is " +
           mean_->shape.ToString() + " (channels x height x width); compute the mean of this database with " +
           "compute_image_mean, or give one mean_value per channel";
  }
  for (const std::string& problem :
       {CountProblem("mean_value", mean_values_.size(), image), CountProblem("std_value", std_values_.size(), image),
        CountProblem("resize_param.pad_value", border_values_, image)}) {
    if (!problem.empty()) return problem;
  }
  if (std::string problem = ChangeProblem(image, values); !problem.empty()) return problem;
  if ((random_area_ || pads_small_) && values == Values::kBytes) return {};
  if (random_resize_ && values == Values::kBytes) {
    if (random_resize_->Fits(image.height, image.width)) return {};
    return "crop_size " + std::to_string(crop_) + " exceeds the image, which is " + image.ToString() +
           " (channels x height x width); enlarge small images with allow_upscale: true, or lower crop_size";
  }
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
  if (crop_choice_) {
    const ImageArea area = crop_choice_->Draw(padded_height, padded_width, random, kCropChoice);
    top = area.top;
    left = area.left;
  } else if (train_ && crop_ > 0) {
    top = static_cast<int>(random.Below(kTop, static_cast<uint64_t>(padded_height - window.height + 1)));
    left = static_cast<int>(random.Below(kLeft, static_cast<uint64_t>(padded_width - window.width + 1)));
  }
  // From places in the padded image to places in the image.
  top -= pad_;
  left -= pad_;
  window.part = {top, left, window.height, window.width};
  window.seen.top = std::clamp(top, 0, height);
  window.seen.left = std::clamp(left, 0, width);
  window.seen.height = std::clamp(top + window.height, 0, height) - window.seen.top;
  window.seen.width = std::clamp(left + window.width, 0, width) - window.seen.left;
  window.top = window.seen.top - top;
  window.left = window.seen.left - left;
  if (window.mirrored) window.left = window.width - window.left - window.seen.width;
  window.upside_down = MirrorsVertically(random);
  if (window.upside_down) window.top = window.height - window.top - window.seen.height;
  return window;
}

void Transform::Window::Limit(const ImageArea& place) {
  const int skipped = std::clamp(place.top - seen.top, 0, seen.height);
  const int left_out = std::clamp(place.left - seen.left, 0, seen.width);
  const int rows = std::clamp(place.top + place.height - seen.top, skipped, seen.height) - skipped;
  const int columns = std::clamp(place.left + place.width - seen.left, left_out, seen.width) - left_out;
  top += upside_down ? seen.height - skipped - rows : skipped;
  left += mirrored ? seen.width - left_out - columns : left_out;
  seen = {std::clamp(seen.top - place.top, 0, place.height), std::clamp(seen.left - place.left, 0, place.width), rows,
          columns};
}

Transform::Window Transform::WholeWindow(const RandomStream& random) const {
  Window window;
  window.mirrored = Mirrors(random);
  window.upside_down = MirrorsVertically(random);
  window.height = window.width = crop_;
  window.part = window.seen = {0, 0, crop_, crop_};
  return window;
}

// Resizing, turning and cutting out are one map, so that only what is seen is computed, and interpolated once.
Transform::Window Transform::TurnedWindow(const ImageExtent& whole, const RandomStream& random,
                                          std::vector<PixelRun>* runs, AffineMap* map) const {
  const double degrees = max_angle_ * (2.0 * random.Uniform(kAngle) - 1);
  Window window;
  if (random_area_) {
    window = WholeWindow(random);
    const ImageArea area = random_area_->Draw(whole.height, whole.width, random, kArea);
    *map = TurnedMap(whole, whole, degrees, area, window.height, window.width);
  } else {
    const ImageExtent resized = DrawnExtent(whole, random);
    window = WindowOf(resized.height, resized.width, random);
    *map = TurnedMap(whole, resized, degrees, window.part, window.height, window.width);
    window.seen = {0, 0, window.height, window.width};
    window.top = window.left = 0;
  }
  FindCovered(*map, whole, window.height, window.width, runs);
  window.runs = *runs;
  return window;
}

bool Transform::MirrorsVertically(const RandomStream& random) const {
  return mirror_vertical_ && random.Below(kMirrorVertical, 2) == 1;
}

void Transform::Apply(const float* planes, const ImageSize& size, const RandomStream& random, float* out) const {
  ApplyToPlanes(planes, size, random, out);
}

void Transform::Apply(const uint8_t* planes, const ImageSize& size, const RandomStream& random,
                      TransformScratch* scratch, float* out) const {
  const ImageExtent resized = DrawnExtent({size.height, size.width}, random);
  if (!random_area_ && !cuts_sizes() && max_angle_ == 0 && !jitter_.changes() && !changes_bytes() &&
      resized.height == size.height && resized.width == size.width) {
    return ApplyToPlanes(planes, size, random, out);
  }
  FromPlanes(planes, size.channels, size.height, size.width, &scratch->image);
  Apply(scratch->image, random, scratch, out);
}

void Transform::Apply(const Image& image, const RandomStream& random, TransformScratch* scratch, float* out,
                      const ReducedImage& reduced) const {
  CREMA_CHECK(reduced.reduction == 1 || random_area_) << "an image was decoded smaller that is not resized";
  const ImageExtent whole = reduced.reduction == 1 ? ImageExtent{image.height, image.width} : reduced.whole;
  CREMA_CHECK(image.height * reduced.reduction >= whole.height && image.width * reduced.reduction >= whole.width);
  if (max_angle_ > 0) {
    AffineMap map;
    const Window window = TurnedWindow(whole, random, &scratch->runs, &map);
    SampleBilinear(image, map.Reduced(reduced.reduction), window.runs, window.width, &scratch->resized);
    return WritePixels(scratch->resized, window, random, scratch, out);
  }
  if (random_area_) {
    const ImageArea area = random_area_->Draw(whole.height, whole.width, random, kArea);
    if (reduced.reduction == 1) {
      ResizeBilinear(image, area, crop_, crop_, &scratch->buffers, &scratch->resized);
    } else {
      // Of images decoded smaller, areas begin and end between pixels.
      const double scale = 1.0 / reduced.reduction;
      const RealArea part{area.top * scale, area.left * scale, area.height * scale, area.width * scale};
      ResizeRealArea(image, part, crop_, crop_, &scratch->buffers, &scratch->resized);
    }
    return WritePixels(scratch->resized, WholeWindow(random), random, scratch, out);
  }
  if (cuts_sizes()) return ApplyToChoice(image, random, scratch, out);
  ApplyToPart(image, {0, 0, image.height, image.width}, random, scratch, out);
}

// Resizing twice would interpolate twice.
void Transform::ApplyToChoice(const Image& image, const RandomStream& random, TransformScratch* scratch,
                              float* out) const {
  const ImageExtent extent = ResizedExtent({image.height, image.width});
  const ImageArea area = crop_choice_->Draw(extent.height, extent.width, random, kCropChoice);
  if (extent.height == image.height && extent.width == image.width) {
    ResizeBilinear(image, area, crop_, crop_, &scratch->buffers, &scratch->resized);
  } else {
    const double rows = static_cast<double>(image.height) / extent.height;
    const double columns = static_cast<double>(image.width) / extent.width;
    const RealArea part{area.top * rows, area.left * columns, area.height * rows, area.width * columns};
    ResizeRealArea(image, part, crop_, crop_, &scratch->buffers, &scratch->resized);
  }
  WritePixels(scratch->resized, WholeWindow(random), random, scratch, out);
}

void Transform::ApplyFramed(const FramedImage& image, const RandomStream& random, TransformScratch* scratch,
                            float* out) const {
  const ImageExtent extent = ResizedExtent({image.height, image.width});
  resizer_.Resize(image, extent, &scratch->buffers, &scratch->resized);
  WritePixels(scratch->resized, WindowOf(extent.height, extent.width, random), random, scratch, out);
}

void Transform::ApplyToPart(const Image& image, const ImageArea& part, const RandomStream& random,
                            TransformScratch* scratch, float* out) const {
  const ImageExtent extent = DrawnExtent({part.height, part.width}, random);
  const Image* resized = &image;
  const bool whole = part == ImageArea{0, 0, image.height, image.width};
  if (!whole || extent.height != image.height || extent.width != image.width) {
    resizer_.Resize(image, part, extent, &scratch->buffers, &scratch->resized);
    resized = &scratch->resized;
  }
  WritePixels(*resized, WindowOf(resized->height, resized->width, random), random, scratch, out);
}

void Transform::ApplyToLabels(const Image& labels, const RandomStream& random, TransformScratch* scratch, float border,
                              float* out) const {
  CREMA_CHECK(labels.channels == 1);
  if (max_angle_ > 0) {
    AffineMap map;
    const Window window = TurnedWindow({labels.height, labels.width}, random, &scratch->runs, &map);
    SampleNearest(labels, map, window.runs, window.width, &scratch->resized);
    return WriteLabels(scratch->resized, window, random, scratch, border, out);
  }
  ImageArea area{0, 0, labels.height, labels.width};
  ImageExtent extent = DrawnExtent({labels.height, labels.width}, random);
  if (random_area_) {
    area = random_area_->Draw(labels.height, labels.width, random, kArea);
    extent = {crop_, crop_};
  }
  Window window = random_area_ ? WholeWindow(random) : WindowOf(extent.height, extent.width, random);
  if (!random_area_ && resizer_.keeps_proportions()) {
    const ImageArea place = resizer_.PlaceOf({labels.height, labels.width}, extent);
    window.Limit(place);
    extent = {place.height, place.width};
  }
  const Image* resized = &labels;
  if (random_area_ || extent.height != labels.height || extent.width != labels.width) {
    ResizeNearest(labels, area, extent.height, extent.width, &scratch->buffers, &scratch->resized);
    resized = &scratch->resized;
  }
  WriteLabels(*resized, window, random, scratch, border, out);
}

}  // namespace crema
