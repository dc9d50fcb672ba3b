// Keeps signals from threads.
#ifndef CREMA_DISTRIBUTED_SOCKETS_SIGNALS_BLOCKED_H_
#define CREMA_DISTRIBUTED_SOCKETS_SIGNALS_BLOCKED_H_

#include <pthread.h>
#include <signal.h>

namespace crema {

// While it lives the calling thread gets no signals; threads that it starts, and those that they start, never do. A
// handler must not run on the stack of a thread that computes (solver/signals.h), and must not interrupt a wait.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SOCKETS_SIGNALS_BLOCKED_H_
