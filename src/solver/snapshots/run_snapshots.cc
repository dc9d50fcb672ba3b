#include "solver/snapshots/run_snapshots.h"

#include <chrono>
#include <thread>
#include <utility>

#include "solver/nets.h"

namespace crema {

namespace {

constexpr int kSecondsBetweenAttempts = 5;  // to write what is still to be written at the end

}  // namespace

RunSnapshots::RunSnapshots(const SolverParameter& param, const SolverOptions& options)
    : param_(param),
      options_(options),
      prefix_(SnapshotPrefix(param, options)),
      kept_(prefix_, param.snapshot_keep()) {}

void RunSnapshots::Prepare() const {
  if (prefix_.empty()) throw EnvironmentError("no snapshot can be written: snapshot_prefix is not set");
  ReturnToFolder(started_in_);
}

void RunSnapshots::Write(const NetParameter& model, SolverState state, const std::vector<StoredHistory>& history,
                         const std::string& ema_path, const Stopwatch& watch) {
  kept_.List(&state);
  const int iteration = state.iter();
  const WrittenFiles files = WriteSnapshot(prefix_, model, std::move(state), history, format());
  SnapshotWritten written;
  written.iteration = iteration;
  written.model_path = ModelPath(prefix_, iteration, format());
  written.state_path = StatePath(prefix_, iteration, format());
  written.bytes = files.bytes;
  written.seconds = watch.Seconds();
  written.ema_path = ema_path;
  iteration_ = iteration;
  last_ = written.state_path;
  for (Observer* observer : options_.observers) observer->OnSnapshot(written);
  WarnOfLeftover(kept_.Add(iteration, files.state_crc32));
}

void RunSnapshots::Restore(const LoadedState& loaded) {
  iteration_ = loaded.state.iter();
  WarnOfLeftover(kept_.Restore(loaded));
}

void RunSnapshots::WarnOfLeftover(const std::string& failures) const {
  if (failures.empty()) return;
  Warn("an old snapshot stays, although snapshot_keep is " + std::to_string(param_.snapshot_keep()) +
       ", since it cannot be removed: " + failures);
}

std::string RunSnapshots::LastInWords() const { return last_.empty() ? "" : " The last snapshot is " + last_ + "."; }

bool RunSnapshots::Try(int iteration, const std::function<void()>& write) {
  try {
    write();
    return true;
  } catch (const NotFinite&) {
    throw;
  } catch (const EnvironmentError& error) {
    ++failures_;
    failure_ = error.what();
    for (Observer* observer : options_.observers) observer->OnSnapshotFailed({iteration, failure_});
    return false;
  }
}

bool RunSnapshots::TrySnapshot(int iteration, const std::function<void()>& write) {
  const bool written = Try(iteration, write);
  if (!written) failed_iteration_ = iteration;
  return written;
}

bool RunSnapshots::TrySnapshotAtEnd(int iteration, const std::function<void()>& write) {
  const bool failed_before = failed_at(iteration);
  if (TrySnapshot(iteration, write)) return true;
  if (!TryWhenThereIsRoom("what was learnt since the last snapshot is in memory only: the snapshot is", write)) {
    return false;
  }
  failures_ -= failed_before;
  return true;
}

bool RunSnapshots::TryWhenThereIsRoom(const std::string& what, const std::function<void()>& write) {
  if (prefix_.empty() || !options_.requested_action || ends_without_room_) return false;
  Warn("training is over, and " + what + " tried again every " + std::to_string(kSecondsBetweenAttempts) +
       " s until it can be written. Make room, or its folder where that is gone, or stop the training once more to end "
       "without it");
  bool written = false;
  while (!written) {
    if (on_waiting_for_room_) on_waiting_for_room_(failure_);
    Stopwatch waited;
    SolverAction asked = SolverAction::kNone;
    while (asked == SolverAction::kNone && waited.Seconds() < kSecondsBetweenAttempts) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      asked = options_.requested_action();
    }
    ends_without_room_ = asked == SolverAction::kStop;
    if (ends_without_room_) break;
    try {
      ReturnToFolder(started_in_);
      write();
      written = true;
    } catch (const EnvironmentError& error) {
      failure_ = error.what();
    }
  }
  if (on_waiting_for_room_) on_waiting_for_room_("");
  failures_ -= written;
  return written;
}

void RunSnapshots::set_on_waiting_for_room(std::function<void(const std::string& failure)> told) {
  on_waiting_for_room_ = std::move(told);
}

void RunSnapshots::Warn(std::string message) const {
  const Diagnostic warning{Diagnostic::Severity::kWarning, {}, std::move(message)};
  for (Observer* observer : options_.observers) observer->OnNotice(warning);
}

}  // namespace crema
