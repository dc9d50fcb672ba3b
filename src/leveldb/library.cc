#include "leveldb/database_reader.h"

extern "C" {
extern const crema::LevelDbLibrary crema_leveldb_library;
const crema::LevelDbLibrary crema_leveldb_library{crema::kLevelDbInterface, crema::level_db::OpenDatabase};
}
