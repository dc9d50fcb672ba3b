// Memory for large buffers that come and go with every round: what was freed is kept for the next one. Fresh memory of
// the system costs a page fault for every 4 KiB that is touched, often more time than what is then done with it.
#ifndef CREMA_BASE_KEPT_MEMORY_H_
#define CREMA_BASE_KEPT_MEMORY_H_

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace crema {

// `bytes` bytes, not set to anything, aligned for all types. In use and kept together never take more than was once in
// use at the same time (by up to an eighth, for sizes are rounded so that similar ones fit each other). Small ones are
// not kept. Any thread may call at any time. Throws std::bad_alloc.
void* AllocateKept(size_t bytes);
// As many bytes as were asked for.
void FreeKept(void* data, size_t bytes) noexcept;
// Bytes that are kept and not in use.
size_t KeptBytes();

// Of containers whose memory comes from there. What they grow by without being given a value is not set to zero.
template <typename T>
struct KeptAllocator {
  using value_type = T;

  KeptAllocator() = default;
  template <typename U>
  KeptAllocator(const KeptAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(size_t count) { return static_cast<T*>(AllocateKept(count * sizeof(T))); }
  void deallocate(T* data, size_t count) noexcept { FreeKept(data, count * sizeof(T)); }

  template <typename U, typename... Arguments>
  void construct(U* at, Arguments&&... arguments) {
    if constexpr (sizeof...(Arguments) == 0) {
      ::new (static_cast<void*>(at)) U;
    } else {
      ::new (static_cast<void*>(at)) U(std::forward<Arguments>(arguments)...);
    }
  }

  friend bool operator==(const KeptAllocator&, const KeptAllocator&) { return true; }
};

using Bytes = std::vector<std::byte, KeptAllocator<std::byte>>;

}  // namespace crema

#endif  // CREMA_BASE_KEPT_MEMORY_H_
