#include "data/loaders/annotated_loader.h"

#include <algorithm>
#include <utility>

#include "crema/annotation.pb.h"
#include "crema/error.h"
#include "data/loaders/encoded_image.h"
#include "image/codec.h"

namespace crema {

namespace {

std::span<const std::byte> FirstDatum(const RecordSource& source) {
  AnnotatedRecord record;
  ReadAnnotated(source, 0, &record);
  return record.datum;
}

}  // namespace

DatumView ReadImageDatum(const RecordSource& source, uint64_t i, std::span<const std::byte> bytes) {
  const DatumView datum = ReadDatum(source, i, bytes);
  if (datum.encoded || datum.bytes()) return datum;
  throw UserError(DescribeRecord(source, i) +
                  " holds float_data, but objects are on images of bytes; make the database with convert_annoset");
}

AnnotatedLoader::AnnotatedLoader(std::shared_ptr<const RecordSource> source, AnnotatedTransform transform,
                                 const SampleOrder& order, int64_t room, bool any_type)
    : DatumLoader(source, FirstDatum(*source), transform.pixels(), order),
      transform_(std::move(transform)),
      room_(room),
      any_type_(any_type) {}

void AnnotatedLoader::ReadRecord(uint64_t i, AnnotatedRecord* record) const {
  ReadAnnotated(source(), i, record);
  if (room_ == 0) return;
  if (!any_type_ && record->type != int64_t{AnnotatedDatum::BBOX}) {
    throw UserError(DescribeRecord(source(), i) +
                    (record->type ? " has annotations of an unknown type" : " does not say what its annotations are") +
                    "; set anno_type: BBOX in annotated_data_param if they are boxes");
  }
  if (static_cast<int64_t>(record->objects.size()) > room_) {
    throw UserError(DescribeRecord(source(), i) + " holds " + std::to_string(record->objects.size()) +
                    " objects, but there is room for " + std::to_string(room_) +
                    " of an image; raise max_boxes in annotated_data_param, or remove it");
  }
  for (const BoxedObject& object : record->objects) {
    if (IsFinite(object.box)) continue;
    throw UserError(DescribeRecord(source(), i) + " has " + *MistakeOf(object) +
                    "; make the database anew with convert_annoset, which writes no such boxes");
  }
}

void AnnotatedLoader::Decode(uint64_t record, std::span<const std::byte> bytes, Image* image) const {
  const DatumView datum = ReadImageDatum(source(), record, bytes);
  if (datum.encoded) {
    const std::string problem = DecodeImage(datum.data, {transform_.pixels().colors()}, image);
    if (!problem.empty()) throw UserError(DescribeRecord(source(), record) + " " + problem + kBrokenImageRemedy);
  } else {
    FromPlanes(datum.data.data(), datum.size.channels, datum.size.height, datum.size.width, image);
  }
  const ImageSize size{image->channels, image->height, image->width};
  if (size.channels != item_size().channels) {
    throw UserError(DescribeRecord(source(), record) + " holds an image of " + std::to_string(size.channels) +
                    " channel(s), but the first record one of " + std::to_string(item_size().channels) +
                    (datum.encoded ? "; set force_color: true (or force_gray) in transform_param"
                                   : "; make the database with convert_annoset, whose images have three"));
  }
  std::string problem = transform_.Check(size);
  if (!problem.empty()) problem = ": " + problem;
  if (problem.empty()) problem = CheckItemSize(size, transform_.pixels(), Transform::Values::kBytes, item_size(), true);
  if (!problem.empty()) throw UserError(DescribeRecord(source(), record) + problem);
}

void AnnotatedLoader::Load(uint64_t position, float* data, float* label, ItemScratch& scratch) const {
  const uint64_t record = RecordAt(position);
  ReadRecord(record, &scratch.record);
  Decode(record, scratch.record.datum, &scratch.decoded);
  std::vector<BoxedObject>& objects = scratch.record.objects;
  transform_.Apply(&scratch.decoded, RandomAt(position), &scratch.annotated, &objects, data);
  WriteObjects(objects, label);
}

void AnnotatedLoader::WriteObjects(std::span<const BoxedObject> objects, float* label) const {
  if (room_ == 0) return;
  for (const BoxedObject& object : objects) {
    const ObjectBox& box = object.box;
    const float values[kValues] = {
        0,        static_cast<float>(object.label), static_cast<float>(object.instance), box.xmin, box.ymin, box.xmax,
        box.ymax, object.difficult ? 1.0f : 0.0f};
    label = std::copy(std::begin(values), std::end(values), label);
  }
  std::fill_n(label, (room_ - static_cast<int64_t>(objects.size())) * kValues, -1.0f);
}

}  // namespace crema
