#include "data/convert_csv.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "base/suggest.h"
#include "crema/data.pb.h"
#include "crema/error.h"
#include "data/csv_file.h"
#include "data/finite_number.h"
#include "schema/wire_bytes.h"

namespace crema {

namespace {

constexpr int kMostErrors = 20;

bool IsByte(float value) { return value >= 0 && value <= 255 && value == std::floor(value); }

// What the first reading finds.
struct Table {
  std::vector<std::string> names;  // of the columns, where there is a header
  bool header = false, bytes = true;
  bool of_classes = true;  // else rows have several labels
  size_t columns = 0;
  std::vector<size_t> labels;          // their columns: that of the class, or those of several labels
  std::vector<bool> is_label;          // of each column
  std::map<std::string, int> classes;  // texts of labels, and their numbers
  std::vector<const std::pair<const std::string, int>*> rows;  // the class of each row, where rows have one
  size_t row_count = 0;
  bool named_classes = false;

  std::string NameOf(size_t column) const {
    return header ? "\"" + names[column] + "\"" : "column " + std::to_string(column);
  }
};

size_t FindColumn(const std::string& flag, const std::string& name, const CsvConversion& how, const Table& table) {
  for (size_t i = 0; i < table.names.size(); ++i) {
    if (table.names[i] == name) return i;
  }
  size_t index = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data(), end, index);
  if (error == std::errc() && rest == end && index < table.columns) return index;
  throw UserError({how.file, 1, 0}, flag + "=" + name + ": there is no such column; expected " +
                                        (table.header ? "a name of the header, or " : "") + "a number from 0 to " +
                                        std::to_string(table.columns - 1) + DidYouMean(name, table.names));
}

void FindLabels(const CsvConversion& how, Table* table) {
  table->of_classes = how.label_columns.empty();
  table->is_label.resize(table->columns);
  if (!how.label_column.empty()) {
    table->labels = {FindColumn("--label_column", how.label_column, how, *table)};
  } else if (table->of_classes) {
    table->labels = {table->columns - 1};
  }
  for (const std::string& name : how.label_columns) {
    table->labels.push_back(FindColumn("--label_columns", name, how, *table));
  }
  for (const size_t column : table->labels) {
    if (table->is_label[column]) {
      throw UserError({how.file, 1, 0}, "--label_columns names " + table->NameOf(column) + " twice");
    }
    table->is_label[column] = true;
  }
  if (table->labels.size() == table->columns) {
    throw UserError({how.file, 1, 0}, "--label_columns names all columns; leave one at least for the features");
  }
}

void ReadHeader(const CsvConversion& how, const CsvFile& file, const std::vector<CsvField>& row, Table* table) {
  table->columns = row.size();
  if (row.size() < 2) {
    throw UserError(file.At(1), "the row has one column; expected features and a label, separated by commas");
  }
  bool words = false;
  for (size_t i = 0; i < row.size(); ++i) {
    float ignored;
    const bool may_be_name = how.label_columns.empty() &&
                             (how.label_column.empty() ? i + 1 == row.size() : how.label_column == std::to_string(i));
    words |= !may_be_name && !ParseFinite(row[i].text, &ignored);
  }
  table->header = how.header == CsvConversion::Header::kYes || (how.header == CsvConversion::Header::kDetect && words);
  if (table->header) {
    for (const CsvField& field : row) table->names.push_back(field.text);
  }
  FindLabels(how, table);
}

void CheckRow(const CsvFile& file, const std::vector<CsvField>& row, Table* table, Diagnostics* diagnostics) {
  if (row.size() != table->columns) {
    diagnostics->Error(file.At(0), "the row has " + std::to_string(row.size()) + " columns, but the first has " +
                                       std::to_string(table->columns));
    return;
  }
  for (size_t i = 0; i < row.size(); ++i) {
    if (table->of_classes && table->is_label[i]) continue;
    float value;
    if (!ParseFinite(row[i].text, &value)) {
      diagnostics->Error(file.At(row[i].column),
                         table->NameOf(i) + (row[i].text.empty() ? " is empty" : " holds \"" + row[i].text + "\"") +
                             "; expected a finite number");
      return;
    }
    if (!table->is_label[i]) table->bytes &= IsByte(value);
  }
  ++table->row_count;
  if (!table->of_classes) return;
  const CsvField& field = row[table->labels[0]];
  const std::string& label = field.text;
  if (label.empty()) diagnostics->Error(file.At(field.column), "the label is empty");
  if (label.find('\n') != std::string::npos) {
    diagnostics->Error(file.At(field.column), "the label holds the end of a line");
  }
  table->rows.push_back(&*table->classes.emplace(label, 0).first);
}

// Numbers the classes: by their number where all are whole numbers from 0, else in the order of their names.
void NumberClasses(const CsvConversion& how, Table* table) {
  bool numbers = true;
  std::string no_class;
  for (auto& [text, number] : table->classes) {
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    float value;
    if (error == std::errc() && rest == text.data() + text.size() && number >= 0) continue;
    numbers = false;
    if (ParseFinite(text, &value)) no_class = text;
  }
  if (numbers) return;
  if (!no_class.empty()) {
    throw UserError({how.file, 0, 0},
                    "the label \"" + no_class + "\" of " + table->NameOf(table->labels[0]) +
                        " is a number, but no class; expected whole numbers from 0, or names" +
                        " (--label_column names the column; --label_columns takes columns of any numbers)");
  }
  table->named_classes = true;
  int next = 0;
  for (auto& [text, number] : table->classes) number = next++;
}

void Scan(const CsvConversion& how, Table* found) {
  Table& table = *found;
  CsvFile file(how.file);
  std::vector<CsvField> row;
  if (!file.ReadRow(&row)) throw UserError({how.file, 0, 0}, "holds no rows");
  ReadHeader(how, file, row, &table);
  Diagnostics diagnostics;
  bool more = table.header ? file.ReadRow(&row) : true;
  for (; more && diagnostics.errors() < kMostErrors; more = file.ReadRow(&row)) {
    CheckRow(file, row, &table, &diagnostics);
  }
  diagnostics.ThrowIfErrors();
  if (table.row_count == 0) throw UserError({how.file, 0, 0}, "holds a header, but no rows");
  if (table.of_classes) NumberClasses(how, &table);
}

ImageSize ShapeOf(const CsvConversion& how, size_t features) {
  if (how.shape.count() == 0) return {static_cast<int32_t>(features), 1, 1};
  if (how.shape.count() == static_cast<int64_t>(features)) return how.shape;
  throw UserError({how.file, 0, 0}, "has " + std::to_string(features) + " features, but --features_shape=" +
                                        how.shape.ToString() + " takes " + std::to_string(how.shape.count()));
}

float ValueOf(const CsvField& field) {
  float value = 0;
  ParseFinite(field.text, &value);
  return value;
}

void FillDatum(const std::vector<CsvField>& row, const std::vector<bool>& is_label, bool bytes, Datum* datum) {
  datum->clear_data();
  datum->clear_float_data();
  for (size_t i = 0; i < row.size(); ++i) {
    if (is_label[i]) continue;
    const float value = ValueOf(row[i]);
    if (bytes) {
      datum->mutable_data()->push_back(static_cast<char>(static_cast<uint8_t>(value)));
    } else {
      datum->add_float_data(value);
    }
  }
}

}  // namespace

