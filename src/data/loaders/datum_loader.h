// Items from a database of Caffe Datums.
#ifndef CREMA_DATA_LOADERS_DATUM_LOADER_H_
#define CREMA_DATA_LOADERS_DATUM_LOADER_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "data/databases/datum.h"
#include "data/databases/record_read_ahead.h"
#include "data/databases/record_source.h"
#include "data/loaders/item_loader.h"
#include "data/loaders/sample_order.h"
#include "data/transforms/transform.h"

namespace crema {

// What the first record says of a database.
struct FirstRecord {
  ImageSize image, item;  // before and after the transform
  bool encoded = false;   // a compressed image
  size_t labels = 0;      // 0: it has a class
};

// Both throw UserError, naming the record, where it is no usable Datum or does not fit the transform. `bytes`: of the
// Datum, which may be a part of the record.
FirstRecord LookAtFirst(const RecordSource& source, std::span<const std::byte> bytes, const Transform& transform);
DatumView ReadDatum(const RecordSource& source, uint64_t record, std::span<const std::byte> bytes);

// Every record must be as large as the first, or be cropped or resized to the same size, and have as many labels; where
// these are none, its class is its label. Records may hold bytes, floats or compressed images, which are decoded as the
// transform says.
class DatumLoader : public ItemLoader {
 public:
  // Sets order.records itself. Records of a database that does not fit well into memory are read ahead. Throws
  // UserError where the first record does not fit the transform.
  DatumLoader(std::shared_ptr<const RecordSource> source, Transform transform, SampleOrder order);

  const Shape& item_shape() const override { return item_shape_; }
  int64_t label_count() const override { return std::max<int64_t>(1, static_cast<int64_t>(first_.labels)); }
  void Load(uint64_t position, float* data, float* label, ItemScratch& scratch) const override;
  std::string Describe(uint64_t position) const override;
  uint64_t records() const override { return order_.records; }
  // Whether the first record is a compressed image.
  bool decodes() const override { return first_.encoded; }

 protected:
  DatumLoader(std::shared_ptr<const RecordSource> source, std::span<const std::byte> first_datum, Transform transform,
              SampleOrder order);

  const RecordSource& source() const { return *source_; }
  const ImageSize& item_size() const { return first_.item; }
  // The record at that position, which is about to be read.
  uint64_t RecordAt(uint64_t position) const;
  RandomStream RandomAt(uint64_t position) const { return order_.RandomAt(position); }

 private:
  std::shared_ptr<const RecordSource> source_;
  Transform transform_;
  SampleOrder order_;
  std::unique_ptr<RecordReadAhead> read_ahead_;  // null where it is of no use
  FirstRecord first_;
  Shape item_shape_;
};

}  // namespace crema

#endif  // CREMA_DATA_LOADERS_DATUM_LOADER_H_
