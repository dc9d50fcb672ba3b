#include "mpi/messenger.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "crema/error.h"

namespace crema::mpi {

namespace {

using Clock = std::chrono::steady_clock;

// Between two looks at operations that nobody moves: at once at first, for the answer may be on its way, then seldom
// enough to leave the processor to those who compute.
void Pause(Clock::duration waited) {
  using std::chrono::microseconds;
  if (waited < microseconds(100)) {
    sched_yield();
  } else if (waited < microseconds(50000)) {
    std::this_thread::sleep_for(microseconds(20));
  } else {
    std::this_thread::sleep_for(microseconds(200));
  }
}

}  // namespace

void CheckMpi(int result, const char* what) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw EnvironmentError(std::string(what) + " by MPI failed: " + text);
}

Messenger::Messenger() {
  // Signals are for the thread that trains.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this] { Serve(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return begun_ || failure_; });
  if (!failure_) return;
  lock.unlock();
  thread_.join();
  std::rethrow_exception(failure_);
}

Messenger::~Messenger() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  given_.notify_all();
  thread_.join();
}

uint64_t Messenger::Start(std::function<MPI_Request()> start) {
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = ++started_;
    starts_.emplace_back(number, std::move(start));
  }
  given_.notify_one();
  return number;
}

void Messenger::Await(uint64_t operation) {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return complete_ >= operation || failure_ || abandoned_; });
  if (failure_) std::rethrow_exception(failure_);
}

void Messenger::Run(std::function<void()> work) {
  Await(Start([&work] {
    work();
    return MPI_REQUEST_NULL;
  }));
}

void Messenger::Abandon() {
  std::unique_lock lock(mutex_);
  if (complete_ == started_) return;
  abandoned_ = true;
  given_.notify_one();
  // What is under way uses memory that is given back next.
  done_.wait(lock, [this] { return idle_; });
}

void Messenger::Abort(int exit_code) {
  {
    const std::lock_guard lock(mutex_);
    abort_code_ = exit_code;
  }
  given_.notify_one();
  // The thread does not come back from it.
  std::this_thread::sleep_for(std::chrono::seconds(30));
  _exit(exit_code);
}

void Messenger::Fail(std::exception_ptr failure) {
  {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
  }
  done_.notify_all();
}

void Messenger::Begin() {
  int already = 0, provided = MPI_THREAD_SINGLE;
  MPI_Initialized(&already);
  if (already) throw EnvironmentError("engine: MPI: this process uses MPI already, and it can be begun only once");
  CheckMpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "beginning");
  if (provided < MPI_THREAD_FUNNELED) {
    MPI_Finalize();
    throw EnvironmentError("engine: MPI: this MPI knows nothing of threads (MPI_THREAD_FUNNELED); use another one");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

void Messenger::Serve() {
  prctl(PR_SET_TIMERSLACK, 1000UL);  // nanoseconds: sleeps are as short as Pause says
  try {
    Begin();
  } catch (...) {
    return Fail(std::current_exception());
  }
  std::unique_lock lock(mutex_);
  begun_ = true;
  done_.notify_all();
  Clock::time_point moved = Clock::now();
  while (true) {
    if (active_.empty()) {
      given_.wait(lock, [this] { return stop_ || abandoned_ || abort_code_ >= 0 || !starts_.empty(); });
      moved = Clock::now();
    }
    if (abort_code_ >= 0) MPI_Abort(MPI_COMM_WORLD, abort_code_);
    if (abandoned_ || failure_) {
      starts_.clear();
      active_.clear();
      idle_ = true;
      done_.notify_all();
      given_.wait(lock, [this] { return stop_ || abort_code_ >= 0 || !starts_.empty(); });
      if (stop_) return;  // MPI cannot be ended: what was under way would have to come to its end
      continue;
    }
    if (stop_ && starts_.empty() && active_.empty()) break;
    Starts starts;
    starts.swap(starts_);
    lock.unlock();
    try {
      for (auto& [number, start] : starts) active_.push_back({number, start()});
      if (TestAll() || !starts.empty()) {
        moved = Clock::now();
      } else {
        Pause(Clock::now() - moved);
      }
    } catch (...) {
      Fail(std::current_exception());
    }
    lock.lock();
  }
  lock.unlock();
  MPI_Finalize();
}

bool Messenger::TestAll() {
  bool moved = false;
  for (Operation& operation : active_) {
    if (operation.request == MPI_REQUEST_NULL) continue;
    int done = 0;
    CheckMpi(MPI_Test(&operation.request, &done, MPI_STATUS_IGNORE), "a sum or exchange");
    moved |= done != 0;
  }
  // In order: the number of the last one tells of all before it.
  size_t complete = 0;
  while (complete < active_.size() && active_[complete].request == MPI_REQUEST_NULL) ++complete;
  if (complete == 0) return moved;
  const uint64_t number = active_[complete - 1].number;
  {
    const std::lock_guard lock(mutex_);
    active_.erase(active_.begin(), active_.begin() + static_cast<std::ptrdiff_t>(complete));
    complete_ = number;
  }
  done_.notify_all();
  return true;
}

}  // namespace crema::mpi
