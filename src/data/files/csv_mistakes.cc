#include "data/files/csv_mistakes.h"

#include <algorithm>
#include <tuple>

namespace crema {

namespace {

constexpr size_t kMostMistakes = 20;
constexpr size_t kFew = 3;  // values of a column that are told one by one

std::string SeparatorHint(const std::string& text) {
  for (const char separator : {';', '\t', '|'}) {
    if (text.find(separator) == std::string::npos) continue;
    const std::string named = separator == '\t' ? "tabs" : std::string("\"") + separator + "\"";
    return " (are columns separated by " + named + "? write commas)";
  }
  return "";
}

}  // namespace

void CsvMistakes::AddValue(const Location& where, size_t column, const std::string& text) {
  if (columns_.size() <= column) columns_.resize(column + 1);
  Column& in = columns_[column];
  if (in.count++ < static_cast<int64_t>(kFew)) in.first.push_back({where, text});
  if (text.empty()) ++in.empty;
}

void CsvMistakes::Add(const Location& where, const std::string& message) {
  if (other_count_++ < static_cast<int64_t>(kMostMistakes)) others_.emplace_back(where, message);
}

std::string CsvMistakes::OfMany(const Column& column, const CsvColumnName& name, int64_t rows) {
  const std::string of = std::to_string(column.count) + " of " + std::to_string(rows) + " rows";
  const std::string skip = name.skip.empty() ? "" : ", or leave the column out: " + name.skip;
  if (column.empty == column.count) {
    return name.name + " is empty in " + of + "; expected a finite number: fill it in, or take these rows away" + skip;
  }
  const std::string& text = column.first[0].text;
  return name.name + " holds no finite number in " + of +
         (text.empty() ? ", this one is empty" : ", \"" + text + "\" in this one") + SeparatorHint(text) +
         (column.empty > 0 ? "; it is empty in " + std::to_string(column.empty) + " of them" : "") +
         "; make numbers of its values" + skip;
}

void CsvMistakes::ThrowIfAny(const std::vector<CsvColumnName>& columns, int64_t rows) const {
  std::vector<std::pair<Location, std::string>> all = others_;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    if (column.count > static_cast<int64_t>(kFew)) {
      all.emplace_back(column.first[0].where, OfMany(column, columns[i], rows));
      continue;
    }
    for (const auto& [where, text] : column.first) {
      all.emplace_back(where, columns[i].name + (text.empty() ? " is empty" : " holds \"" + text + "\"") +
                                  "; expected a finite number" + SeparatorHint(text));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.line, a.first.column) < std::tie(b.first.line, b.first.column);
  });
  const int64_t more = static_cast<int64_t>(all.size()) - static_cast<int64_t>(others_.size()) + other_count_ -
                       static_cast<int64_t>(std::min(all.size(), kMostMistakes));
  Diagnostics diagnostics;
  for (size_t i = 0; i < std::min(all.size(), kMostMistakes); ++i) diagnostics.Error(all[i].first, all[i].second);
  if (more > 0) diagnostics.Note({all[0].first.file, 0, 0}, "and " + std::to_string(more) + " more mistakes");
  diagnostics.ThrowIfErrors();
}

}  // namespace crema
