#include "base/text_table.h"

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "base/utf8.h"

namespace crema {

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
  for (std::string& cell : cells) cell = Harmless(std::move(cell));
  cells.resize(right_.size());
  rows_.push_back(std::move(cells));
}

std::vector<std::string> TextTable::Lines() const {
  std::vector<size_t> widths(right_.size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Utf8Characters(row[i]));
  }
  size_t total = 0;
  for (size_t width : widths) total += width + 2;
  std::vector<std::string> lines;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - Utf8Characters(row[i]), ' ');
      line += (right_[i] ? padding + row[i] : row[i] + padding) + "  ";
    }
    if (row.empty()) line = std::string(total - 2, '-');
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string TextTable::ToString() const {
  std::string text;
  for (const std::string& line : Lines()) text += line + "\n";
  return text;
}

}  // namespace crema
