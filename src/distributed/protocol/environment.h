// What the state machines of the protocol are told, so that they do the same again when they are told the same again.
#ifndef CREMA_DISTRIBUTED_PROTOCOL_ENVIRONMENT_H_
#define CREMA_DISTRIBUTED_PROTOCOL_ENVIRONMENT_H_

#include <cstdint>

#include "distributed/protocol/transfer.h"

namespace crema {

// Of a clock that does not go back.
Milliseconds Now();

// A number that nobody else has drawn; not 0.
uint64_t Draw();

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_PROTOCOL_ENVIRONMENT_H_
