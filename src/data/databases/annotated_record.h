// Reading records of SSD's databases (AnnotatedDatum, proto/crema/annotation.proto) without copying their images.
#ifndef CREMA_DATA_DATABASES_ANNOTATED_RECORD_H_
#define CREMA_DATA_DATABASES_ANNOTATED_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/databases/record_source.h"
#include "data/transforms/object_box.h"

namespace crema {

struct AnnotatedRecord {
  std::span<const std::byte> datum;  // an encoded Datum; empty: the record is no AnnotatedDatum
  std::optional<int64_t> type;       // AnnotatedDatum::BBOX, or one that is not known
  std::vector<BoxedObject> objects;  // in the order of groups
};

// Reads all but the image. Returns what is wrong with the bytes, null when nothing is. Memory of `record` is used
// again.
const char* ParseAnnotated(std::span<const std::byte> bytes, AnnotatedRecord* record);

// Reads record `i` but for its image. Throws UserError, naming it, where it is no AnnotatedDatum.
void ReadAnnotated(const RecordSource& source, uint64_t i, AnnotatedRecord* record);

// That record `i` is none; problem: as ParseAnnotated tells, null where the record has no datum.
[[noreturn]] void RefuseAnnotated(const RecordSource& source, uint64_t i, const char* problem);

// Whether the database holds AnnotatedDatums, judged by the first record.
bool HoldsAnnotated(const RecordSource& source);

// Why the object is not one that can be learnt, since its box is not finite, has no area or lies beside the image: "an
// object of label 2 whose box, 0.5 0.1 0.5 0.3 (xmin ymin xmax ymax), has no area". Nothing where it can.
std::optional<std::string> MistakeOf(const BoxedObject& object);

struct ObjectCounts {
  int64_t objects = 0;
  int64_t most = 0;         // of one record
  int64_t not_learnt = 0;   // MistakeOf says why
  uint64_t first_with = 0;  // the first record with such an object, where there is one
};

// Looks at every record. Throws UserError, naming the record, where one is no AnnotatedDatum.
ObjectCounts CountObjects(const RecordSource& source);

}  // namespace crema

#endif  // CREMA_DATA_DATABASES_ANNOTATED_RECORD_H_
