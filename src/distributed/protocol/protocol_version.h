// Versions of the protocol between machines.
#ifndef CREMA_DISTRIBUTED_PROTOCOL_PROTOCOL_VERSION_H_
#define CREMA_DISTRIBUTED_PROTOCOL_PROTOCOL_VERSION_H_

#include <cstdint>

namespace crema {

// Machines with another major version cannot talk; those with a higher minor one say more, which others ignore.
constexpr uint32_t kProtocolMajor = 1, kProtocolMinor = 0;

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_PROTOCOL_PROTOCOL_VERSION_H_
