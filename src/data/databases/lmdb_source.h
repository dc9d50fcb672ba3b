// Reading LMDB databases as Caffe writes them.
#ifndef CREMA_DATA_DATABASES_LMDB_SOURCE_H_
#define CREMA_DATA_DATABASES_LMDB_SOURCE_H_

#include <memory>
#include <string>

#include "data/databases/record_source.h"

namespace crema {

// Opens `folder`, which must hold data.mdb, read-only through the memory map; see OpenRecordSource for the errors.
// Where LMDB cannot lock (read-only folders, file systems without locks) it is read without locks and a notice is
// logged. The records are indexed, 16 bytes each, when one other than the first is read. Sources of one database share
// their map, since LMDB must not open a file twice in a process.
std::shared_ptr<const RecordSource> OpenLmdb(const std::string& folder);

}  // namespace crema

#endif  // CREMA_DATA_DATABASES_LMDB_SOURCE_H_
