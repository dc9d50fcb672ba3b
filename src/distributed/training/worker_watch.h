// Notices a worker that has ended while the thread that trains does not come back.
#ifndef CREMA_DISTRIBUTED_TRAINING_WORKER_WATCH_H_
#define CREMA_DISTRIBUTED_TRAINING_WORKER_WATCH_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "distributed/protocol/transfer.h"
#include "distributed/training/coordinate.h"

namespace crema {

class WorkerWatch {
 public:
  // What Join returns, or throws.
  using Ending = std::function<JoinResult()>;
  // How that looks by now, once the worker has ended.
  using Look = std::function<std::optional<Ending>()>;

  // How long the thread that trains has to come back.
  static constexpr Milliseconds kPatience = 3000;

  // `on_stuck` is called once, by a thread of its own, if this still lives then.
  explicit WorkerWatch(std::function<void(const Ending&)> on_stuck);
  ~WorkerWatch();
  WorkerWatch(const WorkerWatch&) = delete;
  WorkerWatch& operator=(const WorkerWatch&) = delete;

  // From now on `look` is asked every 100 ms, by that thread.
  void Begin(Look look);
  // It has ended so. When this returns `look` is not asked any more, nor is it under way.
  void End(Ending ending);

 private:
  void Serve();

  const std::function<void(const Ending&)> on_stuck_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Look look_;                     // under mutex_
  std::optional<Ending> ending_;  // under mutex_
  bool stop_ = false;             // under mutex_
  std::thread thread_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_TRAINING_WORKER_WATCH_H_
