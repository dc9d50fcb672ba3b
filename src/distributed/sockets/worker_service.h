// A worker's connection to its coordinator: the state machine, its sockets and the thread that serves them.
#ifndef CREMA_DISTRIBUTED_SOCKETS_WORKER_SERVICE_H_
#define CREMA_DISTRIBUTED_SOCKETS_WORKER_SERVICE_H_

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "distributed/protocol/worker.h"
#include "distributed/sockets/sockets.h"

namespace crema {

// What a worker is to do next.
struct WorkerTurn {
  std::optional<Welcome> welcome;
  std::optional<TrainTask> task;
  bool ended = false;
};

class WorkerService {
 public:
  WorkerService(WorkerOptions options, WorkerMath& math, std::unique_ptr<WorkerSockets> sockets);
  ~WorkerService();

  // Waits for at most `timeout` ms; all empty where nothing came. Throws what ended the serving thread.
  WorkerTurn Await(Milliseconds timeout);
  // Calls `action` with the state machine, between two messages, and sends what it says.
  void Do(const std::function<void(Worker&)>& action);
  // Other workers are spoken with by these from now on.
  void AddPeers(std::unique_ptr<PeerSockets> peers);
  // Of what was sent and received before the last message.
  PeerLosses losses();

 private:
  void Serve();

  std::mutex mutex_;
  Worker worker_;  // under mutex_
  std::unique_ptr<WorkerSockets> sockets_;
  std::unique_ptr<PeerSockets> new_peers_;  // under mutex_
  PeerLosses losses_;                       // under mutex_
  std::exception_ptr error_;                // under mutex_
  std::condition_variable happened_;
  bool stop_ = false;  // under mutex_
  std::thread thread_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SOCKETS_WORKER_SERVICE_H_
