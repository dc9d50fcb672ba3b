// From what a coordinator left on the disk to what the next one starts from.
#ifndef CREMA_DISTRIBUTED_JOURNAL_JOURNAL_REPLAY_H_
#define CREMA_DISTRIBUTED_JOURNAL_JOURNAL_REPLAY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "distributed/protocol/ledger.h"
#include "distributed/protocol/messages.pb.h"

namespace crema {

struct JournalReplay {
  uint64_t job = 0;      // 0: neither the journal nor the snapshot knows one
  uint64_t epoch = 1;    // for the coordinator that starts now
  uint64_t version = 0;  // of the snapshot
  Ledger ledger;         // as of that version
  // What the journal says about that version, where it does: the iteration behind it, and the parameters' fingerprint.
  std::optional<uint64_t> iteration, digest;
  // Commits beyond it that count, in their order: for CoordinatorStart::lost.
  std::vector<JournalRecord::Commit> lost;
  // The last version, where the journal begins behind the snapshot: all since are lost, and which steps they used is
  // not known any more.
  std::optional<uint64_t> out_of_reach;
};

// Whether the journal knows the version that `replay` is of by other parameters than those of these fingerprints, which
// a snapshot has. Throws UserError where it is of another iteration.
bool IsOfOthers(const JournalReplay& replay, uint64_t iteration, const std::vector<uint64_t>& digests);

// Takes the records of a journal in the order in which they were written, and keeps of them what counts for a snapshot:
// a journal may be much longer.
class JournalReplayer {
 public:
  // `snapshot` is ClusterState's default where there is none.
  explicit JournalReplayer(ClusterState snapshot);
  // Throws UserError where the record contradicts those before it, or is of another training.
  void Add(const JournalRecord& record);
  // Behind the last one. Throws UserError where journal and snapshot contradict each other.
  JournalReplay Finish();

 private:
  void Begin(const JournalRecord::Start& start);
  void Commit(const JournalRecord::Commit& commit);

  const ClusterState snapshot_;
  JournalReplay replay_;
  bool begun_ = false;
  uint64_t last_ = 0;  // version that the journal has reached
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_JOURNAL_JOURNAL_REPLAY_H_
