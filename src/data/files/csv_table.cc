#include "data/files/csv_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/number_text.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "crema/error.h"
#include "data/files/csv_file.h"
#include "data/files/csv_mistakes.h"

namespace crema {

namespace {

bool IsByte(float value) { return value >= 0 && value <= 255 && value == std::floor(value); }

// Whether it can only be a name.
bool IsWord(const std::string& text) {
  double ignored;
  const std::string_view number = std::string_view(text).substr(text.starts_with("+") ? 1 : 0);
  const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), ignored);
  return !text.empty() && (error == std::errc::invalid_argument || rest != number.data() + number.size());
}

// Nothing where the text is no whole number from 0.
std::optional<int> ClassNumber(const std::string& text) {
  int number = 0;
  return ParseWhole(text, &number) && number >= 0 ? std::optional(number) : std::nullopt;
}

struct LabelClass {
  int number = 0;
  Location first;  // where it stands first
  size_t rows = 0;
};

using Classes = std::map<std::string, LabelClass>;  // by the texts of labels

class TableReader {
 public:
  TableReader(const CsvForm& form, const std::function<void(const std::string&)>& visit_text)
      : form_(form), visit_text_(visit_text), file_(form.file) {}

  CsvTable Read() {
    std::vector<CsvField> row;
    if (!file_.ReadRow(&row)) throw UserError({form_.file, 0, 0}, "holds no rows");
    ReadHeader(row);
    for (bool more = table_.header ? file_.ReadRow(&row) : true; more; more = file_.ReadRow(&row)) {
      ++table_.rows;
      CheckRow(row);
    }
    std::vector<CsvColumnName> columns;
    for (size_t i = 0; i < table_.columns; ++i) columns.push_back({table_.NameOf(i), SkipFlag(i)});
    mistakes_.ThrowIfAny(columns, static_cast<int64_t>(table_.rows));
    if (table_.rows == 0) throw UserError({form_.file, 0, 0}, "holds a header, but no rows");
    if (form_.header == CsvForm::Header::kDetect && !table_.header && OnlyTheFirstIsNamed()) {
      CsvForm with_header = form_;
      with_header.header = CsvForm::Header::kYes;
      return TableReader(with_header, visit_text_).Read();
    }
    if (table_.of_classes) NumberClasses();
    return std::move(table_);
  }

 private:
  size_t FindColumn(const std::string& flag, const std::string& name) const;
  std::string SkipFlag(size_t column) const;
  void FindRoles();
  void FindFeatures(const std::vector<bool>& skipped);
  void ReadHeader(const std::vector<CsvField>& row);
  void CheckRow(const std::vector<CsvField>& row);
  void CheckText(const CsvField& field);
  void AddLabel(const CsvField& field);
  void NumberClasses();
  void MatchClasses();
  void RefuseMixture() const;
  bool OnlyTheFirstIsNamed() const;
  // Whether a name in this column makes no header of the first row.
  bool MayBeName(size_t column) const;
  bool IsHeader(const std::vector<CsvField>& row) const;
  // Of labels and texts only: whether one of them is known by its name.
  bool NamesAColumn() const;

  const CsvForm& form_;
  const std::function<void(const std::string&)>& visit_text_;
  CsvFile file_;
  CsvTable table_;
  CsvMistakes mistakes_;
  std::vector<bool> is_label_;  // of each column
  Classes classes_;
  std::vector<LabelClass*> row_class_;
};

size_t TableReader::FindColumn(const std::string& flag, const std::string& name) const {
  const auto& names = table_.names;
  const auto named = std::find(names.begin(), names.end(), name);
  if (named != names.end()) {
    if (std::find(named + 1, names.end(), name) == names.end()) return static_cast<size_t>(named - names.begin());
    throw UserError({form_.file, 1, 0}, flag + "=" + name + ": several columns have this name; give one by its " +
                                            "number, from 0 to " + std::to_string(table_.columns - 1));
  }
  size_t index = 0;
  if (ParseWhole(name, &index) && index < table_.columns) return index;
  throw UserError({form_.file, 1, 0}, flag + "=" + name + ": there is no such column; expected " +
                                          (table_.header ? "a name of the header, or " : "") + "a number from 0 to " +
                                          std::to_string(table_.columns - 1) + DidYouMean(name, names));
}

