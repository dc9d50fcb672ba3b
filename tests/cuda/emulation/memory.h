// The memory of emulated GPUs, and pinned memory of the host.
#ifndef CREMA_TESTS_CUDA_EMULATION_MEMORY_H_
#define CREMA_TESTS_CUDA_EMULATION_MEMORY_H_

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>

namespace crema_emulation {

inline constexpr size_t kDeviceBytes = size_t{1} << 32;
inline constexpr int kDevices = 2;

// Of one device. Its pages are closed unless the work of one of its streams runs.
class DeviceMemory {
 public:
  void* Allocate(size_t bytes) {
    std::lock_guard lock(mutex_);
    if (used_ + bytes > kDeviceBytes) return nullptr;
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t rounded = (bytes + page - 1) / page * page;
    // A page behind it that is never open.
    void* at = mmap(nullptr, rounded + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return nullptr;
    std::memset(at, 0xFF, rounded);
    mprotect(static_cast<std::byte*>(at) + rounded, page, PROT_NONE);
    blocks_[at] = rounded;
    used_ += rounded;
    if (open_ == 0) mprotect(at, rounded, PROT_NONE);
    return at;
  }

  bool Free(void* at) {
    std::lock_guard lock(mutex_);
    const auto block = blocks_.find(at);
    if (block == blocks_.end()) return false;
    munmap(at, block->second + static_cast<size_t>(sysconf(_SC_PAGESIZE)));
    used_ -= block->second;
    blocks_.erase(block);
    return true;
  }

  void Open() { Protect(+1); }
  void Close() { Protect(-1); }
  size_t free_bytes() {
    std::lock_guard lock(mutex_);
    return kDeviceBytes - used_;
  }

 private:
  void Protect(int change) {
    std::lock_guard lock(mutex_);
    const bool was_open = open_ > 0;
    open_ += change;
    if (was_open == (open_ > 0)) return;
    for (const auto& [at, bytes] : blocks_) mprotect(at, bytes, open_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
  }

  std::mutex mutex_;
  std::map<void*, size_t> blocks_;
  size_t used_ = 0;
  int open_ = 0;
};

inline DeviceMemory& Memory(int device) {
  static auto& memories = *new std::array<DeviceMemory, kDevices>;  // freed to when the process ends
  return memories[device];
}

// While it lives, the memory of the device is open.
struct Access {
  explicit Access(int device) : memory(Memory(device)) { memory.Open(); }
  ~Access() { memory.Close(); }
  DeviceMemory& memory;
};

// Within an Access: while it lives, the memory is as it was before that.
struct NoAccess {
  explicit NoAccess(int device) : memory(Memory(device)) { memory.Close(); }
  ~NoAccess() { memory.Open(); }
  DeviceMemory& memory;
};

// Memory of cudaHostAlloc.
class PinnedMemory {
 public:
  void Add(void* at, size_t bytes) {
    const std::lock_guard lock(mutex_);
    blocks_[at] = bytes;
  }
  void Remove(void* at) {
    const std::lock_guard lock(mutex_);
    blocks_.erase(at);
  }
  bool Holds(const void* at) {
    const std::lock_guard lock(mutex_);
    const auto next = blocks_.upper_bound(const_cast<void*>(at));
    if (next == blocks_.begin()) return false;
    const auto& [begin, bytes] = *std::prev(next);
    return static_cast<const std::byte*>(at) < static_cast<const std::byte*>(begin) + bytes;
  }

 private:
  std::mutex mutex_;
  std::map<void*, size_t> blocks_;
};

inline PinnedMemory& Pinned() {
  static auto& memory = *new PinnedMemory;
  return memory;
}

}  // namespace crema_emulation

#endif  // CREMA_TESTS_CUDA_EMULATION_MEMORY_H_
