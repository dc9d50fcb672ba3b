// Items from image files and label images.
#ifndef CREMA_DATA_DENSE_IMAGE_LOADER_H_
#define CREMA_DATA_DENSE_IMAGE_LOADER_H_

#include <cstdint>
#include <memory>

#include "data/image_list_loader.h"

namespace crema {

// As ImageListLoader; an item's labels are those of the pixels of its image, row by row.
class DenseImageLoader : public ImageListLoader {
 public:
  // `images` and `labels` have as many entries. `border`: the label of what is no pixel of an image. Throws as
  // ImageListLoader does.
  DenseImageLoader(std::shared_ptr<const ImageList> images, std::shared_ptr<const ImageList> labels,
                   Transform transform, const SampleOrder& order, float border)
      : ImageListLoader(std::move(images), std::move(transform), order), labels_(std::move(labels)), border_(border) {}

  int64_t label_count() const override { return int64_t{item_size().height} * item_size().width; }
  void Load(uint64_t position, float* data, float* label, ItemScratch& scratch) const override;

 private:
  std::shared_ptr<const ImageList> labels_;
  float border_;
};

}  // namespace crema

#endif  // CREMA_DATA_DENSE_IMAGE_LOADER_H_
