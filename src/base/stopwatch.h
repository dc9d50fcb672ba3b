// How long something takes.
#ifndef CREMA_BASE_STOPWATCH_H_
#define CREMA_BASE_STOPWATCH_H_

#include <chrono>

namespace crema {

// Of a clock that goes on evenly and begins anywhere.
inline double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Stopwatch {
 public:
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  void Restart() { start_ = Clock::now(); }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point start_ = Clock::now();
};

// Writes the seconds of its life to `*seconds`, which must outlive it.
class ScopeTimer {
 public:
  explicit ScopeTimer(double* seconds) : seconds_(seconds) {}
  ~ScopeTimer() { *seconds_ = stopwatch_.Seconds(); }
  ScopeTimer(const ScopeTimer&) = delete;
  ScopeTimer& operator=(const ScopeTimer&) = delete;

 private:
  double* const seconds_;
  const Stopwatch stopwatch_;
};

}  // namespace crema

#endif  // CREMA_BASE_STOPWATCH_H_
