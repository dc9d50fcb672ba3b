// Items from a database of AnnotatedDatums.
#ifndef CREMA_DATA_LOADERS_ANNOTATED_LOADER_H_
#define CREMA_DATA_LOADERS_ANNOTATED_LOADER_H_

#include <cstdint>
#include <memory>

#include "data/databases/annotated_record.h"
#include "data/loaders/datum_loader.h"
#include "data/transforms/annotated_transform.h"

namespace crema {

// The Datum of record `i`. Throws UserError, naming it, where it is none, or holds no image of bytes.
DatumView ReadImageDatum(const RecordSource& source, uint64_t i, std::span<const std::byte> bytes);

// An item's label has room for `room` objects of kValues each, the first of which is 0 for those that there are; all of
// the others are -1.
class AnnotatedLoader : public DatumLoader {
 public:
  // First value, class, instance, xmin, ymin, xmax, ymax, difficult.
  static constexpr int64_t kValues = 8;

  // `room` 0: labels are not written. `any_type`: records need not say that they hold boxes. Otherwise as DatumLoader.
  AnnotatedLoader(std::shared_ptr<const RecordSource> source, AnnotatedTransform transform, const SampleOrder& order,
                  int64_t room, bool any_type);

  int64_t label_count() const override { return room_ * kValues; }
  void Load(uint64_t position, float* data, float* label, ItemScratch& scratch) const override;

 private:
  void ReadRecord(uint64_t i, AnnotatedRecord* record) const;
  void Decode(uint64_t record, std::span<const std::byte> datum, Image* image) const;
  void WriteObjects(std::span<const BoxedObject> objects, float* label) const;

  AnnotatedTransform transform_;
  int64_t room_;
  bool any_type_;
};

}  // namespace crema

#endif  // CREMA_DATA_LOADERS_ANNOTATED_LOADER_H_
