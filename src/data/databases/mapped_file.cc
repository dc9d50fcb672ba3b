#include "data/databases/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <mutex>

namespace crema {

// What the handler reads; lock-free atomics are safe there.
struct WatchedSlot {
  std::atomic<uintptr_t> begin{0}, end{0};  // both 0: free
  std::atomic<bool> lost{false};
};
static_assert(std::atomic<uintptr_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

namespace {

constexpr int kSlots = 256;

WatchedSlot slots[kSlots];
struct sigaction handler_before;

uintptr_t PageBytes() {
  static const auto bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// Puts a page of zeros where the lost one was.
bool ReplaceLost(uintptr_t address) {
  for (WatchedSlot& slot : slots) {
    if (address < slot.begin || address >= slot.end) continue;
    slot.lost = true;
    void* const page = reinterpret_cast<void*>(address & ~(PageBytes() - 1));
    return mmap(page, PageBytes(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  }
  return false;
}

void OnBusError(int signal, siginfo_t* info, void* context) {
  if (ReplaceLost(reinterpret_cast<uintptr_t>(info->si_addr))) return;
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) {
    handler_before.sa_sigaction(signal, info, context);
  } else if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN) {
    handler_before.sa_handler(signal);
  } else {
    std::signal(signal, SIG_DFL);  // who returns from here meets it again
  }
}

void Install() {
  PageBytes();
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGBUS, &action, &handler_before);
}

std::mutex slots_mutex;

}  // namespace

WatchedMap::WatchedMap(const std::byte* begin, uint64_t bytes) {
  static std::once_flag installed;
  std::call_once(installed, Install);
  const std::lock_guard lock(slots_mutex);
  for (WatchedSlot& slot : slots) {
    if (slot.end != 0) continue;
    slot_ = &slot;
    slot.lost = false;
    slot.begin = reinterpret_cast<uintptr_t>(begin);
    slot.end = slot.begin + bytes;
    return;
  }
}

WatchedMap::~WatchedMap() {
  if (slot_ == nullptr) return;
  const std::lock_guard lock(slots_mutex);
  slot_->end = 0;
  slot_->begin = 0;
}

bool WatchedMap::lost() const { return slot_ != nullptr && slot_->lost; }

void WatchedMap::Touch(std::span<const std::byte> part) {
  if (part.empty()) return;
  const auto touch = [](const std::byte* at) { static_cast<void>(*static_cast<const volatile std::byte*>(at)); };
  for (size_t at = 0; at < part.size(); at += PageBytes()) touch(part.data() + at);
  touch(&part.back());
}

}  // namespace crema
