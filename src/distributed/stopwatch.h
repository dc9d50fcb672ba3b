// How long something took that the protocol only knows to have happened.
#ifndef CREMA_DISTRIBUTED_STOPWATCH_H_
#define CREMA_DISTRIBUTED_STOPWATCH_H_

#include <chrono>

namespace crema {

// Writes the seconds of its life to `*seconds`, which must outlive it.
class Stopwatch {
 public:
  explicit Stopwatch(double* seconds) : seconds_(seconds), begin_(Clock::now()) {}
  ~Stopwatch() { *seconds_ = std::chrono::duration<double>(Clock::now() - begin_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  double* const seconds_;
  const Clock::time_point begin_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_STOPWATCH_H_
