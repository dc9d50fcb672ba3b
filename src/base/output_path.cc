#include "base/output_path.h"

#include <algorithm>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/log.h"
#include "base/paths.h"
#include "crema/error.h"

namespace crema {

namespace {

namespace fs = std::filesystem;

fs::path Absolute(const std::string& path) {
  fs::path absolute = fs::absolute(path).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

// Where `path` itself lies, and where it leads: a link may be replaced, or what is behind it.
std::vector<fs::path> PlacesOf(const std::string& path) {
  const fs::path absolute = Absolute(path);
  std::error_code error;
  std::vector<fs::path> places = {fs::weakly_canonical(absolute.parent_path(), error) / absolute.filename()};
  if (error) places = {absolute};
  const fs::path target = fs::weakly_canonical(absolute, error);
  if (!error && target != places[0]) places.push_back(target);
  return places;
}

bool LiesIn(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

}  // namespace

void RefuseOutputInInputs(const std::string& output, const std::vector<std::string>& inputs) {
  if (output.empty()) return;
  const std::vector<fs::path> places = PlacesOf(output);
  for (const std::string& input : inputs) {
    if (input.empty()) continue;
    std::error_code ignored;
    bool same = fs::equivalent(input, output, ignored), within = false;
    for (const fs::path& taken : PlacesOf(input)) {
      for (const fs::path& place : places) {
        same |= place == taken;
        within |= LiesIn(place, taken);
      }
    }
    if (same) throw UserError(Location{output}, "is what is read; write to another name");
    if (within) throw UserError(Location{output}, "lies in \"" + input + "\", which is read; write to another folder");
  }
}

void MentionLeftovers(const std::string& path) {
  std::error_code error;
  for (fs::directory_iterator at(DirectoryOf(path), error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (!name.starts_with(FileName(path) + ".tmp.") || !IsTemporaryName(name)) continue;
    LOG(WARNING) << DirectoryOf(path) << "/" << name
                 << " is of a conversion that still runs or was killed; remove it if none runs";
  }
}

void RefuseTaken(const std::string& output) {
  if (!IsTaken(output)) return;
  throw UserError(Location{output}, "exists already; choose another name, or pass --force to replace it");
}

void CheckOutputFile(const std::string& output, bool replace, const std::vector<std::string>& inputs) {
  RefuseOutputInInputs(output, inputs);
  if (!replace) RefuseTaken(output);
  const AtomicFile probe(output);
}

}  // namespace crema
