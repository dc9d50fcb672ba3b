// The images of a database as files.
#ifndef CREMA_DATA_DATABASES_EXPORT_DATABASE_H_
#define CREMA_DATA_DATABASES_EXPORT_DATABASE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/progress_line.h"
#include "data/databases/record_source.h"

namespace crema {

struct DatabaseExport {
  std::string folder;               // made where it is absent
  std::vector<std::string> labels;  // names of the classes, of objects with the background; without, or beyond them,
                                    // the numbers
  int64_t limit = 0;                // how many records, the first ones; 0: all
  int threads = 0;                  // 0: one per core
  bool draw = false;                // objects into their images, whose files are JPEGs then
};

// Writes record i to FOLDER/<class>/<i in 8 digits>.png, or encoded ones byte for byte as .jpg or .png; returns how
// many. Where records have several labels these are in the list FOLDER/list.txt, which ReadImageList reads, and the
// images in FOLDER, as those of records with objects are. Files that exist are never overwritten: the first one met is
// a UserError, as are records that are broken, have another number of labels than the first, or are no images of 1 or 3
// channels of bytes, and objects to draw where the first record has none.
int64_t ExportDatabase(const RecordSource& source, const DatabaseExport& how, ProgressLine* progress);

}  // namespace crema

#endif  // CREMA_DATA_DATABASES_EXPORT_DATABASE_H_
