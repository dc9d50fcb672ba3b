#include "data/convert/convert_csv.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/listed.h"
#include "base/number_text.h"
#include "crema/data.pb.h"
#include "crema/error.h"
#include "data/files/class_names.h"
#include "data/files/csv_file.h"
#include "schema/wire_bytes.h"

namespace crema {

namespace {

ImageSize ShapeOf(const CsvConversion& how, size_t features) {
  if (how.shape.count() == 0) return {static_cast<int32_t>(features), 1, 1};
  if (how.shape.count() == static_cast<int64_t>(features)) return how.shape;
  throw UserError({how.form.file, 0, 0}, "has " + std::to_string(features) + " features, but --features_shape=" +
                                             how.shape.ToString() + " takes " + std::to_string(how.shape.count()));
}

float ValueOf(const CsvField& field) {
  float value = 0;
  ParseFinite(field.text, &value);
  return value;
}

std::vector<float> ValuesOf(const CsvTable& table, const std::vector<CsvField>& row) {
  std::vector<float> values;
  for (const size_t i : table.features) values.push_back(ValueOf(row[i]));
  return values;
}

void FillDatum(const std::vector<float>& values, bool bytes, Datum* datum) {
  datum->clear_data();
  datum->clear_float_data();
  for (const float value : values) {
    if (bytes) {
      datum->mutable_data()->push_back(static_cast<char>(static_cast<uint8_t>(value)));
    } else {
      datum->add_float_data(value);
    }
  }
}

std::vector<int> PartsOf(const CsvConversion& how, const CsvTable& table, const DatasetTarget& target) {
  if (how.in_order) return SplitInOrder(table.rows, target.parts);
  std::vector<int> classes = table.row_classes;
  classes.resize(table.rows);  // all alike where there are no classes
  return SplitByClass(classes, target.parts, target.seed);
}

std::string LabelsText(const CsvTable& table) {
  std::vector<std::string> names;
  for (const size_t column : table.labels) names.push_back(table.NameOf(column));
  return names.empty() ? ", no labels" : ", labels in " + Listed(names);
}

void SayClasses(const CsvTable& table, const std::vector<int>& part_of, const DatasetTarget& target,
                ProgressLine* progress) {
  for (const std::string& sentence : LookAlikes(table.class_names)) progress->Say("warning: " + sentence);
  if (!table.class_names.empty()) {
    std::vector<std::string> parts;
    for (const DatasetPart& part : target.parts) parts.push_back(part.name.empty() ? "rows" : part.name);
    ClassCounts counts(table.class_names, std::move(parts));
    for (size_t i = 0; i < table.rows; ++i) {
      ++counts.counts[static_cast<size_t>(table.row_classes[i])][static_cast<size_t>(part_of[i])];
    }
    progress->Say(CountsTable(counts));
    for (const std::string& sentence : MissingClasses(counts)) progress->Say("warning: " + sentence);
  }
  if (LieInOrder(table.row_classes)) {
    progress->Say(
        "note: the records lie in the order of their classes, in which nets learn nothing; to train with "
        "them set shuffle: true in the Data layer");
  }
}

}  // namespace

int64_t ConvertCsv(const CsvConversion& how, const DatasetTarget& target, ProgressLine* progress) {
  std::optional<TextFeatures> texts;
  if (!how.form.text_column.empty()) texts.emplace(how.text);
  const CsvTable table = ReadCsvTable(how.form, [&](const std::string& text) { texts->Count(text); });
  if (texts) texts->EndCounting();
  const ImageSize shape = ShapeOf(how, texts ? texts->steps() : table.features.size());
  const bool bytes = (texts ? texts->fits_bytes() : table.bytes) && !how.floats;
  const std::vector<int> part_of = PartsOf(how, table, target);
  DatasetWriter writer(target, table.class_names);
  progress->SetTotal(static_cast<int64_t>(table.rows));

  CsvFile file(how.form.file);
  std::vector<CsvField> row;
  std::vector<uint64_t> numbers(target.parts.size(), 0);
  const int digits = KeyDigits(table.rows);
  Datum datum;
  datum.set_channels(shape.channels);
  datum.set_height(shape.height);
  datum.set_width(shape.width);
  std::string value;
  if (table.header) file.ReadRow(&row);
  for (size_t i = 0; i < table.rows; ++i) {
    if (!file.ReadRow(&row) || row.size() != table.columns) {
      throw EnvironmentError("\"" + how.form.file +
                             "\" changed while it was read; it is read twice, so that it must be a file");
    }
    FillDatum(texts ? texts->NumbersOf(row[table.features[0]].text) : ValuesOf(table, row), bytes, &datum);
    if (table.of_classes) {
      datum.set_label(table.row_classes[i]);
    } else if (table.labels.empty()) {
      datum.set_label(-1);
    } else {
      datum.clear_labels();
      for (const size_t column : table.labels) datum.add_labels(ValueOf(row[column]));
    }
    value = WireBytes(datum);
    const auto part = static_cast<size_t>(part_of[i]);
    writer.Put(part, RecordKey(numbers[part]++, digits), value);
    progress->Add(1, static_cast<int64_t>(value.size()));
  }
  texts ? texts->Commit(&writer) : writer.Commit();
  SayClasses(table, part_of, target, progress);
  const bool detected = table.header && how.form.header == CsvForm::Header::kDetect;
  progress->Say(writer.Summary() + (texts ? texts->Summary() : "") + shape.ToString() + (bytes ? " bytes" : " floats") +
                " a record" + LabelsText(table) + (detected ? ", the first row is the header" : "") + "\n" +
                progress->Summary());
  return static_cast<int64_t>(table.rows);
}

}  // namespace crema
