// Reading Caffe's Datum records without copying them: an own reader of the protobuf wire format
// (https://protobuf.dev/programming-guides/encoding/).
#ifndef CREMA_DATA_DATABASES_DATUM_H_
#define CREMA_DATA_DATABASES_DATUM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "data/databases/image_size.h"

namespace crema {

// A view of one encoded Datum; valid as long as the record's bytes.
struct DatumView {
  ImageSize size;
  int32_t label = 0;
  bool encoded = false;
  std::span<const uint8_t> data;  // size.count() values, or a compressed image where `encoded`
  size_t float_count = 0;         // elements of float_data
  size_t label_count = 0;         // elements of labels
  std::span<const std::byte> record;

  // Whether the values are in `data`; Caffe prefers it to float_data where both are set.
  bool bytes() const { return !data.empty(); }
  // Copies all float_count elements of float_data.
  void CopyFloats(float* to) const;
  // Copies all label_count elements of labels.
  void CopyLabels(float* to) const;
};

// Accepts and reads exactly what protobuf does. Returns what is wrong with the bytes, null when nothing is.
const char* ParseDatum(std::span<const std::byte> record, DatumView* datum);

// Returns what is wrong with a parsed Datum as an image of raw values, with the remedy; empty when nothing is. Of a
// compressed image only whether it is there.
std::string CheckDatum(const DatumView& datum);

// Copies the record's labels to `to`, which has room for `count`, as many as the first record of its database has.
// Returns what is wrong with them, with the remedy, where they are not so many or not all finite; empty when nothing
// is.
[[nodiscard]] std::string ReadDatumLabels(const DatumView& datum, size_t count, float* to);

}  // namespace crema

#endif  // CREMA_DATA_DATABASES_DATUM_H_
