#include "solver/snapshots/prefix_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <functional>
#include <iterator>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/atomic_file.h"
#include "base/log.h"
#include "base/paths.h"
#include "crema/error.h"

namespace crema {

namespace fs = std::filesystem;

namespace {

// Calls visit(what follows the prefix in the name, the entry) for each file whose name begins with it.
void VisitFiles(const std::string& prefix,
                const std::function<void(const std::string&, const fs::directory_entry&)>& visit) {
  const std::string start = FileName(prefix);
  std::error_code error;
  for (fs::directory_iterator at(DirectoryOf(prefix), error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (name.starts_with(start)) visit(name.substr(start.size()), *at);
  }
}

// What an AtomicFile of a training is called before it is whole.
bool IsUnfinished(const std::string& rest) {
  constexpr std::string_view kOurs[] = {"_iter_", "_best.", "_ema.", "_cluster.journal."};
  return IsTemporaryName(rest) &&
         std::any_of(std::begin(kOurs), std::end(kOurs), [&](std::string_view ours) { return rest.starts_with(ours); });
}

}  // namespace

std::vector<StateFile> FindStates(const std::string& prefix, SnapshotFormat preferred) {
  std::vector<std::tuple<int, bool, StateFile>> found;
  VisitFiles(prefix, [&](const std::string& rest, const fs::directory_entry& entry) {
    constexpr std::string_view kStart = "_iter_";
    if (!rest.starts_with(kStart)) return;
    int iteration = 0;
    const char* const first = rest.data() + kStart.size();
    const auto [stop, error] = std::from_chars(first, rest.data() + rest.size(), iteration);
    if (error != std::errc() || *first == '-') return;
    for (const auto format : {SolverParameter::BINARYPROTO, SolverParameter::HDF5}) {
      const std::string path = StatePath(prefix, iteration, format);
      if (path != prefix + rest) continue;
      std::error_code ignored;
      found.emplace_back(-iteration, format != preferred, StateFile{iteration, path, entry.last_write_time(ignored)});
    }
  });
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  std::vector<StateFile> states;
  for (auto& [iteration, other, state] : found) states.push_back(std::move(state));
  return states;
}

std::string SetBestAside(const std::string& prefix, SnapshotFormat format) {
  const std::string path = BestModelPath(prefix, format);
  std::error_code error;
  const auto is_there = [&error](const std::string& at) { return fs::exists(fs::symlink_status(at, error)); };
  if (!is_there(path)) return "";
  std::string aside;
  for (int number = 1; aside.empty() || is_there(aside); ++number) {
    aside = path;
    aside.insert(prefix.size() + std::string_view("_best").size(),
                 number == 1 ? "_earlier" : "_earlier_" + std::to_string(number));
  }
  fs::rename(path, aside, error);
  if (error) {
    throw EnvironmentError("cannot rename " + path + ", which an earlier run wrote, to " + aside + ": " +
                           error.message() + "; it is not written over: move it away");
  }
  return aside;
}

PrefixLock::PrefixLock(std::string prefix) : prefix_(std::move(prefix)) {
  for (;;) {
    constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    fd_ = open(path().c_str(), O_RDWR | O_CREAT | kFlags, 0666);
    if (fd_ < 0 && errno == EACCES) fd_ = open(path().c_str(), O_RDONLY | kFlags);  // another user's
    struct stat info = {};
    const bool exists = fd_ >= 0 ? fstat(fd_, &info) == 0 : lstat(path().c_str(), &info) == 0;
    // Its text is written over.
    if (exists && (!S_ISREG(info.st_mode) || info.st_nlink > 1)) {
      if (fd_ >= 0) close(std::exchange(fd_, -1));
      throw UserError(Location{path()},
                      "is a folder, a link or the like, but the file of this name is that by which "
                      "trainings lock their snapshots; move it away, or choose another "
                      "snapshot_prefix");
    }
    if (fd_ < 0) return;
    if (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      const bool held = error == EWOULDBLOCK;
      char process[32] = "";
      if (held && pread(fd_, process, sizeof process - 1, 0) < 0) process[0] = 0;
      close(fd_);
      fd_ = -1;
      if (!held) {
        LOG(WARNING) << path() << " cannot be locked (" << std::strerror(error)
                     << "): nothing keeps another training from writing the same snapshots";
        return;
      }
      throw EnvironmentError("another training " +
                             (process[0] ? "(process " + std::string(process) + ") " : std::string()) +
                             "writes snapshots to \"" + prefix_ +
                             "\" now; wait for its end, stop it, or give this one a snapshot_prefix of its own");
    }
    // Who held it may have removed the file meanwhile.
    struct stat held, named;
    if (fstat(fd_, &held) == 0 && stat(path().c_str(), &named) == 0 && held.st_ino == named.st_ino) break;
    close(fd_);
  }
  const std::string process = std::to_string(getpid());
  if (ftruncate(fd_, 0) == 0) [[maybe_unused]]
    const ssize_t written = pwrite(fd_, process.data(), process.size(), 0);
}

PrefixLock::~PrefixLock() {
  if (fd_ < 0) return;
  unlink(path().c_str());
  close(fd_);
}

int PrefixLock::RemoveUnfinished() const {
  if (fd_ < 0) return 0;
  std::vector<fs::path> unfinished;
  VisitFiles(prefix_, [&](const std::string& rest, const fs::directory_entry& entry) {
    if (IsUnfinished(rest)) unfinished.push_back(entry.path());
  });
  std::error_code ignored;
  return static_cast<int>(std::count_if(unfinished.begin(), unfinished.end(),
                                        [&](const fs::path& path) { return fs::remove(path, ignored); }));
}

}  // namespace crema
