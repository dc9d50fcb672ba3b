#include "report/text_table.h"

#include <algorithm>
#include <cstdio>

#include "base/utf8.h"

namespace crema {

namespace {

std::string Format(const char* format, double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, format, value, unit);
  return text;
}

}  // namespace

TextTable::TextTable(const std::vector<std::string>& headings) {
  std::vector<std::string> row;
  for (const std::string& heading : headings) {
    right_.push_back(heading.starts_with(">"));
    row.push_back(right_.back() ? heading.substr(1) : heading);
  }
  rows_.push_back(std::move(row));
  AddRule();
}

void TextTable::AddRow(std::vector<std::string> cells) {
  cells.resize(right_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::ToString() const {
  std::vector<size_t> widths(right_.size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Utf8Characters(row[i]));
  }
  size_t total = 0;
  for (size_t width : widths) total += width + 2;
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - Utf8Characters(row[i]), ' ');
      line += (right_[i] ? padding + row[i] : row[i] + padding) + "  ";
    }
    if (row.empty()) line = std::string(total - 2, '-');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string FormatCount(int64_t count) {
  std::string text = std::to_string(count);
  for (int at = static_cast<int>(text.size()) - 3; at > (count < 0 ? 1 : 0); at -= 3) text.insert(at, ",");
  return text;
}

std::string FormatScaled(double value) {
  if (value < 999.5) return Format("%.0f%s", value, "");
  const char* unit = "";
  for (const char* next : {"k", "M", "G", "T", "P"}) {
    value /= 1000;
    unit = next;
    if (value < 999.5) break;
  }
  return Format(value < 9.995 ? "%.2f %s" : value < 99.95 ? "%.1f %s" : "%.0f %s", value, unit);
}

std::string FormatSeconds(double seconds) {
  const bool whole = seconds >= 0.9995;
  const double value = whole ? seconds : seconds * 1000;
  const char* format = value < 9.995 ? (value < 0.9995 ? "%.3f %s" : "%.2f %s") : value < 99.95 ? "%.1f %s" : "%.0f %s";
  return Format(format, value, whole ? "s" : "ms");
}

}  // namespace crema
