// Asks a running coordinator.
#ifndef CREMA_DISTRIBUTED_SOCKETS_INQUIRY_H_
#define CREMA_DISTRIBUTED_SOCKETS_INQUIRY_H_

#include <string>

#include "crema/distributed.pb.h"
#include "distributed/protocol/messages.pb.h"

namespace crema {

// Sends the request and returns the coordinator's status. Throws EnvironmentError where nothing answers within
// `timeout_ms`, UserError for security settings that do not fit.
ClusterStatus Inquire(const std::string& endpoint, Inquiry::Request request,
                      const DistributedParameter::Security& security, int timeout_ms = 5000);

// A table for people, at most 100 columns wide. Shares are of the time since a worker joined.
std::string TextOf(const ClusterStatus& status);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SOCKETS_INQUIRY_H_
