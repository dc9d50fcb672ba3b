#include "data/loaders/dense_image_loader.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "crema/error.h"

namespace crema {

PixelTargets TargetsOf(ImageDataParameter::Labelmap labelmap) {
  PixelTargets targets;
  for (size_t value = 0; value < targets.size(); ++value) {
    const float share = static_cast<float>(value) / 255;
    const bool sure = share > 0.5F;
    targets[value] = labelmap == ImageDataParameter::NUMBERS ? static_cast<float>(value)
                     : sure                                  ? 1.0F
                     : labelmap == ImageDataParameter::WEAK  ? share
                                                             : 0.0F;
  }
  return targets;
}

void DenseImageLoader::Load(uint64_t position, float* data, float* label, ItemScratch& scratch) const {
  LoadImage(position, data, scratch);
  const ImageExtent image = scratch.whole;
  ReadLabels(position, scratch);
  constexpr float kOutside = -1;
  const float border = targets_ ? kOutside : border_;
  transform().ApplyToLabels(scratch.decoded, RandomAt(position), &scratch.transform, border, label);
  if (targets_) {
    std::transform(label, label + label_count(), label, [this](float value) {
      return value == kOutside ? border_ : (*targets_)[static_cast<size_t>(value)];
    });
  }
  if (!tells_extents_) return;
  const ImageExtent shown = transform().ShownExtent(image);
  label[label_count()] = static_cast<float>(shown.height);
  label[label_count() + 1] = static_cast<float>(shown.width);
}

void DenseImageLoader::ReadLabels(uint64_t position, ItemScratch& scratch) const {
  const ImageExtent image = scratch.whole;
  const size_t entry = EntryAt(position);
  Image& labels = scratch.decoded;
  if (labels_->entries.empty()) {
    const int label = list().entries[entry].label;
    CREMA_CHECK(label >= 0 && label <= 255);
    labels.Resize(image.height, image.width, 1);
    std::fill(labels.pixels.begin(), labels.pixels.end(), static_cast<uint8_t>(label));
    return;
  }
  const auto fail = [&](const std::string& problem) {
    throw UserError("label image " + labels_->Named(entry) + " " + problem);
  };
  const auto colors = targets_ ? DecodeOptions::Colors::kGray : DecodeOptions::Colors::kNumbers;
  const std::string problem = DecodeImage(ReadImage(*labels_, entry, scratch), {colors}, &labels);
  if (!problem.empty()) fail(problem);
  if (labels.height != image.height || labels.width != image.width) {
    fail("is " + std::to_string(labels.height) + "x" + std::to_string(labels.width) + ", but " + Describe(position) +
         " is " + std::to_string(image.height) + "x" + std::to_string(image.width) +
         " (height x width, upright as Exif says); a label image has the size of its image");
  }
}

}  // namespace crema
