#include "data/loaders/datum_loader.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "base/machine_memory.h"
#include "crema/error.h"
#include "data/databases/datum.h"
#include "data/loaders/encoded_image.h"

namespace crema {

namespace {

Transform::Values ValuesOf(const DatumView& datum) {
  return datum.bytes() ? Transform::Values::kBytes : Transform::Values::kFloats;
}

std::vector<int32_t> LabelsOf(const RecordSource& source) {
  std::vector<int32_t> labels(source.count());
  for (uint64_t i = 0; i < labels.size(); ++i) labels[i] = ReadDatum(source, i, source.Peek(i)).label;
  return labels;
}

}  // namespace

DatumView ReadDatum(const RecordSource& source, uint64_t record, std::span<const std::byte> bytes) {
  DatumView datum;
  const char* damage = ParseDatum(bytes, &datum);
  if (damage) {
    throw UserError(DescribeRecord(source, record) + " is not a readable Datum: " + damage +
                    "; the database is damaged or does not hold images, make it anew");
  }
  const std::string problem = CheckDatum(datum);
  if (!problem.empty()) throw UserError(DescribeRecord(source, record) + " " + problem);
  return datum;
}

FirstRecord LookAtFirst(const RecordSource& source, std::span<const std::byte> bytes, const Transform& transform) {
  const DatumView datum = ReadDatum(source, 0, bytes);
  FirstRecord first{datum.size, {}, datum.encoded, datum.label_count};
  if (datum.encoded) {
    const std::string problem = EncodedImageSize(datum.data, transform, &first.image);
    if (!problem.empty()) throw UserError(DescribeRecord(source, 0) + " holds an image that " + problem);
  }
  const std::string problem = transform.Check(first.image, ValuesOf(datum));
  if (!problem.empty()) throw UserError(DescribeRecord(source, 0) + ": " + problem);
  first.item = transform.OutputSize(first.image, ValuesOf(datum));
  return first;
}

DatumLoader::DatumLoader(std::shared_ptr<const RecordSource> source, Transform transform, SampleOrder order)
    : DatumLoader(source, source->Read(0), std::move(transform), order) {}

DatumLoader::DatumLoader(std::shared_ptr<const RecordSource> source, std::span<const std::byte> first_datum,
                         Transform transform, SampleOrder order)
    : source_(std::move(source)),
      transform_(std::move(transform)),
      order_(order),
      first_(LookAtFirst(*source_, first_datum, transform_)),
      item_shape_(first_.item.shape()) {
  order_.records = source_->count();
  if (order_.balance_classes) order_.classes = std::make_shared<const ClassBalance>(LabelsOf(*source_));
  if (RecordReadAhead::Wanted(source_->bytes(), MachineMemory())) {
    read_ahead_ = std::make_unique<RecordReadAhead>(source_, order_);
  }
}

uint64_t DatumLoader::RecordAt(uint64_t position) const {
  if (read_ahead_) read_ahead_->At(position);
  return order_.RecordAt(position);
}

void DatumLoader::Load(uint64_t position, float* data, float* label, ItemScratch& scratch) const {
  const uint64_t record = RecordAt(position);
  const DatumView datum = ReadDatum(*source_, record, source_->Read(record));
  *label = static_cast<float>(datum.label);
  if (const std::string problem = ReadDatumLabels(datum, first_.labels, label); !problem.empty()) {
    throw UserError(DescribeRecord(*source_, record) + " " + problem);
  }
  const RandomStream random = order_.RandomAt(position);
  if (datum.encoded) {
    const std::string problem = LoadEncodedImage(datum.data, transform_, random, first_.item, scratch, data);
    if (!problem.empty()) throw UserError(DescribeRecord(*source_, record) + problem);
    return;
  }
  const std::string problem = CheckItemSize(datum.size, transform_, ValuesOf(datum), first_.item);
  if (!problem.empty()) throw UserError(DescribeRecord(*source_, record) + problem);
  if (datum.bytes()) {
    transform_.Apply(datum.data.data(), datum.size, random, &scratch.transform, data);
  } else {
    if (scratch.floats.size() < datum.float_count) scratch.floats.resize(datum.float_count);
    datum.CopyFloats(scratch.floats.data());
    transform_.Apply(scratch.floats.data(), datum.size, random, data);
  }
}

std::string DatumLoader::Describe(uint64_t position) const {
  return DescribeRecord(*source_, order_.RecordAt(position));
}

}  // namespace crema
