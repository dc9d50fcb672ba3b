// Numbered pieces of work done by several threads, their results taken in order.
#ifndef CREMA_DATA_LOADERS_ORDERED_WORK_H_
#define CREMA_DATA_LOADERS_ORDERED_WORK_H_

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/compute_threads.h"

namespace crema {

// `asked`, or one thread for each processor that this process may use where that is 0.
inline int WorkThreads(int asked) { return asked > 0 ? asked : UsableCores(); }

// Calls make(i, thread, &result) for i in [0, count) on `threads` threads of its own (thread in [0, threads)) and
// take(i, result) in the order of i on the calling thread. At most four results per thread exist; they are made anew
// into the same objects, so that their buffers stay. What make or take throws ends the work and is thrown here: of
// several the one with the smallest i, so that the outcome does not depend on the threads.
template <typename Result, typename Make, typename Take>
void WorkInOrder(int64_t count, int threads, const Make& make, const Take& take) {
  struct Slot {
    Result result;
    std::exception_ptr error;
    bool ready = false;
  };
  const int64_t window = std::min<int64_t>(count, int64_t{4} * threads);
  std::vector<Slot> slots(static_cast<size_t>(window));
  std::mutex mutex;
  std::condition_variable room, ready;
  int64_t next = 0, taken = 0;
  bool stop = false;
  const auto work = [&](int thread) {
    std::unique_lock lock(mutex);
    while (true) {
      room.wait(lock, [&] { return stop || next == count || next < taken + window; });
      if (stop || next == count) return;
      const int64_t i = next++;
      Slot& slot = slots[static_cast<size_t>(i % window)];
      lock.unlock();
      try {
        make(i, thread, &slot.result);
      } catch (...) {
        slot.error = std::current_exception();
      }
      lock.lock();
      slot.ready = true;
      if (i == taken) ready.notify_one();
    }
  };

  struct Crew {
    ~Crew() {
      {
        const std::lock_guard lock(mutex);
        stop = true;
      }
      room.notify_all();
      for (std::thread& thread : threads) thread.join();
    }
    std::mutex& mutex;
    std::condition_variable& room;
    bool& stop;
    std::vector<std::thread> threads = {};
  } crew{mutex, room, stop};
  for (int t = 0; t < std::min<int64_t>(threads, count); ++t) crew.threads.emplace_back(work, t);

  while (taken < count) {
    Slot& slot = slots[static_cast<size_t>(taken % window)];
    {
      std::unique_lock lock(mutex);
      ready.wait(lock, [&] { return slot.ready; });
    }
    if (slot.error) std::rethrow_exception(slot.error);
    take(taken, slot.result);
    {
      const std::lock_guard lock(mutex);
      slot.ready = false;
      ++taken;
    }
    room.notify_all();
  }
}

}  // namespace crema

#endif  // CREMA_DATA_LOADERS_ORDERED_WORK_H_
