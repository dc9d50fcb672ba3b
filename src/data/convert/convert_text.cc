#include "data/convert/convert_text.h"

#include <filesystem>
#include <optional>
#include <vector>

#include "base/utf8.h"
#include "crema/data.pb.h"
#include "crema/error.h"
#include "data/convert/new_vocabulary.h"
#include "data/files/text_file.h"
#include "schema/wire_bytes.h"

namespace crema {

namespace {

std::vector<uint32_t> NumbersOf(const std::string& text, const TextConversion& how, const Vocabulary& vocabulary,
                                TextConverted* done) {
  std::vector<uint32_t> numbers;
  const int64_t unknown = vocabulary.Find(kUnknownWord);
  VisitUnits(text, how.unit, how.file, [&](std::string_view unit, int line, int column) {
    const int64_t number = vocabulary.Find(unit);
    if (number < 0) {
      throw UserError({how.file, line, column}, "\"" + std::string(unit) + "\" is not in the vocabulary \"" +
                                                    how.vocabulary + "\", which has no <unk> either; add one of " +
                                                    "them, or give another --vocabulary");
    }
    done->unknown += number == unknown && unit != kUnknownWord;
    numbers.push_back(static_cast<uint32_t>(number));
  });
  return numbers;
}

// One part: `count` numbers from `text` on.
void WritePart(const uint32_t* text, int64_t count, int64_t streams, bool bytes, size_t part, DatasetWriter* writer,
               ProgressLine* progress) {
  const int64_t steps = (count - 1) / streams;
  const int digits = KeyDigits(static_cast<uint64_t>(steps));
  Datum datum;
  datum.set_channels(3);
  datum.set_height(static_cast<int32_t>(streams));
  datum.set_width(1);
  std::string value;
  for (int64_t t = 0; t < steps; ++t) {
    datum.clear_data();
    datum.clear_float_data();
    for (int row = 0; row < 3; ++row) {
      for (int64_t n = 0; n < streams; ++n) {
        const uint32_t number = row == 0 ? t > 0 : text[n * steps + t + (row == 2)];
        if (bytes) {
          datum.mutable_data()->push_back(static_cast<char>(number));
        } else {
          datum.add_float_data(static_cast<float>(number));
        }
      }
    }
    value = WireBytes(datum);
    writer->Put(part, RecordKey(static_cast<uint64_t>(t), digits), value);
    progress->Add(1, static_cast<int64_t>(value.size()));
  }
}

}  // namespace

TextConverted ConvertText(const TextConversion& how, const DatasetTarget& target, ProgressLine* progress) {
  std::string text = TextFile(how.file).ReadAll();
  DropByteOrderMark(how.file, &text);
  if (text.empty()) throw UserError({how.file, 0, 0}, "is empty");
  const bool known = std::filesystem::exists(how.vocabulary);
  const Vocabulary vocabulary = known
                                    ? Vocabulary::Read(how.vocabulary, how.unit)
                                    : Vocabulary::Of(text, how.unit, static_cast<size_t>(how.most_frequent), how.file);
  TextConverted done;
  done.vocabulary = static_cast<int64_t>(vocabulary.size());
  const std::vector<uint32_t> numbers = NumbersOf(text, how, vocabulary, &done);
  done.units = static_cast<int64_t>(numbers.size());
  if (known && 2 * done.unknown > done.units) {
    progress->Say(how.file + ": warning: " + std::to_string(done.unknown) + " of its " + std::to_string(done.units) +
                  (how.unit == TextUnit::kWord ? " words" : " characters") + " are not in the vocabulary \"" +
                  how.vocabulary + "\" and become <unk>; was it made of another kind of texts, or of another --unit?");
  }

  const std::vector<int64_t> sizes = PartSizes(done.units, target.parts);
  int64_t records = 0;
  for (size_t part = 0; part < sizes.size(); ++part) {
    if (sizes[part] <= how.streams) {
      const std::string name = target.split() ? " for \"" + target.parts[part].name + "\"" : "";
      throw UserError({how.file, 0, 0}, "the text is too short: " + std::to_string(sizes[part]) + " " +
                                            (how.unit == TextUnit::kWord ? "words" : "characters") + name +
                                            " make no " + std::to_string(how.streams) + " streams; lower --streams");
    }
    records += (sizes[part] - 1) / how.streams;
  }
  std::optional<NewVocabulary> new_vocabulary;
  if (!known) new_vocabulary.emplace(how.vocabulary, vocabulary);
  DatasetWriter writer(target, {});
  progress->SetTotal(records);
  int64_t begin = 0;
  for (size_t part = 0; part < sizes.size(); ++part) {
    WritePart(numbers.data() + begin, sizes[part], how.streams, vocabulary.fits_bytes(), part, &writer, progress);
    begin += sizes[part];
  }
  known ? writer.Commit() : new_vocabulary->CommitWith(&writer);
  progress->Say(writer.Summary());
  return done;
}

}  // namespace crema
