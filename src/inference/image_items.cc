#include "inference/image_items.h"

#include <span>

#include "base/input_file.h"
#include "crema/error.h"
#include "image/codec.h"

namespace crema {

namespace {

std::optional<ImageSize> SizeOfFile(std::span<const uint8_t> bytes) {
  ImageInfo info;
  if (!ReadImageInfo(bytes, &info).empty()) return std::nullopt;
  return ImageSize{info.channels, info.height, info.width};
}

}  // namespace

std::optional<ImageSize> ImageFiles::Size(uint64_t i) const {
  try {
    return SizeOfFile(ReadFileBytes(list_.PathOf(i)));
  } catch (const EnvironmentError&) {
    return std::nullopt;
  }
}

std::optional<ImageSize> DatabaseImages::Size(uint64_t i) const {
  DatumView datum;
  if (ParseDatum(source_->Peek(i), &datum)) return std::nullopt;
  if (datum.encoded) return SizeOfFile(datum.data);
  if (!CheckDatum(datum).empty()) return std::nullopt;
  return datum.size;
}

StoredAs DatabaseImages::stored_as(uint64_t i) const {
  DatumView datum;
  if (ParseDatum(source_->Peek(i), &datum) || datum.encoded) return StoredAs::kCompressed;
  return datum.bytes() ? StoredAs::kBytes : StoredAs::kFloats;
}

size_t DatabaseImages::label_count() const {
  std::call_once(counted_, [this] {
    DatumView datum;
    if (source_->count() > 0 && !ParseDatum(source_->Read(0), &datum)) label_count_ = datum.label_count;
  });
  return label_count_;
}

std::string DatabaseImages::Name(uint64_t i) const {
  std::call_once(listed_, [this] {
    source_->VisitKeys([this](uint64_t, const std::string& key) {
      names_.push_back(key);
      return true;
    });
  });
  return i < names_.size() ? names_[i] : "number " + std::to_string(i);
}

std::string ImageFiles::Load(uint64_t i, const ImagePreparation& preparation, PreparationBuffers* buffers, float* out,
                             ItemLabel* label) const {
  label->number = labelled_ && list_.label_count == 0 ? list_.entries[i].label : -1;
  label->several.clear();
  if (label_count() > 0) label->several.assign(list_.NumbersOf(i).begin(), list_.NumbersOf(i).end());
  try {
    return preparation.FromFile(ReadFileBytes(list_.PathOf(i)), of_layer_, buffers, out);
  } catch (const EnvironmentError& error) {
    return error.what();
  }
}

std::string DatabaseImages::Load(uint64_t i, const ImagePreparation& preparation, PreparationBuffers* buffers,
                                 float* out, ItemLabel* label) const {
  DatumView datum;
  if (const char* problem = ParseDatum(source_->Read(i), &datum)) return std::string("is no Datum: ") + problem;
  const size_t labels = label_count();
  label->several.resize(labels);
  if (labels > 0 || datum.label_count > 0) {
    if (std::string problem = ReadDatumLabels(datum, labels, label->several.data()); !problem.empty()) return problem;
  } else {
    label->number = datum.label;
  }
  return preparation.FromRecord(datum, buffers, out);
}

}  // namespace crema
