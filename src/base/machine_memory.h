// How much memory this process may use.
#ifndef CREMA_BASE_MACHINE_MEMORY_H_
#define CREMA_BASE_MACHINE_MEMORY_H_

#include <cstddef>

namespace crema {

// Bytes of the machine's memory, or of the least limit of the process's control group (version 1 or 2) and those above
// it where that is less.
size_t MachineMemory();

// Bytes that could be allocated now without pushing others out, within the same limit.
size_t FreeMachineMemory();

}  // namespace crema

#endif  // CREMA_BASE_MACHINE_MEMORY_H_
