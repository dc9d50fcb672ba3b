// How many files, and with them connections, this process may have open.
#ifndef CREMA_DISTRIBUTED_SOCKETS_OPEN_FILES_H_
#define CREMA_DISTRIBUTED_SOCKETS_OPEN_FILES_H_

#include <cstdint>

namespace crema {

// What a process needs for itself, and for each connection of others.
inline constexpr uint64_t kOwnFiles = 32, kFilesOfAWorker = 4;

// Raises the limit to what the system allows: ZeroMQ ends the process where it is met. Throws EnvironmentError where
// that is below `needed`.
void AllowOpenFiles(uint64_t needed);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SOCKETS_OPEN_FILES_H_
