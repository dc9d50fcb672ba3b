// Aligned tables and readable numbers for terminals.
#ifndef CREMA_REPORT_TEXT_TABLE_H_
#define CREMA_REPORT_TEXT_TABLE_H_

#include <cstddef>
#include <cstdint>
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

  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the headings first; empty: a rule
  std::vector<bool> right_;
};

// "1234567" as "1,234,567".
std::string FormatCount(int64_t count);
// "0", "812 k", "2.34 G": four digits at most with a decimal prefix.
std::string FormatScaled(double value);
// "0.123 ms", "12.3 ms", "1.23 s": three digits.
std::string FormatSeconds(double seconds);

}  // namespace crema

#endif  // CREMA_REPORT_TEXT_TABLE_H_
