// What a state machine of the protocol wants to be sent.
#ifndef CREMA_DISTRIBUTED_OUTGOING_H_
#define CREMA_DISTRIBUTED_OUTGOING_H_

#include <string>

#include "crema/cluster.pb.h"
#include "distributed/transfer.h"

namespace crema {

// Every worker has two connections to the coordinator, so that bytes do not hold up what is said, and others to workers.
enum class Lane { kControl, kBulk, kPeer };

struct Outgoing {
  std::string route;  // of the coordinator's: to whom; to other workers: their endpoint
  Lane lane = Lane::kControl;
  ClusterMessage message;
  Slice slice;  // goes behind the message
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_OUTGOING_H_
