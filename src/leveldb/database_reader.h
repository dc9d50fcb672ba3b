// What the library offers (base/leveldb.h).
#ifndef CREMA_LEVELDB_DATABASE_READER_H_
#define CREMA_LEVELDB_DATABASE_READER_H_

#include <memory>
#include <string>

#include "base/leveldb.h"

namespace crema::level_db {

std::unique_ptr<LevelDbReader> OpenDatabase(const std::string& folder);

}  // namespace crema::level_db

#endif  // CREMA_LEVELDB_DATABASE_READER_H_
