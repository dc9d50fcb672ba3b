// The memory that a program's passes take.
#ifndef CREMA_RUNTIME_ARENA_H_
#define CREMA_RUNTIME_ARENA_H_

#include "device/device.h"
#include "graph/program.h"

namespace crema {

// `bytes` for the net's program. Throws EnvironmentError that names the layer at which the most is in use, what takes
// most of it, and the remedy.
Buffer AllocateArena(const CompiledNet& net, Device& device, size_t bytes);

}  // namespace crema

#endif  // CREMA_RUNTIME_ARENA_H_
