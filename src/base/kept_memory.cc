#include "base/kept_memory.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <mutex>

namespace crema {

namespace {

// The system keeps smaller ones itself.
constexpr size_t kLeastBytes = 128 << 10;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeeps = false;  // what is used after it was freed would not be found
#else
constexpr bool kKeeps = true;
#endif

size_t RoundedUp(size_t bytes) {
  const size_t unit = std::bit_floor(bytes) / 8;
  return (bytes + unit - 1) / unit * unit;
}

class Keeper {
 public:
  void* Take(size_t size) {
    std::deque<Block> given_up;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto latest =
          std::find_if(idle_.rbegin(), idle_.rend(), [size](const Block& block) { return block.size == size; });
      in_use_ += size;
      most_in_use_ = std::max(most_in_use_, in_use_);
      if (latest != idle_.rend()) {
        void* const data = latest->data;
        idle_.erase(std::next(latest).base());
        idle_bytes_ -= size;
        return data;
      }
      while (!idle_.empty() && in_use_ + idle_bytes_ > most_in_use_) {
        given_up.push_back(idle_.front());
        idle_bytes_ -= idle_.front().size;
        idle_.pop_front();
      }
    }
    for (const Block& block : given_up) ::operator delete(block.data);
    try {
      return ::operator new(size);
    } catch (const std::bad_alloc&) {
      const std::lock_guard<std::mutex> lock(mutex_);
      in_use_ -= size;
      throw;
    }
  }

  void Keep(void* data, size_t size) {
    const std::lock_guard<std::mutex> lock(mutex_);
    in_use_ -= size;
    idle_bytes_ += size;
    idle_.push_back({data, size});
  }

  size_t idle_bytes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return idle_bytes_;
  }

 private:
  struct Block {
    void* data;
    size_t size;
  };

  std::mutex mutex_;
  std::deque<Block> idle_;  // the one that was freed first in front
  size_t in_use_ = 0, most_in_use_ = 0, idle_bytes_ = 0;
};

// Never destroyed: other threads may still free at the end of the program.
Keeper& TheKeeper() {
  static Keeper* const keeper = new Keeper;
  return *keeper;
}

bool IsKept(size_t bytes) { return kKeeps && bytes >= kLeastBytes; }

}  // namespace

void* AllocateKept(size_t bytes) { return IsKept(bytes) ? TheKeeper().Take(RoundedUp(bytes)) : ::operator new(bytes); }

void FreeKept(void* data, size_t bytes) noexcept {
  IsKept(bytes) ? TheKeeper().Keep(data, RoundedUp(bytes)) : ::operator delete(data);
}

size_t KeptBytes() { return TheKeeper().idle_bytes(); }

}  // namespace crema
