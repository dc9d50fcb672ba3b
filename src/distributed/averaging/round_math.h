// What a coordinator asks of the arithmetic of a round.
#ifndef CREMA_DISTRIBUTED_AVERAGING_ROUND_MATH_H_
#define CREMA_DISTRIBUTED_AVERAGING_ROUND_MATH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "distributed/protocol/ledger.h"
#include "distributed/protocol/messages.pb.h"
#include "distributed/protocol/payload.h"

namespace crema {

// One worker's part in a round.
struct Contribution {
  uint64_t member = 0;
  uint32_t slot = 0;
  Steps steps;
  Push push;
  Payload values;
  double share = 0;  // with CoordinatorOptions.stale: of the steps that all ready workers are to bring
};

struct Round {
  uint64_t version = 0;    // that it starts from
  uint64_t iteration = 0;  // that it begins with
  uint64_t steps = 0;      // iterations that it takes: with CoordinatorOptions.stale possibly none
  int workers = 0;         // with CoordinatorOptions.stale: that are ready
  bool with_history = false;
  bool among_workers = false;  // values do not come here
};

// What becomes of contributions.
class RoundMath {
 public:
  virtual ~RoundMath() = default;
  // What is wrong with these values ("a value is not finite"); empty where they can be used. Puts what a code stands
  // for in its place.
  virtual std::string Check(Contribution& contribution) = 0;
  // The parameters after the round, as workers get them. `contributions` are in the order of slots, at least one. Does
  // not change what earlier calls returned, and changes nothing until Accept.
  virtual Payload Reduce(const Round& round, const std::vector<Contribution>& contributions) = 0;
  // The last result of Reduce counts.
  virtual void Accept() = 0;
  // What workers that have the state before the accepted one may get instead of it; null: nothing.
  virtual Payload Difference() { return nullptr; }
  // What workers get that join: `state`, and behind it what never changes.
  virtual Payload Whole(const Payload& state) { return state; }
  // Goes on from parameters that a worker had.
  virtual void Restore(const Payload& state) = 0;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_AVERAGING_ROUND_MATH_H_
