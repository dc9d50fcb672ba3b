// What is wrong with a table, told so that one bad column does not hide all the rest.
#ifndef CREMA_DATA_FILES_CSV_MISTAKES_H_
#define CREMA_DATA_FILES_CSV_MISTAKES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "crema/error.h"

namespace crema {

// As messages call a column.
struct CsvColumnName {
  std::string name;  // "\"age\"" or "column 3"
  std::string skip;  // what leaves it out: "--skip_columns=age"; empty where nothing does
};

class CsvMistakes {
 public:
  void AddValue(const Location& where, size_t column, const std::string& text);  // one that is no finite number
  void Add(const Location& where, const std::string& message);                   // anything else

  // Throws UserError where there are any, in the order of the file, the first 20 and how many more; of a column with
  // many values that are no numbers the first one and how many of the `rows`.
  void ThrowIfAny(const std::vector<CsvColumnName>& columns, int64_t rows) const;

 private:
  struct Value {
    Location where;
    std::string text;
  };
  struct Column {
    std::vector<Value> first;
    int64_t count = 0, empty = 0;
  };

  static std::string OfMany(const Column& column, const CsvColumnName& name, int64_t rows);

  std::vector<Column> columns_;
  std::vector<std::pair<Location, std::string>> others_;  // no more than are shown
  int64_t other_count_ = 0;
};

}  // namespace crema

#endif  // CREMA_DATA_FILES_CSV_MISTAKES_H_