int64_t ConvertCsv(const CsvConversion& how, const DatasetTarget& target, ProgressLine* progress) {
  Table table;
  Scan(how, &table);
  const ImageSize shape = ShapeOf(how, table.columns - table.labels.size());
  std::vector<int> row_labels;
  for (const auto* row_class : table.rows) row_labels.push_back(row_class->second);
  row_labels.resize(table.row_count);  // all alike where there are no classes
  std::vector<std::string> labels;
  if (table.named_classes) {
    for (const auto& [text, number] : table.classes) labels.push_back(text);
  }
  const std::vector<int> part_of = SplitByClass(row_labels, target.parts, target.seed);
  DatasetWriter writer(target, labels);
  progress->SetTotal(static_cast<int64_t>(row_labels.size()));

  CsvFile file(how.file);
  std::vector<CsvField> row;
  std::vector<int64_t> numbers(target.parts.size(), 0);
  Datum datum;
  datum.set_channels(shape.channels);
  datum.set_height(shape.height);
  datum.set_width(shape.width);
  std::string value;
  if (table.header) file.ReadRow(&row);
  for (size_t i = 0; i < row_labels.size(); ++i) {
    if (!file.ReadRow(&row) || row.size() != table.columns) {
      throw EnvironmentError("\"" + how.file + "\" changed while it was read");
    }
    FillDatum(row, table.is_label, table.bytes && !how.floats, &datum);
    if (table.of_classes) {
      datum.set_label(row_labels[i]);
    } else {
      datum.clear_labels();
      for (const size_t column : table.labels) datum.add_labels(ValueOf(row[column]));
    }
    value = WireBytes(datum);
    const auto part = static_cast<size_t>(part_of[i]);
    char key[24];
    std::snprintf(key, sizeof key, "%08lld", static_cast<long long>(numbers[part]++));
    writer.Put(part, key, value);
    progress->Add(1, static_cast<int64_t>(value.size()));
  }
  writer.Commit();
  std::string names;
  for (const size_t column : table.labels) names += (names.empty() ? "" : ", ") + table.NameOf(column);
  progress->Say(writer.Summary() + shape.ToString() + (table.bytes && !how.floats ? " bytes" : " floats") +
                " a record, labels in " + names + "\n" + progress->Summary());
  return static_cast<int64_t>(row_labels.size());
}

}  // namespace crema
