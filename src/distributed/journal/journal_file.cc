#include "distributed/journal/journal_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "base/atomic_file.h"
#include "base/crc32.h"
#include "base/paths.h"
#include "base/stopwatch.h"
#include "base/write_all.h"
#include "crema/error.h"
#include "schema/wire_bytes.h"

namespace crema {

namespace {

constexpr std::string_view kTitle = "crema cluster journal 1\n";
constexpr uint32_t kMostRecordBytes = 64u << 20;

uint32_t CrcOf(std::string_view bytes) { return Crc32(bytes.data(), bytes.size()); }

bool ReadAll(int fd, std::string* all) {
  char buffer[1 << 16];
  for (ssize_t got; (got = pread(fd, buffer, sizeof buffer, static_cast<off_t>(all->size()))) != 0;) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    all->append(buffer, static_cast<size_t>(got));
  }
  return true;
}

std::string Framed(const JournalRecord& record) {
  std::string text(2 * sizeof(uint32_t), '\0');
  AppendWireBytes(record, &text);
  const uint32_t head[2] = {static_cast<uint32_t>(text.size() - sizeof head),
                            CrcOf(std::string_view(text).substr(sizeof head))};
  std::memcpy(text.data(), head, sizeof head);
  return text;
}

// Whether a whole record begins anywhere in it: then what is before is damaged, and not the end of the file.
bool HoldsRecord(std::string_view bytes) {
  constexpr size_t kFar = 1 << 20;
  JournalRecord record;
  for (size_t at = 0; at < std::min(bytes.size(), kFar); ++at) {
    uint32_t head[2];
    if (bytes.size() - at < sizeof head) break;
    std::memcpy(head, bytes.data() + at, sizeof head);
    const std::string_view rest = bytes.substr(at + sizeof head);
    const bool fits = head[0] > 0 && head[0] <= std::min<size_t>(rest.size(), kFar);
    if (fits && CrcOf(rest.substr(0, head[0])) == head[1] &&
        record.ParseFromArray(rest.data(), static_cast<int>(head[0])))
      return true;
  }
  return false;
}

}  // namespace

JournalFile::JournalFile(std::string path, const std::function<void(const JournalRecord&)>& visit)
    : path_(std::move(path)) {
  fd_ = OpenLocked(path_);
  try {
    Read(visit);
  } catch (...) {
    close(fd_);
    throw;
  }
}

JournalFile::~JournalFile() { close(fd_); }

int JournalFile::OpenLocked(const std::string& path) const {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) Fail("cannot be opened", errno);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    close(fd);
    if (error != EWOULDBLOCK) Fail("cannot be locked", error);
    throw EnvironmentError(path_ +
                           ": another coordinator runs this training; wait for it or stop it, or give this one another "
                           "snapshot_prefix");
  }
  return fd;
}

void JournalFile::Fail(const std::string& what, int error) const {
  throw EnvironmentError(path_ + " " + what + ": " + std::strerror(error));
}

size_t JournalFile::Visit(std::string_view all, const std::function<void(const JournalRecord&)>& visit) const {
  std::string_view rest = all;
  if (!rest.starts_with(kTitle)) {
    throw UserError(Location{path_, 0, 0}, "is no journal of a crema coordinator; move it away");
  }
  rest.remove_prefix(kTitle.size());
  JournalRecord record;
  while (!rest.empty()) {
    uint32_t head[2] = {};
    if (rest.size() >= sizeof head) std::memcpy(head, rest.data(), sizeof head);
    const bool cut = rest.size() < sizeof head || head[0] > rest.size() - sizeof head;
    const bool sound = !cut && head[0] <= kMostRecordBytes && CrcOf(rest.substr(sizeof head, head[0])) == head[1] &&
                       record.ParseFromArray(rest.data() + sizeof head, static_cast<int>(head[0]));
    if (!sound) {
      // The last record may have been on its way to the disk when the machine stopped; nobody was told of it.
      if ((cut && !HoldsRecord(rest.substr(1))) || (!cut && sizeof head + head[0] == rest.size())) break;
      throw UserError(Location{path_, 0, 0}, "is damaged at byte " + std::to_string(all.size() - rest.size()) +
                                                 "; move it away to go on from the snapshot alone");
    }
    if (visit) visit(record);
    rest.remove_prefix(sizeof head + head[0]);
  }
  return all.size() - rest.size();
}

void JournalFile::Read(const std::function<void(const JournalRecord&)>& visit) {
  std::string all;
  if (!ReadAll(fd_, &all)) Fail("cannot be read", errno);
  if (all.empty()) {
    if (!WriteAll(fd_, kTitle.data(), kTitle.size(), 0) || fsync(fd_) != 0) Fail("cannot be written", errno);
    SyncDirectory(DirectoryOf(path_));
    bytes_ = kTitle.size();
    return;
  }
  bytes_ = Visit(all, visit);
  if (bytes_ < all.size() && ftruncate(fd_, static_cast<off_t>(bytes_)) != 0) Fail("cannot be repaired", errno);
}

bool JournalFile::empty() const { return bytes_ == kTitle.size(); }

void JournalFile::Empty() {
  if (ftruncate(fd_, static_cast<off_t>(kTitle.size())) != 0) Fail("cannot be emptied", errno);
  bytes_ = kTitle.size();
}

void JournalFile::Flush() const {
  if (!flush_ && fdatasync(fd_) != 0) Fail("cannot be written", errno);
}

void JournalFile::Write(const JournalRecord& record) {
  const ScopeTimer timer(&write_seconds_);
  if (torn_ && ftruncate(fd_, static_cast<off_t>(bytes_)) != 0) Fail("cannot be repaired", errno);
  torn_ = false;
  const std::string text = Framed(record);
  if (!WriteAll(fd_, text.data(), text.size(), bytes_) || (flush_ && fdatasync(fd_) != 0)) {
    const int error = errno;
    torn_ = ftruncate(fd_, static_cast<off_t>(bytes_)) != 0;
    Fail("cannot be written", error);
  }
  bytes_ += text.size();
}

void JournalFile::Shorten(uint64_t version) {
  std::string all;
  if (!ReadAll(fd_, &all)) Fail("cannot be read", errno);
  all.resize(std::min<uint64_t>(all.size(), bytes_));
  JournalRecord start;
  std::vector<JournalRecord> commits;
  std::optional<uint64_t> iteration;  // of `version`
  Visit(all, [&](const JournalRecord& record) {
    if (record.has_start()) {
      start = record;
      while (!commits.empty() && commits.back().commit().version() > record.start().version()) commits.pop_back();
    } else if (record.commit().version() > version) {
      commits.push_back(record);
    } else if (record.commit().version() == version) {
      iteration = record.commit().iteration();
    }
  });
  if (!iteration) return;
  start.mutable_start()->set_version(version);
  start.mutable_start()->set_iteration(*iteration);

  AtomicFile file(path_);
  file.Write(kTitle);
  file.Write(Framed(start));
  for (const JournalRecord& commit : commits) file.Write(Framed(commit));
  // Before it has its name, so that there is no moment in which nobody holds the lock.
  const int fd = OpenLocked(file.temporary());
  try {
    file.Commit();
  } catch (...) {
    close(fd);
    throw;
  }
  close(fd_);
  fd_ = fd;
  bytes_ = file.bytes();
  torn_ = false;
}

}  // namespace crema
