// What a Prefetcher fills its batches with.
#ifndef CREMA_DATA_LOADERS_ITEM_LOADER_H_
#define CREMA_DATA_LOADERS_ITEM_LOADER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "crema/tensor.h"
#include "data/databases/annotated_record.h"
#include "data/transforms/annotated_transform.h"
#include "data/transforms/transform.h"
#include "image/image.h"

namespace crema {

// The working memory of one thread, kept from item to item so that loading allocates nothing once it has grown.
struct ItemScratch {
  std::vector<float> floats;         // of a record of floats
  std::vector<uint8_t> bytes;        // of a file
  std::string path;                  // of a file
  std::vector<int> frames;           // of a video
  std::shared_ptr<const void> kept;  // what the loader will want again for the next item
  Image decoded;
  ImageExtent whole;  // of the image, which may be decoded smaller
  TransformScratch transform;
  // Of records with objects.
  AnnotatedRecord record;
  AnnotatedScratch annotated;
};

// An endless stream of items (images with labels, rows of numbers), each a pure function of its position in the stream,
// so that batches can be made by any thread in any order. Const methods are called by several threads at once.
class ItemLoader {
 public:
  virtual ~ItemLoader() = default;

  // Shape of one item.
  virtual const Shape& item_shape() const = 0;
  // Values of an item's label.
  virtual int64_t label_count() const { return 1; }
  // Further values of an item, which lie behind its label.
  virtual int64_t extra_count() const { return 0; }
  // Writes item_shape().count() values to `data` and the label, where items have one, to `label`. `scratch` is the
  // calling thread's own. Throws UserError, naming the record, where the item is unusable.
  virtual void Load(uint64_t position, float* data, float* label, ItemScratch& scratch) const = 0;
  // `record "00000042" of train_lmdb`, for messages.
  virtual std::string Describe(uint64_t position) const = 0;
  // Items of an epoch; 0: the stream knows none.
  virtual uint64_t records() const { return 0; }
  // Whether items are compressed images: decoding them is worth a thread for every core.
  virtual bool decodes() const { return false; }
};

}  // namespace crema

#endif  // CREMA_DATA_LOADERS_ITEM_LOADER_H_
