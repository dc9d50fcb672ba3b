#include "data/convert/convert_leveldb.h"

#include <filesystem>
#include <memory>
#include <span>

#include "base/leveldb.h"
#include "base/output_path.h"
#include "base/printable.h"
#include "crema/error.h"
#include "data/databases/lmdb_writer.h"

namespace crema {

DatabaseInfo ConvertLevelDb(const std::string& source, const std::string& database, bool replace,
                            ProgressLine* progress) {
  std::error_code ignored;
  if (std::filesystem::exists(source + "/data.mdb", ignored)) {
    throw UserError("\"" + source + "\" is an LMDB already, which Data layers read as it is");
  }
  const std::unique_ptr<LevelDbReader> reader = OpenLevelDb(source);
  RefuseOutputInInputs(database, {source});
  LmdbWriter writer(database, replace ? LmdbWriter::Existing::kReplace : LmdbWriter::Existing::kRefuse);
  DatabaseInfo info;
  RecordImage record;
  while (reader->Next()) {
    const std::string_view value = reader->value();
    if (const size_t bytes = reader->key().size(); bytes == 0 || bytes > LmdbWriter::kMaxKeyBytes) {
      throw UserError("LevelDB \"" + source + "\" has a record whose key has " + std::to_string(bytes) + " bytes, \"" +
                      Printable(reader->key().substr(0, 80)) +
                      "\", but keys of an LMDB have 1 to 511; write that record under another key");
    }
    writer.Put(reader->key(), value);
    CountRecord(std::as_bytes(std::span(value)), &record, &info);
    if (progress) progress->Add(1, static_cast<int64_t>(value.size()));
  }
  if (info.records == 0) {
    throw UserError("LevelDB \"" + source + "\" is empty; was the program that wrote it interrupted? Make it anew");
  }
  writer.Commit();
  return info;
}

}  // namespace crema
