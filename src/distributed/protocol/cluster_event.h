// What a coordinator tells people and whoever drives it.
#ifndef CREMA_DISTRIBUTED_PROTOCOL_CLUSTER_EVENT_H_
#define CREMA_DISTRIBUTED_PROTOCOL_CLUSTER_EVENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "crema/observer.h"
#include "distributed/averaging/round_math.h"
#include "distributed/protocol/ledger.h"
#include "distributed/protocol/transfer.h"

namespace crema {

struct ClusterEvent {
  // kLost: rounds that only workers knew, who are gone; kRecovered or kRolledBack follows, or the end. kNotice: what is
  // waited for while nothing is wrong.
  enum class Kind { kJoined, kLeft, kCommitted, kLost, kRecovered, kRolledBack, kNotice, kWarning };
  Kind kind = Kind::kWarning;
  std::string text;  // one sentence
  // kJoined, kLeft: ready workers now. kCommitted: that took part.
  int workers = 0;
  // kCommitted; of kRecovered what there is, round.iteration being the next.
  Round round;
  uint64_t version = 0;
  Payload state;
  double loss = 0;
  std::vector<float> outputs;
  uint64_t examples = 0;
  uint64_t next_step = 0, carried = 0;
  std::vector<Steps> unused;
  Milliseconds opened = 0, closed = 0;
  double averaging_seconds = 0, journal_seconds = 0;  // of whoever drives the coordinator
  std::vector<WorkerInRound> by_worker;               // of places in their order
  bool held = false;                                  // no further round is opened until Release
  // The outer momentum at that moment, where there is one; of whoever drives the coordinator.
  std::vector<float> velocity;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_PROTOCOL_CLUSTER_EVENT_H_