// Only of features.
std::string TableReader::SkipFlag(size_t column) const {
  if (is_label_[column]) return "";
  const std::string number = std::to_string(column);
  if (!table_.header) return "--skip_columns=" + number;
  const std::string& name = table_.names[column];
  const bool plain = !name.empty() && std::count(table_.names.begin(), table_.names.end(), name) == 1 &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
                     });
  return "--skip_columns=" + (plain ? name : number);
}

void TableReader::FindRoles() {
  table_.of_classes = form_.labelled && form_.label_columns.empty();
  is_label_.resize(table_.columns);
  std::vector<bool> skipped(table_.columns);
  for (const std::string& name : form_.skip_columns) skipped[FindColumn("--skip_columns", name)] = true;
  if (!form_.label_column.empty()) {
    table_.labels = {FindColumn("--label_column", form_.label_column)};
  } else if (table_.of_classes) {
    const auto last = std::find(skipped.rbegin(), skipped.rend(), false);
    if (last != skipped.rend()) table_.labels = {static_cast<size_t>(skipped.rend() - last) - 1};
  }
  for (const std::string& name : form_.label_columns) table_.labels.push_back(FindColumn("--label_columns", name));
  for (const size_t column : table_.labels) {
    if (is_label_[column]) {
      throw UserError({form_.file, 1, 0}, "--label_columns names " + table_.NameOf(column) + " twice");
    }
    if (skipped[column]) {
      throw UserError({form_.file, 1, 0},
                      "--skip_columns names " + table_.NameOf(column) + ", which holds labels; leave it out there");
    }
    is_label_[column] = true;
  }
  FindFeatures(skipped);
}

void TableReader::FindFeatures(const std::vector<bool>& skipped) {
  if (!form_.text_column.empty()) {
    const size_t text = FindColumn("--text_column", form_.text_column);
    if (is_label_[text] || skipped[text]) {
      throw UserError({form_.file, 1, 0},
                      "--text_column names " + table_.NameOf(text) +
                          (skipped[text] ? ", which --skip_columns leaves out; name it in one of them"
                                         : ", which holds the labels; --label_column says which column does, and "
                                           "--label_column=none that none does"));
    }
    table_.features = {text};
    return;
  }
  for (size_t i = 0; i < table_.columns; ++i) {
    if (!is_label_[i] && !skipped[i]) table_.features.push_back(i);
  }
  if (!table_.features.empty()) return;
  throw UserError({form_.file, 1, 0}, std::string(form_.label_columns.empty() ? "" : "--label_columns ") +
                                          (form_.label_columns.empty() || form_.skip_columns.empty() ? "" : "and ") +
                                          (form_.skip_columns.empty() ? "" : "--skip_columns ") +
                                          "names all columns; leave one at least for the features");
}

bool TableReader::MayBeName(size_t column) const {
  const auto skipped = [this](size_t i) {
    return std::find(form_.skip_columns.begin(), form_.skip_columns.end(), std::to_string(i)) !=
           form_.skip_columns.end();
  };
  if (skipped(column)) return true;
  if (!form_.labelled || !form_.label_columns.empty()) return false;
  if (!form_.label_column.empty()) return form_.label_column == std::to_string(column);
  for (size_t i = column + 1; i < table_.columns; ++i) {
    if (!skipped(i)) return false;
  }
  return true;
}

