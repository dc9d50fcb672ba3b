#include "data/databases/record_source.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/leveldb.h"
#include "base/paths.h"
#include "crema/error.h"
#include "data/databases/lmdb_source.h"

namespace crema {

namespace {

// The command that makes an LMDB of a LevelDB, and what to name then.
std::string HowToConvert(const std::string& leveldb) {
  std::string lmdb = WithoutTrailingSlashes(leveldb);
  for (const std::string ending : {"_leveldb", ".leveldb"}) {
    if (lmdb.ends_with(ending)) lmdb.resize(lmdb.size() - ending.size());
  }
  lmdb += "_lmdb";
  return "convert it once with: db_tool convert \"" + leveldb + "\" \"" + lmdb +
         "\", and in the prototxt set data_param { source: \"" + lmdb + "\" backend: LMDB }";
}

}  // namespace

std::shared_ptr<const RecordSource> OpenRecordSource(const std::string& path) {
  struct stat status;
  if (path.empty()) throw UserError("the path of the database is empty; expected the folder of an LMDB");
  if (stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      throw UserError("database \"" + path + "\" does not exist; give the folder of an LMDB, or make it first " +
                      "with convert_mnist_data (MNIST's files) or convert_imageset (a list of images)");
    }
    throw EnvironmentError("cannot look at database \"" + path + "\": " + std::strerror(errno));
  }
  if (!S_ISDIR(status.st_mode)) {
    const bool data_file = FileName(path) == "data.mdb";
    throw UserError("\"" + path + "\" is a file; expected the folder of an LMDB" +
                    (data_file ? ": name the folder that holds data.mdb" : ""));
  }
  if (stat((path + "/data.mdb").c_str(), &status) != 0) {
    if (errno != ENOENT) {
      throw EnvironmentError("cannot look into database \"" + path + "\": " + std::strerror(errno));
    }
    if (LooksLikeLevelDb(path)) {
      throw UserError("\"" + path + "\" is a LevelDB, and only LMDB is read; " + HowToConvert(path));
    }
    throw UserError("\"" + path + "\" is not an LMDB: the folder holds no data.mdb");
  }
  return OpenLmdb(path);
}

bool IsDatabaseFolder(const std::string& path) { return Exists(path + "/data.mdb") || LooksLikeLevelDb(path); }

bool RecordSourceExists(const std::string& path) {
  struct stat status;
  return !path.empty() && (stat(path.c_str(), &status) == 0 || (errno != ENOENT && errno != ENOTDIR));
}

std::string DescribeRecord(const RecordSource& source, uint64_t i) {
  return "record \"" + source.Key(i) + "\" of " + source.path();
}

}  // namespace crema
