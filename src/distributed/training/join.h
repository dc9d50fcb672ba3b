// Joining a training from within the coordinator's process.
#ifndef CREMA_DISTRIBUTED_TRAINING_JOIN_H_
#define CREMA_DISTRIBUTED_TRAINING_JOIN_H_

#include <zmq.hpp>

#include "distributed/training/coordinate.h"

namespace crema {

// As Join, with the sockets of a context that others use, too: an inproc:// endpoint is one of its context's only.
JoinResult JoinInside(zmq::context_t& context, const JoinOptions& options);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_TRAINING_JOIN_H_
