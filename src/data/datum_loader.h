// Items from a database of Caffe Datums.
#ifndef CREMA_DATA_DATUM_LOADER_H_
#define CREMA_DATA_DATUM_LOADER_H_

#include <memory>
#include <string>
#include <vector>

#include "data/item_loader.h"
#include "data/record_source.h"
#include "data/sample_order.h"
#include "data/transform.h"

namespace crema {

// Size of the first record's image. Throws UserError where it is no usable Datum.
ImageSize FirstImageSize(const RecordSource& source);

// Throws UserError, naming the first record, where its image does not fit the transform; returns its transformed size.
ImageSize FirstOutputSize(const RecordSource& source, const Transform& transform);

// Every record must be as large as the first, or be cropped to the same size. Records may hold bytes or floats.
class DatumLoader : public ItemLoader {
 public:
  // Sets order.records itself. Throws UserError where the first record does not fit the transform.
  DatumLoader(std::shared_ptr<const RecordSource> source, Transform transform, SampleOrder order);

  const Shape& item_shape() const override { return item_shape_; }
  void Load(uint64_t position, float* data, float* label, std::vector<float>& scratch) const override;
  std::string Describe(uint64_t position) const override;

 private:
  void CheckSize(uint64_t record, const ImageSize& size) const;

  std::shared_ptr<const RecordSource> source_;
  Transform transform_;
  SampleOrder order_;
  ImageSize first_;
  Shape item_shape_;
};

}  // namespace crema

#endif  // CREMA_DATA_DATUM_LOADER_H_
