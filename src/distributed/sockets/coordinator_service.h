// A coordinator at work: the state machine, its sockets and the thread that serves them.
#ifndef CREMA_DISTRIBUTED_SOCKETS_COORDINATOR_SERVICE_H_
#define CREMA_DISTRIBUTED_SOCKETS_COORDINATOR_SERVICE_H_

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "distributed/protocol/coordinator.h"
#include "distributed/sockets/sockets.h"

namespace crema {

// Lets it end, unless it does, as the program that drives it cannot go on.
void FailBecause(const std::exception& error, Coordinator& coordinator);

class CoordinatorService {
 public:
  // Called by the serving thread for each event before anybody can see it.
  using Prepare = std::function<void(ClusterEvent&)>;

  // `sockets` must be bound, and belong to this from now on.
  CoordinatorService(CoordinatorOptions options, CoordinatorStart start, RoundMath& math, Journal& journal,
                     std::unique_ptr<ServerSockets> sockets, Prepare prepare);
  ~CoordinatorService();

  // Events since the last call, after waiting for one for at most `timeout` ms. Throws what went wrong while serving;
  // the machine has failed then, of which workers are still told.
  std::vector<ClusterEvent> Await(Milliseconds timeout);
  // An event of a round that was committed has been dealt with. Where too many have not, no round is opened: they hold
  // the parameters of their rounds.
  void OnHandled();
  // Calls `action` with the state machine, between two messages.
  void Do(const std::function<void(Coordinator&)>& action);
  bool ended();

 private:
  void Serve();
  void ServeOn();

  const Prepare prepare_;
  std::mutex mutex_;
  Coordinator coordinator_;  // under mutex_
  std::unique_ptr<ServerSockets> sockets_;
  std::vector<ClusterEvent> events_;  // under mutex_
  int unhandled_ = 0;                 // rounds, under mutex_
  uint64_t unreadable_ = 0;           // messages, of the serving thread
  std::exception_ptr error_;          // under mutex_
  std::condition_variable happened_;
  bool stop_ = false;  // under mutex_
  std::thread thread_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SOCKETS_COORDINATOR_SERVICE_H_
