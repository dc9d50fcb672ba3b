// Workers of the coordinator's machine that are threads of its process.
#ifndef CREMA_DISTRIBUTED_TRAINING_WORKER_THREADS_H_
#define CREMA_DISTRIBUTED_TRAINING_WORKER_THREADS_H_

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "distributed/training/local_workers.h"

namespace crema {

class WorkerThreads : public LocalWorkers {
 public:
  // What one does until it is asked to stop or has nothing more to do; returns why it ended. What it throws is its
  // death, without hope where that is a UserError. `asked_to_stop` may be called by any thread.
  using Work =
      std::function<std::string(size_t index, const std::string& name, const std::function<bool()>& asked_to_stop)>;

  // Starts so many. Signals are for other threads: neither they nor the threads that they start get any.
  WorkerThreads(size_t count, Work work);
  // Asks those that still run to stop, and waits for as long as that takes.
  ~WorkerThreads() override;

 private:
  struct Thread {
    std::thread thread;
    std::optional<End> end;  // under mutex_
  };

  void Start(size_t index) override;
  std::optional<End> TakeEnd(size_t index) override;
  void Stop();
  // In the thread.
  void Run(size_t index);
  End WorkOf(size_t index);

  const Work work_;
  std::mutex mutex_;
  bool stop_ = false;  // under mutex_
  std::vector<Thread> threads_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_TRAINING_WORKER_THREADS_H_
