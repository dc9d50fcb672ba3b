// What must be so in every training on many machines, checked from what the simulator sees.
#ifndef CREMA_TESTS_DISTRIBUTED_SIMULATOR_AUDIT_H_
#define CREMA_TESTS_DISTRIBUTED_SIMULATOR_AUDIT_H_

#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "distributed/simulated_training.h"

namespace crema {

// What must not be was seen.
class Violation : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

class Audit {
 public:
  // `stale`, `tournament`: as in CoordinatorOptions; `gradients`: as in SimulatorOptions.
  explicit Audit(size_t words, bool stale = false, bool gradients = false, bool tournament = false);

  // What a worker made of these steps. With tournaments.
  void OnMade(const Steps& steps, const Payload& values);

  // A record that is on the disk. `ready`: workers that could take part, at least `least` of which must.
  void OnRecord(const JournalRecord& record, int ready, int least);
  void OnCommitted(const ClusterEvent& event) const;
  // Parameters that somebody has.
  void OnState(uint64_t version, uint64_t digest, const Payload& state) const;
  // What a snapshot or a coordinator says about steps as of the last commit.
  void OnLedger(uint64_t next, const std::vector<Steps>& unused) const;
  // Leases that workers have done, of those that count for how far one may be ahead.
  void OnReady(const std::vector<uint64_t>& members);
  // The same, after a commit; by how many the first is ahead of the last.
  uint64_t OnShares(const JournalRecord::Commit& commit, uint64_t staleness);
  // Another coordinator counts anew.
  void ForgetClocks() { clocks_.clear(); }
  void OnEpoch(uint64_t epoch, uint64_t* last) const;

  // Of the history that counts.
  uint64_t version() const { return history_.size() - 1; }
  bool Counts(uint64_t version, uint64_t digest) const {
    return version < history_.size() && history_[version].digest == digest;
  }

 private:
  struct Entry {
    Tally tally;
    uint64_t digest = 0, iteration = 0;
    std::vector<Steps> steps;
  };

  const size_t words_;
  const bool stale_, gradients_, tournament_;
  std::map<std::pair<uint64_t, uint64_t>, std::set<uint64_t>> made_;  // by first step and number: digests
  std::map<uint64_t, uint64_t> clocks_;                               // by member: leases that it has done
  std::vector<Entry> history_;                                        // by version
  std::vector<bool> used_;                                            // by step
  uint64_t uses_ = 0, epoch_ = 0;
  std::set<std::pair<uint64_t, uint64_t>> states_;  // ever committed: version and digest
};

}  // namespace crema

#endif  // CREMA_TESTS_DISTRIBUTED_SIMULATOR_AUDIT_H_
