#include "data/datum_loader.h"

#include <utility>

#include "crema/error.h"
#include "data/datum.h"

namespace crema {

namespace {

DatumView ReadDatum(const RecordSource& source, uint64_t record) {
  DatumView datum;
  const char* damage = ParseDatum(source.Read(record), &datum);
  if (damage) {
    throw UserError(DescribeRecord(source, record) + " is not a readable Datum: " + damage +
                    "; the database is damaged or does not hold images, make it anew");
  }
  const std::string problem = CheckDatum(datum);
  if (!problem.empty()) throw UserError(DescribeRecord(source, record) + " " + problem);
  return datum;
}

}  // namespace

ImageSize FirstImageSize(const RecordSource& source) { return ReadDatum(source, 0).size; }

ImageSize FirstOutputSize(const RecordSource& source, const Transform& transform) {
  const ImageSize first = FirstImageSize(source);
  const std::string problem = transform.Check(first);
  if (!problem.empty()) throw UserError(DescribeRecord(source, 0) + ": " + problem);
  return transform.OutputSize(first);
}

DatumLoader::DatumLoader(std::shared_ptr<const RecordSource> source, Transform transform, SampleOrder order)
    : source_(std::move(source)),
      transform_(std::move(transform)),
      order_(order),
      first_(FirstImageSize(*source_)),
      item_shape_(FirstOutputSize(*source_, transform_).shape()) {
  order_.records = source_->count();
}

void DatumLoader::CheckSize(uint64_t record, const ImageSize& size) const {
  if (size == first_) return;
  const std::string problem = transform_.Check(size);
  if (!problem.empty()) throw UserError(DescribeRecord(*source_, record) + ": " + problem);
  if (transform_.OutputSize(size) != transform_.OutputSize(first_)) {
    throw UserError(
        DescribeRecord(*source_, record) + " is " + size.ToString() + ", but the first record is " + first_.ToString() +
        " (channels x height x width); all images of a batch must agree: convert them " +
        "again to one size (--resize_height, --resize_width) and number of channels, or set crop_size where " +
        "only their sizes differ");
  }
}

void DatumLoader::Load(uint64_t position, float* data, float* label, std::vector<float>& scratch) const {
  const uint64_t record = order_.RecordAt(position);
  const DatumView datum = ReadDatum(*source_, record);
  CheckSize(record, datum.size);
  *label = static_cast<float>(datum.label);
  const RandomStream random = order_.RandomAt(position);
  if (datum.bytes()) {
    transform_.Apply(datum.data.data(), datum.size, random, data);
  } else {
    if (scratch.size() < datum.float_count) scratch.resize(datum.float_count);
    datum.CopyFloats(scratch.data());
    transform_.Apply(scratch.data(), datum.size, random, data);
  }
}

std::string DatumLoader::Describe(uint64_t position) const {
  return DescribeRecord(*source_, order_.RecordAt(position));
}

}  // namespace crema
