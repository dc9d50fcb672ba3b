#include "distributed/training/worker_threads.h"

#include <pthread.h>

#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "crema/error.h"
#include "distributed/sockets/signals_blocked.h"

namespace crema {

WorkerThreads::WorkerThreads(size_t count, Work work) : LocalWorkers(count), work_(std::move(work)), threads_(count) {
  try {
    StartAll();
  } catch (...) {
    Stop();
    throw;
  }
}

WorkerThreads::~WorkerThreads() { Stop(); }

void WorkerThreads::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  for (Thread& thread : threads_) {
    if (thread.thread.joinable()) thread.thread.join();
  }
}

void WorkerThreads::Start(size_t index) {
  const SignalsBlocked blocked;
  try {
    threads_[index].thread = std::thread([this, index] { Run(index); });
  } catch (const std::system_error& error) {
    throw EnvironmentError(std::string("cannot start a worker: ") + error.what());
  }
}

std::optional<LocalWorkers::End> WorkerThreads::TakeEnd(size_t index) {
  Thread& thread = threads_[index];
  std::optional<End> end;
  {
    const std::lock_guard lock(mutex_);
    end.swap(thread.end);
  }
  if (end) thread.thread.join();
  return end;
}

void WorkerThreads::Run(size_t index) {
  // What debuggers and profilers show.
  pthread_setname_np(pthread_self(), NameOf(index).c_str());
  End end = WorkOf(index);
  const std::lock_guard lock(mutex_);
  threads_[index].end = std::move(end);
}

LocalWorkers::End WorkerThreads::WorkOf(size_t index) {
  const auto asked_to_stop = [this] {
    const std::lock_guard lock(mutex_);
    return stop_;
  };
  try {
    return {"ended (" + work_(index, NameOf(index), asked_to_stop) + ")"};
  } catch (const UserError& error) {
    return {std::string("failed (") + error.what() + ")", true};
  } catch (const std::bad_alloc&) {
    return {"failed (there is not enough memory)"};
  } catch (const std::exception& error) {
    return {std::string("failed (") + error.what() + ")"};
  }
}

}  // namespace crema
