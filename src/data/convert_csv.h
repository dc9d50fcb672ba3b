// Tables of numbers to databases.
#ifndef CREMA_DATA_CONVERT_CSV_H_
#define CREMA_DATA_CONVERT_CSV_H_

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset_writer.h"
#include "data/image_size.h"
#include "data/progress_line.h"

namespace crema {

struct CsvConversion {
  // kDetect: the first row is one where a feature in it is no number.
  enum class Header { kDetect, kYes, kNo };

  std::string file;  // plain or .gz
  Header header = Header::kDetect;
  std::string label_column;  // name, or number from 0; the last one where it is empty
  // Likewise, columns with the several labels of a row, which are numbers. Not together with the former.
  std::vector<std::string> label_columns;
  ImageSize shape;      // of the features, in their order; all 0: as many channels
  bool floats = false;  // float_data even where all values are whole numbers from 0 to 255
};

// Writes one Datum for each row under the keys 00000000, 00000001, ...: bytes where all values of the file are whole
// numbers from 0 to 255, else float_data. Labels are whole numbers from 0, or names, which are numbered in the order of
// their bytes and written to the labels file; with `label_columns` any finite numbers, Datum.labels in the order of
// these names. Returns how many rows. The file is read twice and never held whole. Throws UserError with line and
// column of what is wrong (the first 20); then nothing is written.
int64_t ConvertCsv(const CsvConversion& how, const DatasetTarget& target, ProgressLine* progress);

}  // namespace crema

#endif  // CREMA_DATA_CONVERT_CSV_H_