void TableReader::ReadHeader(const std::vector<CsvField>& row) {
  table_.columns = row.size();
  if (row.size() < (form_.labelled ? 2 : 1)) {
    std::string hint;
    for (const auto& [separator, name] : {std::pair(';', "\";\""), std::pair('\t', "tabs"), std::pair('|', "\"|\"")}) {
      if (hint.empty() && row[0].text.find(separator) != std::string::npos) {
        hint = std::string("; is it separated by ") + name + "? Write commas (and points in numbers such as 1.5)";
      }
    }
    throw UserError(file_.At(1), "the row has one column; expected features and a label, separated by commas" + hint);
  }
  table_.header = IsHeader(row);
  if (table_.header) {
    for (const CsvField& field : row) table_.names.push_back(field.text);
  }
  if (!form_.labelled && std::find(table_.names.begin(), table_.names.end(), "none") != table_.names.end()) {
    throw UserError(file_.At(1),
                    "--label_column=none means that there are no labels, but a column has this name; if it holds "
                    "them, give its number");
  }
  FindRoles();
}

bool TableReader::IsHeader(const std::vector<CsvField>& row) const {
  if (form_.header != CsvForm::Header::kDetect) return form_.header == CsvForm::Header::kYes;
  if (!form_.text_column.empty()) {
    if (NamesAColumn()) return true;
    throw UserError(file_.At(1),
                    "whether the first row is a header cannot be told of texts; say --header=yes or --header=no");
  }
  bool words = false;
  for (size_t i = 0; i < row.size(); ++i) words |= !MayBeName(i) && IsWord(row[i].text);
  return words;
}

bool TableReader::NamesAColumn() const {
  std::vector<std::string> columns = form_.label_columns;
  columns.push_back(form_.text_column);
  if (!form_.label_column.empty()) columns.push_back(form_.label_column);
  return std::any_of(columns.begin(), columns.end(), IsWord);
}

void TableReader::CheckRow(const std::vector<CsvField>& row) {
  if (row.size() != table_.columns) {
    mistakes_.Add(file_.At(0), "the row has " + std::to_string(row.size()) + " columns, but the first has " +
                                   std::to_string(table_.columns));
    return;
  }
  float value;
  for (const size_t i : table_.features) {
    if (!form_.text_column.empty()) {
      CheckText(row[i]);
    } else if (!ParseFinite(row[i].text, &value)) {
      mistakes_.AddValue(file_.At(row[i].column), i, row[i].text);
    } else {
      table_.bytes &= IsByte(value);
    }
  }
  if (table_.of_classes) return AddLabel(row[table_.labels[0]]);
  for (const size_t i : table_.labels) {
    if (!ParseFinite(row[i].text, &value)) mistakes_.AddValue(file_.At(row[i].column), i, row[i].text);
  }
}

void TableReader::CheckText(const CsvField& field) {
  if (IsUtf8(field.text)) return visit_text_(field.text);
  mistakes_.Add(file_.At(field.column), "the text is no UTF-8; convert the file with iconv -t UTF-8");
}

void TableReader::AddLabel(const CsvField& field) {
  const Location where = file_.At(field.column);
  if (field.text.empty()) mistakes_.Add(where, "the label is empty");
  if (field.text.find_first_of(std::string_view("\n\r\0", 3)) != std::string::npos) {
    mistakes_.Add(where, "the label holds the end of a line, or a byte that is zero");
  }
  LabelClass& label_class = classes_[field.text];
  if (label_class.rows++ == 0) label_class.first = where;
  row_class_.push_back(&label_class);
}

void TableReader::MatchClasses() {
  const std::vector<std::string>& names = form_.classes;
  CsvMistakes unknown;
  for (auto& [text, label_class] : classes_) {
    const auto named = std::find(names.begin(), names.end(), text);
    label_class.number = static_cast<int>(named - names.begin());
    if (named != names.end()) continue;
    unknown.Add(label_class.first, "the label \"" + text + "\" of " + table_.NameOf(table_.labels[0]) +
                                       " is none of the " + std::to_string(names.size()) + " names in \"" +
                                       form_.classes_file + "\"; add it at the end there, or correct it here" +
                                       DidYouMean(text, names));
  }
  unknown.ThrowIfAny({}, 0);
  table_.class_names = names;
}

