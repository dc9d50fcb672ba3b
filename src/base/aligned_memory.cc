#include "base/aligned_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace crema {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;  // of x86-64, and of ARM with pages of 4 KiB
// Of less than two huge pages too much would be left over.
constexpr size_t kLeastHuge = 2 * kHugePage;

}  // namespace

void* AllocateAligned(size_t bytes) {
  const size_t alignment = bytes < kLeastHuge ? kTensorAlignment : kHugePage;
  if (bytes > SIZE_MAX - alignment) return nullptr;
  const size_t rounded = AlignedBytes(std::max<size_t>(bytes, 1), alignment);
  void* const data = std::aligned_alloc(alignment, rounded);
#ifdef MADV_HUGEPAGE
  if (data && alignment == kHugePage) madvise(data, rounded, MADV_HUGEPAGE);  // else there are small ones
#endif
  return data;
}

}  // namespace crema
