// From what a coordinator left on the disk to what the next one starts from.
#ifndef CREMA_DISTRIBUTED_JOURNAL_REPLAY_H_
#define CREMA_DISTRIBUTED_JOURNAL_REPLAY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "crema/cluster.pb.h"
#include "distributed/ledger.h"

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
};

// `records` in the order in which they were written; `snapshot` is ClusterState's default where there is none. Throws
// UserError where they belong to different trainings, or contradict each other.
JournalReplay ReplayJournal(const std::vector<JournalRecord>& records, const ClusterState& snapshot);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_JOURNAL_REPLAY_H_
