#include "base/leveldb.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/plugin.h"
#include "crema/error.h"

namespace crema {

namespace fs = std::filesystem;

bool LooksLikeLevelDb(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (name == "CURRENT" || name.starts_with("MANIFEST-")) return true;
  }
  return false;
}

std::unique_ptr<LevelDbReader> OpenLevelDb(const std::string& folder) {
  struct stat status;
  if (stat(folder.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      throw UserError("\"" + folder + "\" does not exist; expected the folder of a LevelDB");
    }
    throw EnvironmentError("cannot look at \"" + folder + "\": " + std::strerror(errno));
  }
  if (!S_ISDIR(status.st_mode)) throw UserError("\"" + folder + "\" is a file; expected the folder of a LevelDB");
  if (stat((folder + "/CURRENT").c_str(), &status) != 0) {
    if (errno != ENOENT) throw EnvironmentError("cannot look into \"" + folder + "\": " + std::strerror(errno));
    throw UserError("\"" + folder + "\" holds no file CURRENT" +
                    (LooksLikeLevelDb(folder) ? ", without which a LevelDB cannot be read; copy it again, with all of "
                                                "its files"
                                              : ", so it is no LevelDB"));
  }
  // Tried again where it failed: this is only reached when something needs it.
  static const auto& library =
      *static_cast<const LevelDbLibrary*>(LoadTable({"CREMA_LEVELDB_LIBRARY", "libcrema_leveldb.so", "LevelDB",
                                                     "libleveldb-dev", "crema_leveldb_library", kLevelDbInterface},
                                                    "read LevelDB \"" + folder + "\""));
  return library.open(folder);
}

}  // namespace crema
