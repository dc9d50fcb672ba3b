#include "data/dense_image_loader.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "crema/error.h"

namespace crema {

void DenseImageLoader::Load(uint64_t position, float* data, float* label, ItemScratch& scratch) const {
  LoadImage(position, data, scratch);
  const ImageExtent image = scratch.whole;
  ReadLabels(position, scratch);
  transform().ApplyToLabels(scratch.decoded, RandomAt(position), &scratch.transform, border_, label);
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
  const std::string problem =
      DecodeImage(ReadImage(*labels_, entry, scratch), {DecodeOptions::Colors::kNumbers}, &labels);
  if (!problem.empty()) fail(problem);
  if (labels.height != image.height || labels.width != image.width) {
    fail("is " + std::to_string(labels.height) + "x" + std::to_string(labels.width) + ", but " + Describe(position) +
         " is " + std::to_string(image.height) + "x" + std::to_string(image.width) +
         " (height x width, upright as Exif says); a label image has the size of its image");
  }
}

}  // namespace crema
