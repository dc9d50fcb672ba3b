#include "data/convert_csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
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

bool IsByte(float value) { return value >= 0 && value <= 255 && value == std::floor(value); }

struct LabelClass {
  int number = 0;
  int line = 0, column = 0;  // where it stands first
};

// What the first reading finds.
struct CsvTable {
  std::vector<std::string> names;  // of the columns, where there is a header
  bool header = false, bytes = true;
  bool of_classes = true;  // else rows have several labels
  size_t columns = 0;
  std::vector<size_t> labels;                 // their columns: that of the class, or those of several labels
  std::vector<bool> is_label;                 // of each column
  std::map<std::string, LabelClass> classes;  // by the texts of labels
  std::vector<const LabelClass*> rows;        // the class of each row, where rows have one
  size_t row_count = 0;
  bool named_classes = false;

  std::string NameOf(size_t column) const {
    return header ? "\"" + names[column] + "\"" : "column " + std::to_string(column);
  }
};

size_t FindColumn(const std::string& flag, const std::string& name, const CsvConversion& how, const CsvTable& table) {
  const auto named = std::find(table.names.begin(), table.names.end(), name);
  if (named != table.names.end()) {
    if (std::find(named + 1, table.names.end(), name) == table.names.end()) {
      return static_cast<size_t>(named - table.names.begin());
    }
    throw UserError({how.file, 1, 0}, flag + "=" + name + ": several columns have this name; give one by its number, " +
                                          "from 0 to " + std::to_string(table.columns - 1));
  }
  size_t index = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data(), end, index);
  if (error == std::errc() && rest == end && index < table.columns) return index;
  throw UserError({how.file, 1, 0}, flag + "=" + name + ": there is no such column; expected " +
                                        (table.header ? "a name of the header, or " : "") + "a number from 0 to " +
                                        std::to_string(table.columns - 1) + DidYouMean(name, table.names));
}

void FindLabels(const CsvConversion& how, CsvTable* table) {
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

// Whether it can only be the name of a column.
bool IsWord(const std::string& text) {
  double ignored;
  const std::string_view number = std::string_view(text).substr(text.starts_with("+") ? 1 : 0);
  const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), ignored);
  return !text.empty() && (error == std::errc::invalid_argument || rest != number.data() + number.size());
}

void ReadHeader(const CsvConversion& how, const CsvFile& file, const std::vector<CsvField>& row, CsvTable* table) {
  table->columns = row.size();
  if (row.size() < 2) {
    throw UserError(file.At(1), "the row has one column; expected features and a label, separated by commas");
  }
  bool words = false;
  for (size_t i = 0; i < row.size(); ++i) {
    const bool may_be_name = how.label_columns.empty() &&
                             (how.label_column.empty() ? i + 1 == row.size() : how.label_column == std::to_string(i));
    words |= !may_be_name && IsWord(row[i].text);
  }
  table->header = how.header == CsvConversion::Header::kYes || (how.header == CsvConversion::Header::kDetect && words);
  if (table->header) {
    for (const CsvField& field : row) table->names.push_back(field.text);
  }
  FindLabels(how, table);
}

void CheckRow(const CsvFile& file, const std::vector<CsvField>& row, CsvTable* table, Diagnostics* diagnostics) {
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
  if (label.find_first_of(std::string_view("\n\r\0", 3)) != std::string::npos) {
    diagnostics->Error(file.At(field.column), "the label holds the end of a line, or a byte that is zero");
  }
  const auto [at, is_new] = table->classes.try_emplace(label);
  if (is_new) {
    const Location where = file.At(field.column);
    at->second = {0, where.line, where.column};
  }
  table->rows.push_back(&at->second);
}

// Nothing where the text is no whole number from 0.
std::optional<int> ClassNumber(const std::string& text) {
  int number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

// Numbers the classes: by their number where all are whole numbers from 0, else in the order of their names.
void NumberClasses(const CsvConversion& how, CsvTable* table) {
  bool numbers = true;
  const std::pair<const std::string, LabelClass>* no_class = nullptr;  // the first in the file
  // "nan" and "inf" may be names, but not beside numbers.
  const bool any_number = std::any_of(table->classes.begin(), table->classes.end(),
                                      [](const auto& entry) { return ClassNumber(entry.first).has_value(); });
  for (auto& entry : table->classes) {
    auto& [text, label_class] = entry;
    if (const std::optional<int> number = ClassNumber(text)) {
      label_class.number = *number;
      continue;
    }
    numbers = false;
    const bool has_digits = text.find_first_of("0123456789") != std::string::npos;
    if (IsWord(text) || (!any_number && !has_digits)) continue;
    if (!no_class || label_class.line < no_class->second.line) no_class = &entry;
  }
  if (numbers) return;
  if (no_class) {
    throw UserError({how.file, no_class->second.line, no_class->second.column},
                    "the label \"" + no_class->first + "\" of " + table->NameOf(table->labels[0]) +
                        " is a number, but no class; expected whole numbers from 0, or names" +
                        " (--label_column names the column; --label_columns takes columns of any numbers)");
  }
  table->named_classes = true;
  int next = 0;
  for (auto& [text, label_class] : table->classes) label_class.number = next++;
}

// Whether the first row is a header of numbered columns, in which only that of the label has a name.
bool OnlyTheFirstIsNamed(const CsvTable& table) {
  if (table.rows.size() < 2 || table.classes.size() < 2) return false;
  for (const auto& [text, label_class] : table.classes) {
    if (&label_class == table.rows.front() && !IsWord(text)) return false;
    if ((&label_class == table.rows.front()) == ClassNumber(text).has_value()) return false;
  }
  return std::count(table.rows.begin(), table.rows.end(), table.rows.front()) == 1;
}

void Scan(const CsvConversion& how, CsvTable* found) {
  CsvTable& table = *found;
  CsvFile file(how.file);
  std::vector<CsvField> row;
  if (!file.ReadRow(&row)) throw UserError({how.file, 0, 0}, "holds no rows");
  ReadHeader(how, file, row, &table);
  Diagnostics diagnostics;
  bool more = table.header ? file.ReadRow(&row) : true;
  for (; more && !diagnostics.enough(); more = file.ReadRow(&row)) {
    CheckRow(file, row, &table, &diagnostics);
  }
  diagnostics.ThrowIfErrors();
  if (table.row_count == 0) throw UserError({how.file, 0, 0}, "holds a header, but no rows");
  if (how.header == CsvConversion::Header::kDetect && OnlyTheFirstIsNamed(table)) {
    CsvConversion with_header = how;
    with_header.header = CsvConversion::Header::kYes;
    table = {};
    return Scan(with_header, found);
  }
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
  CsvTable table;
  Scan(how, &table);
  const ImageSize shape = ShapeOf(how, table.columns - table.labels.size());
  std::vector<int> row_labels;
  for (const LabelClass* row_class : table.rows) row_labels.push_back(row_class->number);
  row_labels.resize(table.row_count);  // all alike where there are no classes
  std::vector<std::string> labels;
  if (table.named_classes) {
    for (const auto& [text, label_class] : table.classes) labels.push_back(text);
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
      throw EnvironmentError("\"" + how.file +
                             "\" changed while it was read; it is read twice, so that it must be a file");
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
                " a record, labels in " + names +
                (table.header && how.header == CsvConversion::Header::kDetect ? ", the first row is the header" : "") +
                "\n" + progress->Summary());
  return static_cast<int64_t>(row_labels.size());
}

}  // namespace crema
