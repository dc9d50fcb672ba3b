#include "solver/signals.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <string_view>

#include "base/check.h"
#include "base/suggest.h"

namespace crema {

namespace {

// Holds what the kernel saves of AVX-512 and AMX registers, several times over.
constexpr size_t kStackBytes = size_t{1} << 17;

constexpr std::string_view kOnceMore =
    "\nThe step under way has not come to its end yet; Ctrl-C once more ends all at once, without a snapshot\n";

constexpr std::string_view kTerminated =
    "\nSIGTERM once more, and the step under way has not come to its end: ended without a snapshot\n";

// What handlers touch; lock-free atomics are safe there.
std::atomic<bool> interrupted{false}, hung_up{false}, in_use{false}, may_insist{false};
std::atomic<int> untaken_interrupts{0};
std::atomic<int64_t> first_untaken{0};  // when that came; 0: none
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);

// Programs that end others (timeout) send SIGTERM to the process and to its group, which is no second request.
constexpr int64_t kSecondRequestAfter = 1000;

int64_t Milliseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// Not where that would wait, for a reader of a pipe that reads no longer.
void SayAtOnce(std::string_view text) {
  pollfd place = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (poll(&place, 1, 0) != 1 || (place.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

// When the handler returns.
void EndBy(int signal) {
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void Insist() {
  const int count = untaken_interrupts.fetch_add(1) + 1;
  if (count == 2) SayAtOnce(kOnceMore);
  if (count >= 3) EndBy(SIGINT);
}

void InsistByTerminating() {
  const int64_t first = first_untaken;
  if (first == 0 || Milliseconds() - first < kSecondRequestAfter) return;
  SayAtOnce(kTerminated);
  EndBy(SIGTERM);
}

void HandleSignal(int signal) {
  const int error = errno;
  const bool hangs_up = signal == SIGHUP || signal == SIGUSR1;
  (hangs_up ? hung_up : interrupted).store(true);
  if (signal == SIGINT && may_insist) Insist();
  if (signal == SIGTERM && may_insist) InsistByTerminating();
  if (!hangs_up && first_untaken == 0) first_untaken = Milliseconds();
  errno = error;
}

void Install(int signal, struct sigaction* before) {
  struct sigaction action = {};
  action.sa_handler = HandleSignal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigaction(signal, &action, before);
}

}  // namespace

SolverAction SignalEffect(const std::string& flag, const std::string& value) {
  if (value == "stop") return SolverAction::kStop;
  if (value == "snapshot") return SolverAction::kSnapshot;
  if (value == "none") return SolverAction::kNone;
  throw UserError("unknown " + flag + " \"" + value + "\"" + DidYouMean(value, {"stop", "snapshot", "none"}) +
                  "; it may be stop, snapshot or none");
}

SignalActions::SignalActions(SolverAction on_interrupt, SolverAction on_hangup)
    : on_interrupt_(on_interrupt), on_hangup_(on_hangup), stack_(new std::byte[kStackBytes]) {
  CREMA_CHECK(!in_use.exchange(true)) << "two SignalActions in one process";
  interrupted.store(false);
  hung_up.store(false);
  untaken_interrupts.store(0);
  first_untaken.store(0);
  may_insist.store(on_interrupt == SolverAction::kStop);
  stack_t own = {};
  own.ss_sp = stack_.get();
  own.ss_size = kStackBytes;
  CREMA_CHECK(sigaltstack(&own, &before_stack_) == 0);
  Install(SIGINT, &before_interrupt_);
  Install(SIGTERM, &before_terminate_);
  Install(SIGHUP, &before_hangup_);
  std::signal(SIGPIPE, SIG_IGN);
}

SignalActions::~SignalActions() {
  sigaction(SIGINT, &before_interrupt_, nullptr);
  sigaction(SIGTERM, &before_terminate_, nullptr);
  sigaction(SIGHUP, &before_hangup_, nullptr);
  if (takes_user_signals_) {
    sigaction(SIGUSR1, &before_user_1_, nullptr);
    sigaction(SIGUSR2, &before_user_2_, nullptr);
  }
  sigaltstack(&before_stack_, nullptr);
  in_use.store(false);
}

void SignalActions::TakeLaunchedSignals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) Install(signal, nullptr);
  if (takes_user_signals_) return;
  takes_user_signals_ = true;
  Install(SIGUSR1, &before_user_1_);
  Install(SIGUSR2, &before_user_2_);
}

SolverAction SignalActions::Take() {
  const auto take = [&](SolverAction wanted) {
    if (on_hangup_ == wanted && hung_up.exchange(false)) return true;
    if (on_interrupt_ != wanted || !interrupted.exchange(false)) return false;
    untaken_interrupts.store(0);
    first_untaken.store(0);
    return true;
  };
  if (take(SolverAction::kSnapshot)) return SolverAction::kSnapshot;
  if (take(SolverAction::kStop)) return SolverAction::kStop;
  return SolverAction::kNone;
}

}  // namespace crema
