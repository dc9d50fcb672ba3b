// Whole writes to file descriptors.
#ifndef CREMA_BASE_WRITE_ALL_H_
#define CREMA_BASE_WRITE_ALL_H_

#include <cstddef>
#include <cstdint>

namespace crema {

// Writes all of `data` where the file stands, also when signals come. False, with the reason in errno, where the system
// does not take it all; a part may be written then.
bool WriteAll(int fd, const void* data, size_t bytes);
// The same from byte `at` of a file on, wherever it stands.
bool WriteAll(int fd, const void* data, size_t bytes, uint64_t at);

}  // namespace crema

#endif  // CREMA_BASE_WRITE_ALL_H_
