// Turns SIGINT, SIGTERM and SIGHUP into requests to a running solver.
#ifndef CREMA_SOLVER_SIGNALS_H_
#define CREMA_SOLVER_SIGNALS_H_

#include <csignal>
#include <cstddef>
#include <memory>
#include <string>

#include "crema/solver.h"

namespace crema {

// "stop", "snapshot" or "none"; anything else is a UserError that names `flag`.
SolverAction SignalEffect(const std::string& flag, const std::string& value);

// While it lives, the signals set a flag; kNone ignores the signal. SIGTERM acts as SIGINT. Where SIGINT means kStop
// and nobody takes it (the thread that computes waits for a file that does not answer, for one), a second SIGINT writes
// to stderr what a third one does: it ends the process. So does SIGTERM that comes a second or more after another
// request. SIGPIPE is ignored from then on, to the end of the process: Ctrl-C ends the `tee` that reads the log, too,
// and no training ends for its log. At most one object at a time in a process: signal handlers are the process's. Made
// and destroyed by the thread that computes.
class SignalActions {
 public:
  SignalActions(SolverAction on_interrupt, SolverAction on_hangup);
  // Puts the handlers back that were there before, but for that of SIGPIPE.
  ~SignalActions();
  SignalActions(const SignalActions&) = delete;
  SignalActions& operator=(const SignalActions&) = delete;

  // For a process that mpirun started, once MPI runs. SIGUSR1 then acts as SIGHUP and SIGUSR2 as SIGINT: mpirun passes
  // these two on, and on the others ends all. Takes the others again, too: libraries of MPI have handlers of their own
  // (UCX one of SIGHUP).
  void TakeLaunchedSignals();

  // The action of a signal that came since the last call, or kNone; a snapshot asked for comes before a stop.
  SolverAction Take();

 private:
  SolverAction on_interrupt_, on_hangup_;
  struct sigaction before_interrupt_, before_terminate_, before_hangup_, before_user_1_, before_user_2_;
  bool takes_user_signals_ = false;
  // Handlers run here: oneDNN's kernels use the stack pointer for other things, and a handler on the stack of the
  // thread that they interrupt would write into whatever memory that points to.
  std::unique_ptr<std::byte[]> stack_;
  stack_t before_stack_ = {};
};

}  // namespace crema

#endif  // CREMA_SOLVER_SIGNALS_H_
