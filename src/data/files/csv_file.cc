#include "data/files/csv_file.h"

#include <algorithm>
#include <utility>

#include "base/trimmed.h"

namespace crema {

namespace {

bool Blank(char c) { return c == ' ' || c == '\t'; }

}  // namespace

bool CsvFile::ReadRow(std::vector<CsvField>* fields) {
  fields->clear();
  do {
    if (!file_.ReadLine(&line_)) return false;
  } while (line_.find_first_not_of(" \t") == std::string::npos);
  row_line_ = file_.line();
  size_t at = 0;
  while (true) {
    while (at < line_.size() && Blank(line_[at])) ++at;
    CsvField field{"", static_cast<int>(at) + 1};
    if (at < line_.size() && line_[at] == '"') {
      for (++at;; ++at) {
        if (at >= line_.size()) {
          field.text += '\n';
          at = static_cast<size_t>(-1);
          if (!file_.ReadLine(&line_)) throw UserError(At(field.column), "the quote is not closed");
        } else if (line_[at] != '"') {
          field.text += line_[at];
        } else if (at + 1 < line_.size() && line_[at + 1] == '"') {
          field.text += line_[at++];
        } else {
          ++at;
          break;
        }
      }
      while (at < line_.size() && Blank(line_[at])) ++at;
      if (at < line_.size() && line_[at] != ',') {
        throw UserError(At(field.column), "expected a comma behind the quoted field, got \"" + line_.substr(at, 20) +
                                              "\"; write a quote within quotes twice");
      }
    } else {
      const size_t end = std::min(line_.find(',', at), line_.size());
      field.text = line_.substr(at, end - at);
      if (field.text.find('\r') != std::string::npos) {
        throw UserError(At(field.column),
                        "a carriage return stands within the row; if lines end with it alone, write "
                        "line feeds in its place, as \"tr '\\r' '\\n'\" does");
      }
      at = end;
    }
    field.text = std::string(Trimmed(field.text, " \t"));
    fields->push_back(std::move(field));
    if (at >= line_.size()) return true;
    ++at;
  }
}

}  // namespace crema
