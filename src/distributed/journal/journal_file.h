// The coordinator's journal on disk: what was committed, whatever happens to the process afterwards.
#ifndef CREMA_DISTRIBUTED_JOURNAL_JOURNAL_FILE_H_
#define CREMA_DISTRIBUTED_JOURNAL_JOURNAL_FILE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "distributed/protocol/journal.h"

namespace crema {

// A line of text that names the format, then records: length and CRC-32 (little-endian, 4 bytes each), and a
// JournalRecord. The file is locked, so that two coordinators cannot write to it.
class JournalFile : public Journal {
 public:
  // Opens, or makes, the file, and shows the records that it holds, in their order. A last one that was not written
  // whole is cut off.
  // Throws UserError where it is another kind of file or damaged, and what `visit` throws; EnvironmentError where
  // another coordinator has it open, or it cannot be read or written.
  explicit JournalFile(std::string path, const std::function<void(const JournalRecord&)>& visit = {});
  ~JournalFile() override;
  JournalFile(const JournalFile&) = delete;
  JournalFile& operator=(const JournalFile&) = delete;

  // What it held is void.
  void Empty();
  // Whether it holds no records.
  bool empty() const;
  // Flushed to the disk, unless set_flush(false). Where that fails, the file is as it was.
  void Write(const JournalRecord& record) override;
  // false: for those who would go back to their snapshot anyway when the machine stops.
  void set_flush(bool flush) { flush_ = flush; }
  // What was written reaches the disk, whatever set_flush said. May be called while another thread writes.
  void Flush() const;
  // Writes the file anew without what leads to the commit of `version`, which snapshots have. Not while another thread
  // writes. Throws EnvironmentError where that cannot be done, and UserError where the file was damaged meanwhile; it
  // is then as it was.
  void Shorten(uint64_t version);
  // Not while another thread writes.
  uint64_t bytes() const { return bytes_; }
  // That the last Write took.
  double write_seconds() const { return write_seconds_; }

 private:
  int OpenLocked(const std::string& path) const;
  void Read(const std::function<void(const JournalRecord&)>& visit);
  // Returns how many of these bytes are sound.
  size_t Visit(std::string_view all, const std::function<void(const JournalRecord&)>& visit) const;
  [[noreturn]] void Fail(const std::string& what, int error) const;

  const std::string path_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
  bool flush_ = true;
  double write_seconds_ = 0;
  bool torn_ = false;  // behind bytes_ may lie a part of a record
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_JOURNAL_JOURNAL_FILE_H_
