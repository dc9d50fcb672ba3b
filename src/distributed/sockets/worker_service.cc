#include "distributed/sockets/worker_service.h"

#include <chrono>
#include <utility>

#include "distributed/protocol/environment.h"

namespace crema {

WorkerService::WorkerService(WorkerOptions options, WorkerMath& math, std::unique_ptr<WorkerSockets> sockets)
    : worker_(std::move(options), math, Now()), sockets_(std::move(sockets)), thread_([this] { Serve(); }) {}

WorkerService::~WorkerService() {
  {
    const std::lock_guard lock(mutex_);
    // Else it would be missed only when nothing was heard of it for long.
    worker_.Leave("its program ends", Now());
    stop_ = true;
  }
  sockets_->Wake();
  thread_.join();
}

void WorkerService::Serve() {
  const auto collect = [&](std::unique_lock<std::mutex>& lock) {
    const std::vector<Outgoing> outgoing = worker_.TakeOutgoing();
    const std::optional<std::vector<PeerAddress>> peers = worker_.TakePeers();
    happened_.notify_all();
    lock.unlock();
    if (peers) sockets_->SetPeers(*peers);
    for (const Outgoing& message : outgoing) sockets_->Send(message);
  };
  try {
    while (true) {
      Milliseconds deadline = 0;
      {
        std::unique_lock lock(mutex_);
        if (Now() >= worker_.deadline()) worker_.OnTick(Now());
        deadline = worker_.deadline();
        const bool reconnect = worker_.TakeReconnect();
        const bool stop = stop_;
        if (new_peers_) sockets_->AddPeers(std::move(new_peers_));
        if (reconnect) sockets_->Reconnect();
        losses_ = sockets_->losses();
        losses_.early = worker_.early_dropped();
        collect(lock);
        if (stop) return;
      }
      sockets_->Receive(deadline - Now(),
                        [&](const std::string& route, const ClusterMessage& message, std::span<const std::byte> bytes) {
                          std::unique_lock lock(mutex_);
                          if (route.empty()) {
                            worker_.OnMessage(message, bytes, Now());
                          } else {
                            worker_.OnPeerMessage(route.substr(1), message, bytes, Now());
                          }
                          collect(lock);
                        });
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    happened_.notify_all();
  }
}

WorkerTurn WorkerService::Await(Milliseconds timeout) {
  std::unique_lock lock(mutex_);
  WorkerTurn turn;
  happened_.wait_for(lock, std::chrono::milliseconds(timeout), [&] {
    if (error_) return true;
    turn.welcome = worker_.TakeWelcome();
    if (!turn.welcome) turn.task = worker_.TakeTask();
    turn.ended = worker_.ended();
    return turn.welcome || turn.task || turn.ended;
  });
  if (error_) std::rethrow_exception(error_);
  return turn;
}

void WorkerService::Do(const std::function<void(Worker&)>& action) {
  {
    const std::lock_guard lock(mutex_);
    action(worker_);
  }
  sockets_->Wake();
}

PeerLosses WorkerService::losses() {
  const std::lock_guard lock(mutex_);
  return losses_;
}

void WorkerService::AddPeers(std::unique_ptr<PeerSockets> peers) {
  {
    const std::lock_guard lock(mutex_);
    new_peers_ = std::move(peers);
  }
  sockets_->Wake();
}

}  // namespace crema
