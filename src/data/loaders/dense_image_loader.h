// Items from image files and label images.
#ifndef CREMA_DATA_LOADERS_DENSE_IMAGE_LOADER_H_
#define CREMA_DATA_LOADERS_DENSE_IMAGE_LOADER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "crema/data.pb.h"
#include "data/loaders/image_list_loader.h"

namespace crema {

// What the values of a label image in grey, as decoded, become.
using PixelTargets = std::array<float, 256>;
PixelTargets TargetsOf(ImageDataParameter::Labelmap labelmap);

// As ImageListLoader; an item's labels are those of the pixels of its image, row by row. Behind them, where asked for:
// height and width of what the transform can show of the image.
class DenseImageLoader : public ImageListLoader {
 public:
  // `labels` has as many entries as `images`, or is empty: all pixels of an image are of its class then, from 0 to 255.
  // `border`: the label of what is no pixel of an image. With `targets` label images are decoded to grey, in whatever
  // format, and hold amounts; else they hold classes. Throws as ImageListLoader does.
  DenseImageLoader(std::shared_ptr<const ImageList> images, std::shared_ptr<const ImageList> labels,
                   Transform transform, const SampleOrder& order, float border, bool tells_extents = false,
                   const std::optional<PixelTargets>& targets = {})
      : ImageListLoader(std::move(images), std::move(transform), order),
        labels_(std::move(labels)),
        border_(border),
        tells_extents_(tells_extents),
        targets_(targets) {}

  int64_t label_count() const override { return int64_t{item_size().height} * item_size().width; }
  int64_t extra_count() const override { return tells_extents_ ? 2 : 0; }
  void Load(uint64_t position, float* data, float* label, ItemScratch& scratch) const override;

 private:
  // Into scratch.decoded.
  void ReadLabels(uint64_t position, ItemScratch& scratch) const;

  std::shared_ptr<const ImageList> labels_;
  float border_;
  bool tells_extents_;
  std::optional<PixelTargets> targets_;
};

}  // namespace crema

#endif  // CREMA_DATA_LOADERS_DENSE_IMAGE_LOADER_H_
