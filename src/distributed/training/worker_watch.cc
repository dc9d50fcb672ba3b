#include "distributed/training/worker_watch.h"

#include <chrono>
#include <utility>

#include "distributed/protocol/environment.h"
#include "distributed/sockets/signals_blocked.h"

namespace crema {

namespace {
constexpr std::chrono::milliseconds kWatchTick(100);
}  // namespace

WorkerWatch::WorkerWatch(std::function<void(const Ending&)> on_stuck) : on_stuck_(std::move(on_stuck)) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { Serve(); });
}

WorkerWatch::~WorkerWatch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WorkerWatch::Begin(Look look) {
  const std::lock_guard lock(mutex_);
  look_ = std::move(look);
}

void WorkerWatch::End(Ending ending) {
  const std::lock_guard lock(mutex_);
  look_ = nullptr;
  ending_ = std::move(ending);
}

void WorkerWatch::Serve() {
  std::optional<Milliseconds> since;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kWatchTick, [this] { return stop_; })) {
    if (!ending_ && look_) ending_ = look_();
    if (!ending_) continue;
    if (!since) since = Now();
    if (Now() - *since < kPatience) continue;
    const Ending ending = *ending_;
    lock.unlock();
    return on_stuck_(ending);
  }
}

}  // namespace crema
