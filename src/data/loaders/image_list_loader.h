// Items from image files.
#ifndef CREMA_DATA_LOADERS_IMAGE_LIST_LOADER_H_
#define CREMA_DATA_LOADERS_IMAGE_LIST_LOADER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "data/files/image_list.h"
#include "data/loaders/item_loader.h"
#include "data/loaders/sample_order.h"
#include "data/transforms/transform.h"

namespace crema {

// The bytes of the file scratch.path, in the thread's own memory; `error` becomes 0, or errno, EISDIR and ESPIPE (a
// pipe or device) among them.
std::span<const uint8_t> ReadImageFile(ItemScratch& scratch, int* error);
// The bytes of an image's file, in the thread's own memory. Throws UserError, naming it, where it is absent.
std::span<const uint8_t> ReadImage(const ImageList& list, size_t entry, ItemScratch& scratch);

// Image i of the list is record i of the order; the label is its class, or the labels are its numbers. Images have the
// colours that the transform forces (force_color, force_gray), else those of their files.
class ImageListLoader : public ItemLoader {
 public:
  // Sets order.records itself. Opens the first image where the transform alone does not fix the items' shape. Throws
  // UserError where it does not fit the transform.
  ImageListLoader(std::shared_ptr<const ImageList> list, Transform transform, SampleOrder order);

  const Shape& item_shape() const override { return item_shape_; }
  int64_t label_count() const override { return std::max<int64_t>(1, static_cast<int64_t>(list_->label_count)); }
  void Load(uint64_t position, float* data, float* label, ItemScratch& scratch) const override;
  // `image "photos/cat/1.jpg"`.
  std::string Describe(uint64_t position) const override;
  uint64_t records() const override { return order_.records; }
  bool decodes() const override { return true; }

  const ImageSize& item_size() const { return item_size_; }
  const ImageList& list() const { return *list_; }
  // Which entry of the list stands at `position`.
  size_t EntryAt(uint64_t position) const { return static_cast<size_t>(order_.RecordAt(position)); }

 protected:
  // All of Load but the label.
  void LoadImage(uint64_t position, float* data, ItemScratch& scratch) const;
  const Transform& transform() const { return transform_; }
  RandomStream RandomAt(uint64_t position) const { return order_.RandomAt(position); }

 private:
  std::shared_ptr<const ImageList> list_;
  Transform transform_;
  SampleOrder order_;
  ImageSize item_size_;
  Shape item_shape_;
};

}  // namespace crema

#endif  // CREMA_DATA_LOADERS_IMAGE_LIST_LOADER_H_
