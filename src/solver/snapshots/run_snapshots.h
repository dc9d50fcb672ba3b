// The snapshots that a run writes: the last of them, those that could not be written, and trying again at the end.
#ifndef CREMA_SOLVER_SNAPSHOTS_RUN_SNAPSHOTS_H_
#define CREMA_SOLVER_SNAPSHOTS_RUN_SNAPSHOTS_H_

#include <functional>
#include <string>
#include <vector>

#include "base/stopwatch.h"
#include "base/working_directory.h"
#include "crema/solver.h"
#include "solver/snapshots/kept_snapshots.h"
#include "solver/snapshots/snapshot.h"

namespace crema {

// What is in a snapshot is the solver's to say. Failures of other files that it writes count here, too.
class RunSnapshots {
 public:
  // Tells options.observers. Both must outlive this.
  RunSnapshots(const SolverParameter& param, const SolverOptions& options);

  // Of their paths; empty: none can be written.
  const std::string& prefix() const { return prefix_; }
  SnapshotFormat format() const { return param_.snapshot_format(); }

  // Goes to the folder that the prefix begins in, where that is not there any more. Throws EnvironmentError without a
  // prefix.
  void Prepare() const;
  // As WriteSnapshot, of state.iter(), and removes what snapshot_keep leaves no place for; begun at `watch`.
  void Write(const NetParameter& model, SolverState state, const std::vector<StoredHistory>& history,
             const std::string& ema_path, const Stopwatch& watch);
  // The run goes on from this one.
  void Restore(const LoadedState& loaded);

  // Of the last one that was written or restored; -1: there is none.
  int iteration() const { return iteration_; }
  // By another process.
  void set_iteration(int iteration) { iteration_ = iteration; }
  // Path of the state that was written last; empty without one.
  const std::string& last() const { return last_; }
  // That, for the end of a message.
  std::string LastInWords() const;

  // Calls `write`, which writes a file after that iteration. An EnvironmentError, but no NotFinite, is told and
  // counted: then it is false.
  bool Try(int iteration, const std::function<void()>& write);
  // The same, of a snapshot.
  bool TrySnapshot(int iteration, const std::function<void()>& write);
  // The same, where no other snapshot follows: if it cannot be written, and somebody can ask for a stop, this waits and
  // tries again until it can, or until they do.
  bool TrySnapshotAtEnd(int iteration, const std::function<void()>& write);
  // Of what could not be written: warns of `what` that is tried again, and calls `write` until it throws no
  // EnvironmentError, which then does not count any more. False where nobody can ask for a stop, or somebody does,
  // which holds for all that is still to be written.
  bool TryWhenThereIsRoom(const std::string& what, const std::function<void()>& write);

  int failures() const { return failures_; }
  // Whether the last snapshot that failed was of that iteration.
  bool failed_at(int iteration) const { return failed_iteration_ == iteration; }

  // Told why something cannot be written, again and again while room for it is waited for; then of "", once.
  void set_on_waiting_for_room(std::function<void(const std::string& failure)> told);

 private:
  void Warn(std::string message) const;
  void WarnOfLeftover(const std::string& failures) const;

  const SolverParameter& param_;
  const SolverOptions& options_;
  const std::string prefix_;
  const std::string started_in_ = WorkingDirectory();  // what a relative prefix begins in
  KeptSnapshots kept_;
  int iteration_ = -1;
  std::string last_;
  int failures_ = 0;
  int failed_iteration_ = -1;
  std::string failure_;             // of the last file that could not be written
  bool ends_without_room_ = false;  // somebody said so
  std::function<void(const std::string& failure)> on_waiting_for_room_;
};

}  // namespace crema

#endif  // CREMA_SOLVER_SNAPSHOTS_RUN_SNAPSHOTS_H_
