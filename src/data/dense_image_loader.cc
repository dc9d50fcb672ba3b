#include "data/dense_image_loader.h"

#include <string>

#include "crema/error.h"

namespace crema {

void DenseImageLoader::Load(uint64_t position, float* data, float* label, ItemScratch& scratch) const {
  LoadImage(position, data, scratch);
  const ImageExtent image = scratch.whole;
  const size_t entry = EntryAt(position);
  const auto fail = [&](const std::string& problem) {
    throw UserError("label image \"" + labels_->PathOf(entry) + "\" " + problem);
  };
  Image& labels = scratch.decoded;
  const std::string problem =
      DecodeImage(ReadImage(*labels_, entry, scratch), {DecodeOptions::Colors::kNumbers}, &labels);
  if (!problem.empty()) fail(problem);
  if (labels.height != image.height || labels.width != image.width) {
    fail("is " + std::to_string(labels.height) + "x" + std::to_string(labels.width) + ", but " + Describe(position) +
         " is " + std::to_string(image.height) + "x" + std::to_string(image.width) +
         " (height x width, upright as Exif says); a label image has the size of its image");
  }
  transform().ApplyToLabels(labels, RandomAt(position), &scratch.transform, border_, label);
}

}  // namespace crema
