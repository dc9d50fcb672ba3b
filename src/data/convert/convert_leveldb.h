// LevelDB databases, Caffe's default for years, to LMDBs of the same records.
#ifndef CREMA_DATA_CONVERT_CONVERT_LEVELDB_H_
#define CREMA_DATA_CONVERT_CONVERT_LEVELDB_H_

#include <string>

#include "data/databases/inspect_database.h"

namespace crema {

// Writes all records of the LevelDB in the folder `source` to an LMDB, keys and values byte for byte, in the order of
// the keys, and returns what they hold; they need be no Datums. `source` is not changed. Throws UserError where it is
// no LevelDB, empty or damaged, or has a key that LMDB cannot hold, or `database` exists (unless `replace`),
// EnvironmentError where it cannot be read or this crema has no LevelDB; then nothing is written.
DatabaseInfo ConvertLevelDb(const std::string& source, const std::string& database, bool replace,
                            ProgressLine* progress = nullptr);

}  // namespace crema

#endif  // CREMA_DATA_CONVERT_CONVERT_LEVELDB_H_
