// Looking at databases: what they hold, and whether all of it is whole.
#ifndef CREMA_DATA_DATABASES_INSPECT_DATABASE_H_
#define CREMA_DATA_DATABASES_INSPECT_DATABASE_H_

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/progress_line.h"
#include "data/databases/record_image.h"
#include "data/databases/record_source.h"

namespace crema {

struct LabelRange {
  float lowest = std::numeric_limits<float>::infinity(), highest = -lowest;
  double sum = 0;
  int64_t count = 0;

  void Add(const LabelRange& other);
};

struct DatabaseInfo {
  int64_t records = 0, bytes = 0;
  std::map<std::string, int64_t> shapes;   // "3x256x256" and how many records have it
  std::map<std::string, int64_t> formats;  // "bytes", "floats", "JPEG", "PNG", "unreadable"
  std::map<int, int64_t> labels;           // of records, or of objects where there are annotated records
  // Of records that have several labels instead: "3" and how many records have so many, and what the i-th ones are.
  std::map<std::string, int64_t> label_counts;
  std::vector<LabelRange> label_ranges;
  int64_t foreign = 0;                    // records that are neither Datum nor AnnotatedDatum
  int64_t annotated = 0;                  // records that hold objects, or say that they hold none
  int64_t objects = 0, most_objects = 0;  // of all records, of one
  int64_t difficult = 0;                  // objects
  int64_t not_learnt = 0;                 // objects with boxes that are none (MistakeOf)
  std::string first_key, last_key;
};

// Adds one record to all but the keys. Memory of `record` is used again.
void CountRecord(std::span<const std::byte> bytes, RecordImage* record, DatabaseInfo* info);
// Reads fields and headers, but no pixels. threads: 0 is one per core.
DatabaseInfo InspectDatabase(const RecordSource& source, int threads, ProgressLine* progress);
// As db_tool info prints it. `names`: of the labels, or none.
std::string DescribeDatabase(const std::string& path, const DatabaseInfo& info, const std::vector<std::string>& names);

// "new_lmdb: 60000 records, stored as bytes, of 1x28x28, labels 0 to 9"
std::string SummarizeDatabase(const std::string& path, const DatabaseInfo& info);

struct BrokenRecords {
  int64_t count = 0;
  std::vector<std::string> first;  // up to 20: `record "00000042" of train_lmdb is cut short (...)`
};

// Reads every record, decodes its image, and looks whether all have as many labels as the first, and whether objects
// have boxes that can be learnt.
BrokenRecords VerifyDatabase(const RecordSource& source, int threads, ProgressLine* progress);

// The fields of record `i`, one "name: value" per line, and its first values.
std::string DescribeFields(const RecordSource& source, uint64_t i);

// The record with this key. Throws UserError where there is none.
uint64_t FindKey(const RecordSource& source, const std::string& key);

}  // namespace crema

#endif  // CREMA_DATA_DATABASES_INSPECT_DATABASE_H_
