// Who may use which steps of the stream of batches, and which were used: every one is used by one worker, once.
#ifndef CREMA_DISTRIBUTED_PROTOCOL_LEDGER_H_
#define CREMA_DISTRIBUTED_PROTOCOL_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "distributed/protocol/messages.pb.h"

namespace crema {

// Steps [first, first + count).
struct Steps {
  uint64_t first = 0, count = 0;

  uint64_t end() const { return first + count; }
  bool operator==(const Steps&) const = default;
};

// As messages and records have them.
inline Steps StepsOf(const StepRange& range) { return {range.first(), range.count()}; }

// A step is unused, leased, or used. All from next() on are unused. Not thread-safe.
class Ledger {
 public:
  Ledger() = default;
  // All below `next` are used but `unused`, which may lie in any order. Throws std::invalid_argument where they overlap
  // or lie behind `next`.
  Ledger(uint64_t next, const std::vector<Steps>& unused);

  // Leases at most `count` consecutive steps, the lowest unused ones.
  Steps Take(uint64_t count);
  // Leases these; false, and nothing changes, unless all are unused. What lies between next() and them becomes unused
  // steps below next(); they may begin before it.
  bool TakeThese(const Steps& steps);
  // Unused again. Must be a whole lease.
  void Return(const Steps& lease);
  // Used. Must be a whole lease.
  void Use(const Steps& lease);

  uint64_t next() const { return next_; }
  // Below next(), in their order, leased ones among them.
  std::vector<Steps> unused() const;
  // Leases that are neither returned nor used.
  size_t leases() const { return leased_.size(); }

 private:
  using Ranges = std::map<uint64_t, uint64_t>;  // first to count

  void Free(const Steps& steps);

  uint64_t next_ = 0;
  Ranges free_, leased_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_PROTOCOL_LEDGER_H_
