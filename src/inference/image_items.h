// The images that a net is run over: files, or the records of a database.
#ifndef CREMA_INFERENCE_IMAGE_ITEMS_H_
#define CREMA_INFERENCE_IMAGE_ITEMS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/databases/record_source.h"
#include "data/files/image_list.h"
#include "inference/image_preparation.h"

namespace crema {

// What is known of an item beside its image.
struct ItemLabel {
  int64_t number = -1;         // of its class; -1: not known
  std::vector<float> several;  // ImageItems::label_count numbers instead
};

// Const methods may be called by several threads at once.
class ImageItems {
 public:
  virtual ~ImageItems() = default;

  virtual uint64_t count() const = 0;
  // The path or the record's key.
  virtual std::string Name(uint64_t i) const = 0;
  // Numbers of each item instead of a class; 0: it has a class, or nothing is known.
  virtual size_t label_count() const { return 0; }
  // Whether names are keys of a database, in which / is a character as others.
  virtual bool of_database() const { return false; }
  // Whether they are as a data layer takes them (ImagePreparation): records of a database, or the net's own files.
  virtual bool of_layer() const { return false; }
  // The size of image i as it is stored; empty where it cannot be read.
  virtual std::optional<ImageSize> Size(uint64_t i) const = 0;
  // How image i is stored, which can be read.
  virtual StoredAs stored_as(uint64_t) const { return StoredAs::kCompressed; }
  // Writes what the net sees of image i, and its label; returns what is wrong with the item, empty when nothing is.
  [[nodiscard]] virtual std::string Load(uint64_t i, const ImagePreparation& preparation, PreparationBuffers* buffers,
                                         float* out, ItemLabel* label) const = 0;
};

// Image files; their labels are those of the list where `labelled`, and of_layer() says whether the net's own layer
// reads them.
class ImageFiles : public ImageItems {
 public:
  ImageFiles(ImageList list, bool labelled, bool of_layer = false)
      : list_(std::move(list)), labelled_(labelled), of_layer_(of_layer) {}

  uint64_t count() const override { return list_.entries.size(); }
  size_t label_count() const override { return labelled_ ? list_.label_count : 0; }
  std::string Name(uint64_t i) const override { return list_.PathOf(i); }
  bool of_layer() const override { return of_layer_; }
  std::optional<ImageSize> Size(uint64_t i) const override;
  std::string Load(uint64_t i, const ImagePreparation& preparation, PreparationBuffers* buffers, float* out,
                   ItemLabel* label) const override;

 private:
  ImageList list_;
  bool labelled_, of_layer_;
};

// The records of a database of Datums, raw or encoded.
class DatabaseImages : public ImageItems {
 public:
  explicit DatabaseImages(std::shared_ptr<const RecordSource> source) : source_(std::move(source)) {}

  uint64_t count() const override { return source_->count(); }
  bool of_database() const override { return true; }
  bool of_layer() const override { return true; }
  std::string Name(uint64_t i) const override;
  // That of the first record.
  size_t label_count() const override;
  std::optional<ImageSize> Size(uint64_t i) const override;
  StoredAs stored_as(uint64_t i) const override;
  std::string Load(uint64_t i, const ImagePreparation& preparation, PreparationBuffers* buffers, float* out,
                   ItemLabel* label) const override;

 private:
  std::shared_ptr<const RecordSource> source_;
  mutable std::once_flag counted_;
  mutable size_t label_count_ = 0;
  // Of all records, since finding one takes as long; when the first is asked for.
  mutable std::once_flag listed_;
  mutable std::vector<std::string> names_;
};

}  // namespace crema

#endif  // CREMA_INFERENCE_IMAGE_ITEMS_H_
