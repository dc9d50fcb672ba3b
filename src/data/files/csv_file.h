// Tables as text: values separated by commas (RFC 4180).
#ifndef CREMA_DATA_FILES_CSV_FILE_H_
#define CREMA_DATA_FILES_CSV_FILE_H_

#include <string>
#include <vector>

#include "crema/error.h"
#include "data/files/text_file.h"

namespace crema {

struct CsvField {
  std::string text;  // without quotes, and blanks around it within and outside them
  int column = 0;    // where it begins in its line, from 1
};

// Fields may be quoted and then hold commas, line ends and doubled quotes; empty lines are skipped.
class CsvFile {
 public:
  explicit CsvFile(const std::string& path) : file_(path) {
    file_.KeepZeros();  // who uses a field says where they stand
  }

  // Reads the next row; false behind the last one. Throws UserError where a quote is not closed, or lines do not
  // end with line feeds.
  bool ReadRow(std::vector<CsvField>* fields);
  // Where the row begins that was read last; `column` of a field of it, or 0.
  Location At(int column) const { return {file_.path(), row_line_, column}; }

 private:
  TextFile file_;
  std::string line_;
  int row_line_ = 0;
};

}  // namespace crema

#endif  // CREMA_DATA_FILES_CSV_FILE_H_
