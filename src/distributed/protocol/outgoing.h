// What a state machine of the protocol wants to be sent.
#ifndef CREMA_DISTRIBUTED_PROTOCOL_OUTGOING_H_
#define CREMA_DISTRIBUTED_PROTOCOL_OUTGOING_H_

#include <string>

#include "distributed/protocol/messages.pb.h"
#include "distributed/protocol/transfer.h"

namespace crema {

// Every worker has two connections to the coordinator, so that bytes do not hold up what is said, and perhaps one to
// each of its peers.
enum class Lane { kControl, kBulk, kPeer };

struct Outgoing {
  std::string route;  // to whom: of the coordinator's; of a worker's to peers, the endpoint
  Lane lane = Lane::kControl;
  ClusterMessage message;
  Slice slice;  // goes behind the message
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_PROTOCOL_OUTGOING_H_