// A stray word among numbers would make names of all of them, and the order of names is not that of numbers.
void TableReader::RefuseMixture() const {
  size_t numbers = 0;
  for (const auto& [text, label_class] : classes_) numbers += ClassNumber(text) ? label_class.rows : 0;
  if (numbers == 0) return;
  const size_t names = table_.rows - numbers;
  const std::pair<const std::string, LabelClass>* stray = nullptr;  // the first of those that are fewer
  for (const auto& entry : classes_) {
    if (ClassNumber(entry.first).has_value() == (names <= numbers)) continue;
    if (!stray || entry.second.first.line < stray->second.first.line) stray = &entry;
  }
  throw UserError(stray->second.first,
                  "the label \"" + stray->first + "\" of " + table_.NameOf(table_.labels[0]) + " is a " +
                      (names <= numbers ? "name" : "number") + ", but " + std::to_string(std::max(names, numbers)) +
                      " of " + std::to_string(table_.rows) + " rows have " + (names <= numbers ? "numbers" : "names") +
                      "; correct it, or take the row away. Where both are names of classes, write all of them into a "
                      "file, one a line in the order of their numbers, and give --labels=FILE");
}

// By their number where all are whole numbers from 0, else in the order of their names.
void TableReader::NumberClasses() {
  if (!form_.classes.empty()) {
    MatchClasses();
  } else {
    bool numbers = true;
    const std::pair<const std::string, LabelClass>* no_class = nullptr;  // the first in the file
    // "nan" and "inf" may be names, but not beside numbers.
    const bool any_number = std::any_of(classes_.begin(), classes_.end(),
                                        [](const auto& entry) { return ClassNumber(entry.first).has_value(); });
    for (auto& entry : classes_) {
      auto& [text, label_class] = entry;
      if (const std::optional<int> number = ClassNumber(text)) {
        label_class.number = *number;
        continue;
      }
      numbers = false;
      const bool has_digits = text.find_first_of("0123456789") != std::string::npos;
      if (IsWord(text) || (!any_number && !has_digits)) continue;
      if (!no_class || label_class.first.line < no_class->second.first.line) no_class = &entry;
    }
    if (no_class) {
      throw UserError(no_class->second.first,
                      "the label \"" + no_class->first + "\" of " + table_.NameOf(table_.labels[0]) +
                          " is a number, but no class; expected whole numbers from 0, or names" +
                          " (--label_column names the column; --label_columns takes columns of any numbers)");
    }
    if (!numbers) {
      RefuseMixture();
      for (auto& [text, label_class] : classes_) {
        label_class.number = static_cast<int>(table_.class_names.size());
        table_.class_names.push_back(text);
      }
    }
  }
  for (const LabelClass* label_class : row_class_) table_.row_classes.push_back(label_class->number);
}

// Whether the first row is a header of numbered columns, in which only that of the label has a name.
bool TableReader::OnlyTheFirstIsNamed() const {
  if (row_class_.size() < 2 || classes_.size() < 2) return false;
  for (const auto& [text, label_class] : classes_) {
    if (&label_class == row_class_.front() && !IsWord(text)) return false;
    if ((&label_class == row_class_.front()) == ClassNumber(text).has_value()) return false;
  }
  return row_class_.front()->rows == 1;
}

}  // namespace

std::string CsvTable::NameOf(size_t column) const {
  return header ? "\"" + names[column] + "\"" : "column " + std::to_string(column);
}

CsvTable ReadCsvTable(const CsvForm& form, const std::function<void(const std::string&)>& visit_text) {
  return TableReader(form, visit_text).Read();
}

}  // namespace crema
