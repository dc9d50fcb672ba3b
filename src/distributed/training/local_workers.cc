#include "distributed/training/local_workers.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "crema/error.h"

namespace crema {

namespace {

constexpr int kMostDeaths = 5;
// A worker that ran for so long is forgiven what went before.
constexpr int64_t kForgiveAfter = 60'000;

}  // namespace

LocalWorkers::LocalWorkers(size_t count) : workers_(count) {}

void LocalWorkers::StartAll() {
  for (size_t i = 0; i < count(); ++i) {
    Start(i);
    workers_[i].running = true;
  }
}

std::optional<LocalWorkers::End> LocalWorkers::Look(size_t index, const OnEnd& on_end) {
  Worker& worker = workers_[index];
  std::optional<End> end = worker.running ? TakeEnd(index) : std::nullopt;
  if (!end) return end;
  worker.running = false;
  if (on_end) on_end(NameOf(index));
  return end;
}

std::vector<std::string> LocalWorkers::Tend(int64_t now_ms, const OnEnd& on_end, const std::function<bool()>& wanted) {
  std::vector<std::string> told;
  for (size_t i = 0; i < count(); ++i) {
    Worker& worker = workers_[i];
    if (worker.started < 0) worker.started = now_ms;
    if (const std::optional<End> end = Look(i, on_end)) {
      if (wanted && !wanted()) return told;
      if (now_ms - worker.started > kForgiveAfter) worker.deaths = 0;
      ++worker.deaths;
      const std::string what = "worker " + NameOf(i) + " " + end->how;
      if (end->hopeless) throw UserError(what);
      if (worker.deaths >= kMostDeaths) {
        throw EnvironmentError(what + ", for the " + std::to_string(worker.deaths) + "th time in a row");
      }
      told.push_back(what + " and is started again");
      worker.restart_at = now_ms + (500LL << (worker.deaths - 1));
    }
    if (!worker.running && now_ms >= worker.restart_at) {
      Start(i);
      worker.running = true;
      worker.started = now_ms;
    }
  }
  return told;
}

void LocalWorkers::Wind(int64_t timeout_ms, const OnEnd& on_end) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (true) {
    for (size_t i = 0; i < count(); ++i) Look(i, on_end);
    if (std::none_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.running; })) return;
    if (std::chrono::steady_clock::now() >= end) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace crema
