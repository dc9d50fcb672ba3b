// Whole records of databases, decoded.
#ifndef CREMA_DATA_DATABASES_RECORD_IMAGE_H_
#define CREMA_DATA_DATABASES_RECORD_IMAGE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/databases/annotated_record.h"
#include "data/databases/datum.h"
#include "data/databases/image_size.h"
#include "data/databases/record_source.h"
#include "image/image.h"

namespace crema {

// What one record holds; one for each thread, so that its buffers stay.
struct RecordImage {
  DatumView datum;
  AnnotatedRecord annotated;       // what else there is where the record is an AnnotatedDatum
  ImageSize size;                  // of the decoded image where the datum is encoded
  std::span<const uint8_t> bytes;  // size.count() values channel by channel, or empty where there are floats
  std::vector<float> floats;       // the same of float_data
  std::vector<float> labels;       // where they were read

  Image decoded;  // where the datum is encoded
  std::vector<uint8_t> planes;
};

// Reads the fields of a Datum or AnnotatedDatum (then the record's `datum` is not empty), but no image. Returns what is
// wrong with them, "is no Datum: ..."; empty when nothing is.
[[nodiscard]] std::string ReadRecordFields(std::span<const std::byte> record, RecordImage* image);

// Reads the record's fields and decodes its image. Returns what is wrong with it, "is cut short (...)"; empty when
// nothing is. The record must stay as long as `image` is used.
[[nodiscard]] std::string ReadRecordImage(std::span<const std::byte> record, RecordImage* image);

// Reads the labels of a record whose fields were read, `count` as the first record of its database has. Returns what is
// wrong with them as ReadDatumLabels does; those of records with objects are nothing that anyone reads.
[[nodiscard]] std::string ReadRecordLabels(size_t count, RecordImage* image);

// "0.5 -1 300", with the fewest digits that tell all floats apart.
std::string LabelsText(std::span<const float> labels);

// The key with which record `i` is named in a message; see RecordSource::Key.
[[noreturn]] void RejectRecord(const RecordSource& source, uint64_t i, const std::string& why);

}  // namespace crema

#endif  // CREMA_DATA_DATABASES_RECORD_IMAGE_H_
