// Memory for tensors.
#ifndef CREMA_BASE_ALIGNED_MEMORY_H_
#define CREMA_BASE_ALIGNED_MEMORY_H_

#include <cstddef>

namespace crema {

// `bytes` bytes, not set to anything, aligned to a cache line and an AVX-512 register; null where there are not as
// many. To be given back with std::free. From some megabytes on in huge pages, where Linux has them for programs that
// ask (transparent_hugepage: madvise or always): a net goes through more memory in a pass than processors remember the
// addresses of in pages of 4 KiB (docs/measurements.md).
void* AllocateAligned(size_t bytes);

}  // namespace crema

#endif  // CREMA_BASE_ALIGNED_MEMORY_H_
