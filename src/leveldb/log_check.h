// What LevelDB passes over without a word in a database: logs that are missing, and logs that end within a record
// (https://github.com/google/leveldb/blob/main/doc/log_format.md). To LevelDB both are traces of a program that died
// while it wrote, whose last records do not count. A data set has then lost records, most likely while it was copied.
#ifndef CREMA_LEVELDB_LOG_CHECK_H_
#define CREMA_LEVELDB_LOG_CHECK_H_

#include <string>

namespace crema::level_db {

// What is wrong with the MANIFEST and the logs that opening the database reads; empty when nothing is, or when it
// cannot be told, which LevelDB then says.
std::string ProblemOfLogs(const std::string& folder);

}  // namespace crema::level_db

#endif  // CREMA_LEVELDB_LOG_CHECK_H_
