#include "data/databases/annotated_record.h"

#include <algorithm>
#include <mutex>

#include "base/number_text.h"
#include "base/parallel.h"
#include "crema/error.h"
#include "data/databases/wire_walker.h"

namespace crema {

namespace {

using enum WireWalker::Type;

// Calls field(tag, reader), which reads the value and returns null, or what is wrong with it.
template <typename Field>
const char* WalkMessage(std::span<const uint8_t> bytes, const Field& field) {
  WireWalker reader(std::as_bytes(bytes));
  while (!reader.done()) {
    const uint32_t tag = reader.ReadTag();
    if (reader.error()) break;
    if (const char* problem = field(tag, reader)) return problem;
  }
  return reader.error();
}

const char* ParseBox(std::span<const uint8_t> bytes, BoxedObject* object) {
  return WalkMessage(bytes, [object](uint32_t tag, WireWalker& reader) -> const char* {
    switch (tag) {
      case WireWalker::Tag(1, kFixed32):
        object->box.xmin = reader.Float();
        break;
      case WireWalker::Tag(2, kFixed32):
        object->box.ymin = reader.Float();
        break;
      case WireWalker::Tag(3, kFixed32):
        object->box.xmax = reader.Float();
        break;
      case WireWalker::Tag(4, kFixed32):
        object->box.ymax = reader.Float();
        break;
      case WireWalker::Tag(6, kVarint):
        object->difficult = reader.Varint() != 0;
        break;
      default:
        reader.Skip(tag);
    }
    return nullptr;
  });
}

const char* ParseAnnotation(std::span<const uint8_t> bytes, BoxedObject* object) {
  object->box = {0, 0, 0, 0};
  return WalkMessage(bytes, [object](uint32_t tag, WireWalker& reader) -> const char* {
    if (tag == WireWalker::Tag(1, kVarint)) {
      object->instance = static_cast<int32_t>(reader.Varint());
    } else if (tag == WireWalker::Tag(2, kBytes)) {
      return ParseBox(reader.LengthDelimited(), object);
    } else {
      reader.Skip(tag);
    }
    return nullptr;
  });
}

const char* ParseGroup(std::span<const uint8_t> bytes, std::vector<BoxedObject>* objects) {
  const size_t first = objects->size();
  int32_t label = 0;
  const char* problem = WalkMessage(bytes, [&](uint32_t tag, WireWalker& reader) -> const char* {
    if (tag == WireWalker::Tag(1, kVarint)) {
      label = static_cast<int32_t>(reader.Varint());
    } else if (tag == WireWalker::Tag(2, kBytes)) {
      return ParseAnnotation(reader.LengthDelimited(), &objects->emplace_back());
    } else {
      reader.Skip(tag);
    }
    return nullptr;
  });
  for (size_t i = first; i < objects->size(); ++i) (*objects)[i].label = label;
  return problem;
}

}  // namespace

const char* ParseAnnotated(std::span<const std::byte> bytes, AnnotatedRecord* record) {
  record->datum = {};
  record->type.reset();
  record->objects.clear();
  const std::span<const uint8_t> all(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return WalkMessage(all, [record](uint32_t tag, WireWalker& reader) -> const char* {
    if (tag == WireWalker::Tag(1, kBytes)) {
      record->datum = std::as_bytes(reader.LengthDelimited());
    } else if (tag == WireWalker::Tag(2, kVarint)) {
      record->type = static_cast<int64_t>(reader.Varint());
    } else if (tag == WireWalker::Tag(3, kBytes)) {
      return ParseGroup(reader.LengthDelimited(), &record->objects);
    } else {
      reader.Skip(tag);
    }
    return nullptr;
  });
}

void ReadAnnotated(const RecordSource& source, uint64_t i, AnnotatedRecord* record) {
  const char* problem = ParseAnnotated(source.Read(i), record);
  if (problem || record->datum.empty()) RefuseAnnotated(source, i, problem);
}

void RefuseAnnotated(const RecordSource& source, uint64_t i, const char* problem) {
  if (problem) {
    throw UserError(DescribeRecord(source, i) + " is no readable AnnotatedDatum: " + problem +
                    "; the database is damaged or does not hold images with boxes, make it anew with convert_annoset");
  }
  throw UserError(
      DescribeRecord(source, i) +
      " is no AnnotatedDatum: it holds no image with boxes; convert_annoset makes such databases, and layer "
      "\"Data\" reads those of convert_imageset");
}

bool HoldsAnnotated(const RecordSource& source) {
  AnnotatedRecord record;
  return !ParseAnnotated(source.Peek(0), &record) && !record.datum.empty();
}

std::optional<std::string> MistakeOf(const BoxedObject& object) {
  const ObjectBox& box = object.box;
  const char* mistake = nullptr;
  if (!IsFinite(box)) {
    mistake = "is not finite";
  } else if (!(box.xmax > box.xmin && box.ymax > box.ymin)) {
    mistake = "has no area";
  } else if (!Overlap(box, {0, 0, 1, 1})) {
    mistake = "lies beside the image, whose sides are from 0 to 1";
  }
  if (!mistake) return std::nullopt;
  std::string corners;
  for (const float corner : {box.xmin, box.ymin, box.xmax, box.ymax}) corners += " " + FormatNumber(corner);
  return "an object of label " + std::to_string(object.label) + " whose box," + corners + " (xmin ymin xmax ymax), " +
         mistake;
}

ObjectCounts CountObjects(const RecordSource& source) {
  std::mutex mutex;
  ObjectCounts all;
  all.first_with = source.count();
  uint64_t broken = source.count();
  const char* problem = nullptr;
  ParallelFor(static_cast<int64_t>(source.count()), 64, [&](int64_t begin, int64_t end) {
    AnnotatedRecord record;
    ObjectCounts here;
    here.first_with = source.count();
    for (int64_t i = begin; i < end; ++i) {
      const char* wrong = ParseAnnotated(source.Peek(static_cast<uint64_t>(i)), &record);
      if (wrong || record.datum.empty()) {
        const std::lock_guard lock(mutex);
        if (static_cast<uint64_t>(i) < broken) {
          broken = static_cast<uint64_t>(i);
          problem = wrong;
        }
        break;
      }
      const auto count = static_cast<int64_t>(record.objects.size());
      here.objects += count;
      here.most = std::max(here.most, count);
      const int64_t mistakes = std::count_if(record.objects.begin(), record.objects.end(),
                                             [](const BoxedObject& object) { return MistakeOf(object).has_value(); });
      if (mistakes > 0) here.first_with = std::min(here.first_with, static_cast<uint64_t>(i));
      here.not_learnt += mistakes;
    }
    const std::lock_guard lock(mutex);
    all.objects += here.objects;
    all.most = std::max(all.most, here.most);
    all.not_learnt += here.not_learnt;
    all.first_with = std::min(all.first_with, here.first_with);
  });
  if (broken < source.count()) RefuseAnnotated(source, broken, problem);
  return all;
}

}  // namespace crema
