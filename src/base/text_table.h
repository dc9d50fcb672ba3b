// Aligned tables for terminals.
#ifndef CREMA_BASE_TEXT_TABLE_H_
#define CREMA_BASE_TEXT_TABLE_H_

#include <string>
#include <vector>

namespace crema {

// Columns as wide as their widest cell, a character of UTF-8 counting as one.
class TextTable {
 public:
  // A heading that starts with '>' aligns its column to the right; the mark is not printed.
  explicit TextTable(const std::vector<std::string>& headings);

  // Missing cells are empty.
  void AddRow(std::vector<std::string> cells);
  // A line of dashes.
  void AddRule() { rows_.push_back({}); }

  std::vector<std::string> Lines() const;
  // These, each with its line end.
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the headings first; empty: a rule
  std::vector<bool> right_;
};

}  // namespace crema

#endif  // CREMA_BASE_TEXT_TABLE_H_
