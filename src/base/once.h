// What is done once, by whichever thread wants it first.
#ifndef CREMA_BASE_ONCE_H_
#define CREMA_BASE_ONCE_H_

#include <atomic>
#include <mutex>

namespace crema {

// As std::call_once, which does not return again on some systems once an exception has left it (GCC bug 66146).
class Once {
 public:
  // Calls `action`, unless a call of it has returned, while other threads wait. Throws what it throws: the next caller
  // tries again.
  template <typename Action>
  void Do(const Action& action) {
    if (done_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    action();
    done_.store(true, std::memory_order_release);
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> done_ = false;
};

}  // namespace crema

#endif  // CREMA_BASE_ONCE_H_
