#include "solver/ranks/rank_threads.h"

#include <string>
#include <system_error>

#include "base/compute_threads.h"
#include "crema/error.h"
#include "device/communicator.h"

namespace crema {

RankThreads::RankThreads(int ranks, int compute_threads, std::function<void()> abort)
    : abort_(std::move(abort)), failures_(ranks) {
  try {
    for (int rank = 1; rank < ranks; ++rank) {
      threads_.emplace_back([this, rank, compute_threads] { Serve(rank, compute_threads); });
    }
  } catch (const std::system_error& error) {
    Stop();
    throw EnvironmentError(std::string("cannot start a thread for each device: ") + error.what());
  }
}

RankThreads::~RankThreads() { Stop(); }

void RankThreads::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  given_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void RankThreads::Serve(int rank, int compute_threads) {
  UseComputeThreads(compute_threads);  // of this thread alone
  std::unique_lock lock(mutex_);
  for (uint64_t served = 0;; ++served) {
    given_.wait(lock, [&] { return stop_ || rounds_ > served; });
    if (stop_) return;
    lock.unlock();
    Do(rank);
    lock.lock();
    if (--busy_ == 0) done_.notify_one();
  }
}

void RankThreads::Do(int rank) {
  try {
    (*work_)(rank);
  } catch (const Aborted&) {
    failures_[rank] = std::current_exception();
  } catch (...) {
    failures_[rank] = std::current_exception();
    abort_();
  }
}

void RankThreads::Run(const std::function<void(int rank)>& work) {
  if (failure_) std::rethrow_exception(failure_);
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    busy_ = threads_.size();
    ++rounds_;
  }
  given_.notify_all();
  Do(0);
  {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
  }
  for (const std::exception_ptr& failure : failures_) {
    if (!failure) continue;
    if (!failure_) failure_ = failure;
    try {
      std::rethrow_exception(failure);
    } catch (const Aborted&) {
    } catch (...) {
      failure_ = failure;
      break;
    }
  }
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace crema
