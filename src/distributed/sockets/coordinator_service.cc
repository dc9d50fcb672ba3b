#include "distributed/sockets/coordinator_service.h"

#include <chrono>
#include <iterator>
#include <utility>

#include "crema/error.h"
#include "crema/solver.h"
#include "distributed/protocol/environment.h"

namespace crema {

namespace {
constexpr int kMostUnhandled = 3;
}  // namespace

void FailBecause(const std::exception& error, Coordinator& coordinator) {
  if (coordinator.phase() == Coordinator::Phase::kEnding) return;
  Coordinator::Failure kind = Coordinator::Failure::kEnvironment;
  if (dynamic_cast<const UserError*>(&error)) kind = Coordinator::Failure::kMistake;
  if (dynamic_cast<const NotFinite*>(&error)) kind = Coordinator::Failure::kDiverged;
  coordinator.Fail(error.what(), Now(), kind);
}

CoordinatorService::CoordinatorService(CoordinatorOptions options, CoordinatorStart start, RoundMath& math,
                                       Journal& journal, std::unique_ptr<ServerSockets> sockets, Prepare prepare)
    : prepare_(std::move(prepare)),
      coordinator_(std::move(options), std::move(start), math, journal, Now()),
      sockets_(std::move(sockets)),
      thread_([this] { Serve(); }) {}

CoordinatorService::~CoordinatorService() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  sockets_->Wake();
  thread_.join();
}

void CoordinatorService::Serve() {
  try {
    return ServeOn();
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    happened_.notify_all();
    FailBecause(error, coordinator_);
  }
  // Workers are to hear of the end still.
  try {
    ServeOn();
  } catch (const std::exception&) {
    // What went wrong first is what is told.
  }
}

void CoordinatorService::ServeOn() {
  // What the machine has to say after each message is sent at once, outside of the lock.
  const auto collect = [&](std::unique_lock<std::mutex>& lock) {
    const std::vector<Outgoing> outgoing = coordinator_.TakeOutgoing();
    std::vector<ClusterEvent> events = coordinator_.TakeEvents();
    for (ClusterEvent& event : events) {
      prepare_(event);
      if (event.kind == ClusterEvent::Kind::kCommitted) ++unhandled_;
    }
    coordinator_.HoldBack(unhandled_ > kMostUnhandled);
    events_.insert(events_.end(), std::make_move_iterator(events.begin()), std::make_move_iterator(events.end()));
    if (!events.empty()) happened_.notify_all();
    lock.unlock();
    for (const Outgoing& message : outgoing) sockets_->Send(message);
  };
  while (true) {
    Milliseconds deadline = 0;
    {
      std::unique_lock lock(mutex_);
      if (stop_) return;
      if (Now() >= coordinator_.deadline()) coordinator_.OnTick(Now());
      deadline = coordinator_.deadline();
      collect(lock);
    }
    sockets_->Receive(deadline - Now(),
                      [&](const std::string& route, const ClusterMessage& message, std::span<const std::byte> bytes) {
                        std::unique_lock lock(mutex_);
                        coordinator_.OnMessage(route, message, bytes, Now());
                        collect(lock);
                      });
    const uint64_t malformed = sockets_->malformed();
    if (malformed > unreadable_) {
      const std::lock_guard lock(mutex_);
      coordinator_.OnUnreadable(malformed - std::exchange(unreadable_, malformed));
    }
  }
}

std::vector<ClusterEvent> CoordinatorService::Await(Milliseconds timeout) {
  std::unique_lock lock(mutex_);
  happened_.wait_for(lock, std::chrono::milliseconds(timeout), [this] { return error_ || !events_.empty(); });
  if (error_) std::rethrow_exception(error_);
  return std::exchange(events_, {});
}

void CoordinatorService::OnHandled() {
  bool again = false;
  {
    const std::lock_guard lock(mutex_);
    again = unhandled_-- == kMostUnhandled + 1;
    coordinator_.HoldBack(unhandled_ > kMostUnhandled);
    if (again) coordinator_.OnTick(Now());
  }
  if (again) sockets_->Wake();
}

void CoordinatorService::Do(const std::function<void(Coordinator&)>& action) {
  {
    const std::lock_guard lock(mutex_);
    action(coordinator_);
  }
  sockets_->Wake();
}

bool CoordinatorService::ended() {
  const std::lock_guard lock(mutex_);
  return coordinator_.ended();
}

}  // namespace crema
