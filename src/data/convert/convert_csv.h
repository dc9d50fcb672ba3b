// Tables of numbers, or of texts with labels, to databases.
#ifndef CREMA_DATA_CONVERT_CONVERT_CSV_H_
#define CREMA_DATA_CONVERT_CONVERT_CSV_H_

#include <cstdint>

#include "base/progress_line.h"
#include "data/convert/text_features.h"
#include "data/databases/dataset_writer.h"
#include "data/databases/image_size.h"
#include "data/files/csv_table.h"

namespace crema {

struct CsvConversion {
  CsvForm form;
  TextFeaturesForm text;  // where form.text_column is given
  ImageSize shape;        // of the features, in their order; all 0: as many channels
  bool floats = false;    // float_data even where all values are whole numbers from 0 to 255
  bool in_order = false;  // a split cuts the table into stretches, as it is for series of measurements
};

// Writes one Datum for each row under the keys 00000000, 00000001, ...: bytes where all values of the file are whole
// numbers from 0 to 255, else float_data. Classes are numbered as ReadCsvTable says, and their names written to the
// labels file; with `label_columns` any finite numbers become Datum.labels, in the order of these names; without labels
// Datum.label is -1, not known. With form.text_column the features are the numbers of a text's words (TextFeatures),
// bytes where the vocabulary has at most 256. Returns how many rows. The file is read twice and never held whole.
// Throws UserError with line and column of what is wrong (the first 20); then nothing is written.
int64_t ConvertCsv(const CsvConversion& how, const DatasetTarget& target, ProgressLine* progress);

}  // namespace crema

#endif  // CREMA_DATA_CONVERT_CONVERT_CSV_H_
