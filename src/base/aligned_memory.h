// Memory for tensors.
#ifndef CREMA_BASE_ALIGNED_MEMORY_H_
#define CREMA_BASE_ALIGNED_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "base/multiversion.h"

namespace crema {

// Memory of tensors, a layer's workspace among it, begins at a multiple of these bytes: a cache line and an AVX-512
// register.
constexpr size_t kTensorAlignment = 64;

// `bytes`, and those unused behind them so that what follows is aligned, too.
CREMA_HOST_DEVICE constexpr size_t AlignedBytes(size_t bytes, size_t alignment = kTensorAlignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Those of `count` numbers.
template <typename Number>
CREMA_HOST_DEVICE constexpr size_t AlignedBytesOf(int64_t count) {
  return AlignedBytes(static_cast<size_t>(count) * sizeof(Number));
}

// `bytes` bytes, not set to anything, aligned for tensors; null where there are not as many. To be given back with
// std::free. From some megabytes on in huge pages, where Linux has them for programs that ask (transparent_hugepage:
// madvise or always): a net goes through more memory in a pass than processors remember the addresses of in pages of
// 4 KiB (docs/measurements.md).
void* AllocateAligned(size_t bytes);

}  // namespace crema

#endif  // CREMA_BASE_ALIGNED_MEMORY_H_
