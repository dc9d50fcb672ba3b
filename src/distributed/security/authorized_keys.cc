#include "distributed/security/authorized_keys.h"

#include <dirent.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>

#include "crema/error.h"
#include "distributed/security/keys.h"

namespace crema {

namespace {

constexpr std::string_view kSuffix = ".public";

// Hidden ones are of editors and of those who replace folders as a whole.
bool IsKeyFile(std::string_view name) {
  return name.size() > kSuffix.size() && name.ends_with(kSuffix) && !name.starts_with(".");
}

std::string PathIn(const std::string& folder, const std::string& name) {
  return folder.ends_with("/") ? folder + name : folder + "/" + name;
}

// What forbids to trust a folder; empty if nothing does.
std::string ProblemOf(const std::string& folder) {
  struct stat status;
  if (stat(folder.c_str(), &status) != 0) {
    if (errno != ENOENT) return std::string("cannot be read: ") + std::strerror(errno);
    return "there is no such folder; make it and put the .public file of each worker into it";
  }
  if (!S_ISDIR(status.st_mode)) return "is not a folder; give the one that holds the .public files of the workers";
  if (status.st_mode & S_IWOTH) {
    return "everybody may put keys into this folder; run: chmod o-w " + folder;
  }
  return "";
}

}  // namespace

AuthorizedKeys::AuthorizedKeys(std::string folder) : folder_(std::move(folder)) {}

bool AuthorizedKeys::List(Listing* listing, std::string* problem) const {
  *problem = ProblemOf(folder_);
  if (!problem->empty()) return false;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(folder_.c_str()), closedir);
  if (!directory) {
    *problem = std::string("cannot be read: ") + std::strerror(errno);
    return false;
  }
  while (const dirent* entry = readdir(directory.get())) {
    const std::string name = entry->d_name;
    struct stat status;
    if (!IsKeyFile(name)) continue;
    Fingerprint& fingerprint = (*listing)[name];
    if (stat(PathIn(folder_, name).c_str(), &status) != 0) continue;
    fingerprint = {status.st_dev,         status.st_ino,          status.st_size,
                   status.st_ctim.tv_sec, status.st_ctim.tv_nsec, status.st_mode};
  }
  return true;
}

std::vector<Diagnostic> AuthorizedKeys::Refresh() {
  Listing listing;
  std::string problem;
  const bool readable = List(&listing, &problem);
  if (listing_ && *listing_ == listing && readable) return {};
  names_.clear();
  Diagnostics problems;
  if (!readable) {
    // A listing that no folder has, so that the problem is told once and the folder is read when it is back.
    const bool told = listing_ && listing_->count("");
    listing_ = Listing{{"", {}}};
    if (told) return {};
    problems.Error({folder_, 0, 0}, problem);
    return problems.list();
  }
  listing_ = listing;
  for (const auto& [file, fingerprint] : listing) {
    const std::string path = PathIn(folder_, file);
    try {
      const std::string name = file.substr(0, file.size() - kSuffix.size());
      const auto [at, added] = names_.emplace(ReadPublicKey(path), name);
      if (!added) {
        problems.Error({path, 0, 0}, "holds the same key as " + at->second + std::string(kSuffix) +
                                         "; each machine needs a key of its own");
      }
    } catch (const UserError& error) {
      for (const Diagnostic& found : error.diagnostics()) problems.Error(found.where, found.message);
    } catch (const std::exception& error) {
      problems.Error({}, error.what());
    }
  }
  return problems.list();
}

std::optional<std::string> AuthorizedKeys::NameOf(const std::string& public_key) const {
  const auto found = names_.find(public_key);
  if (found == names_.end()) return std::nullopt;
  return found->second;
}

std::string AuthorizedKeys::Remedy(const std::string& public_key) const {
  return "copy its .public file, which holds " + public_key + ", into " + folder_;
}

void CheckAuthorizedKeys(const std::string& folder) {
  const std::string problem = ProblemOf(folder);
  if (!problem.empty()) throw UserError(Location{folder}, problem);
  AuthorizedKeys keys(folder);
  std::vector<Diagnostic> diagnostics = keys.Refresh();
  if (diagnostics.empty() && keys.size() == 0) {
    Diagnostic& nobody = diagnostics.emplace_back();
    nobody.where.file = folder;
    nobody.message =
        "holds no .public file, so nobody could join; copy the .public file of each worker (crema keygen makes it) "
        "into it";
  }
  if (!diagnostics.empty()) throw UserError(std::move(diagnostics));
}

}  // namespace crema
