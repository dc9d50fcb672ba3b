#include "data/databases/record_image.h"

#include <algorithm>
#include <charconv>

#include "base/number_text.h"
#include "crema/error.h"
#include "image/codec.h"

namespace crema {

std::string ReadRecordFields(std::span<const std::byte> record, RecordImage* image) {
  const char* problem = ParseAnnotated(record, &image->annotated);
  const bool annotated = !image->annotated.datum.empty();
  if (annotated && problem) {
    image->annotated = {};
    return std::string("is no AnnotatedDatum: ") + problem;
  }
  if (!annotated) image->annotated = {};
  problem = ParseDatum(annotated ? image->annotated.datum : record, &image->datum);
  return problem ? std::string("is no Datum: ") + problem : std::string();
}

std::string ReadRecordImage(std::span<const std::byte> record, RecordImage* image) {
  if (std::string problem = ReadRecordFields(record, image); !problem.empty()) return problem;
  const DatumView& datum = image->datum;
  image->floats.clear();
  image->bytes = {};
  if (!datum.encoded) {
    std::string problem = CheckDatum(datum);
    if (!problem.empty()) return problem;
    image->size = datum.size;
    image->bytes = datum.data;
    if (!datum.bytes()) {
      image->floats.resize(datum.float_count);
      datum.CopyFloats(image->floats.data());
      const auto bad = std::find_if(image->floats.begin(), image->floats.end(), [](float x) { return !(x - x == 0); });
      if (bad != image->floats.end()) {
        return "has " + FormatNumber(*bad) + " as value " + std::to_string(bad - image->floats.begin()) +
               " of its float_data; give finite numbers";
      }
    }
    return {};
  }
  const DecodeOptions as_stored{DecodeOptions::Colors::kAsStored};
  std::string problem = DecodeImage(datum.data, as_stored, &image->decoded);
  if (!problem.empty()) return "holds a compressed image that " + problem;
  image->size = {image->decoded.channels, image->decoded.height, image->decoded.width};
  image->planes.resize(image->decoded.size());
  ToPlanes(image->decoded, image->planes.data());
  image->bytes = image->planes;
  return {};
}

std::string ReadRecordLabels(size_t count, RecordImage* image) {
  if (!image->annotated.datum.empty()) return {};
  image->labels.resize(count);
  return ReadDatumLabels(image->datum, count, image->labels.data());
}

std::string LabelsText(std::span<const float> labels) {
  std::string text;
  for (const float label : labels) {
    char word[32];
    char* const end = std::to_chars(word, word + sizeof word, label).ptr;
    text += (text.empty() ? "" : " ") + std::string(word, end);
  }
  return text;
}

void RejectRecord(const RecordSource& source, uint64_t i, const std::string& why) {
  throw UserError(DescribeRecord(source, i) + " " + why);
}

}  // namespace crema
