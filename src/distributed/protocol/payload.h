// Bytes that travel between machines in pieces, shared by all who send them.
#ifndef CREMA_DISTRIBUTED_PROTOCOL_PAYLOAD_H_
#define CREMA_DISTRIBUTED_PROTOCOL_PAYLOAD_H_

#include <memory>

#include "base/kept_memory.h"

namespace crema {

// Not changed once it is shared.
using Payload = std::shared_ptr<const Bytes>;

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_PROTOCOL_PAYLOAD_H_
