// Reading records of SSD's databases (AnnotatedDatum, proto/crema/annotation.proto) without copying their images.
#ifndef CREMA_DATA_ANNOTATED_RECORD_H_
#define CREMA_DATA_ANNOTATED_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/object_box.h"
#include "data/record_source.h"

namespace crema {

struct AnnotatedRecord {
  std::span<const std::byte> datum;  // an encoded Datum; empty: the record is no AnnotatedDatum
  std::optional<int64_t> type;       // AnnotatedDatum::BBOX, or one that is not known
  std::vector<BoxedObject> objects;  // in the order of groups
};

// Reads all but the image. Returns what is wrong with the bytes, null when nothing is. Memory of `record` is used
// again.
const char* ParseAnnotated(std::span<const std::byte> bytes, AnnotatedRecord* record);

// Whether the database holds AnnotatedDatums, judged by the first record.
bool HoldsAnnotated(const RecordSource& source);

// The largest number of objects of any record; every record is looked at. Throws UserError, naming the record, where
// one is no AnnotatedDatum.
int64_t MostObjects(const RecordSource& source);

}  // namespace crema

#endif  // CREMA_DATA_ANNOTATED_RECORD_H_
