// What a coordinator's program does while its service commits rounds.
#include "distributed/training/coordination.h"

#include <algorithm>
#include <exception>
#include <span>
#include <utility>

#include "distributed/protocol/environment.h"
#include "distributed/training/cluster_settings.h"

namespace crema {

namespace {

constexpr Milliseconds kTick = 100;
constexpr Milliseconds kPlaintextWarningEvery = 60'000;
constexpr uint64_t kLongJournal = 64u << 20;  // bytes

}  // namespace

void Coordination::Tell(const std::string& text, int workers, bool warning) {
  for (Observer* observer : options_.observers) observer->OnCluster(ClusterChanged{text, workers, warning});
}

void Coordination::Serve() {
  const SolverParameter& solver = file_.solver;
  const int first = solver_.iteration();
  if (DueAt(static_cast<uint64_t>(first), solver.test_interval()) && first < solver.max_iter() &&
      (first > 0 || solver.test_initialization())) {
    Do(Test());
  }
  if (holds_) service_->Do([](Coordinator& coordinator) { coordinator.Release(Now()); });  // held at the start
  bool ended = false;
  while (!ended) {
    ended = service_->ended();
    const std::vector<ClusterEvent> events = service_->Await(ended ? 0 : kTick);
    for (const ClusterEvent& event : events) {
      After after = After::kGoOn;
      {
        const std::lock_guard lock(solver_mutex_);
        after = Handle(event);
      }
      Do(after);
      ShortenJournal();
      if (event.kind != ClusterEvent::Kind::kCommitted) continue;
      if (event.held) service_->Do([](Coordinator& coordinator) { coordinator.Release(Now()); });
      service_->OnHandled();
    }
    TakeRequests();
    Tend();
  }
}

void Coordination::Prepare(ClusterEvent& event) {
  if (event.kind != ClusterEvent::Kind::kCommitted) return;
  if (!event.round.among_workers) event.averaging_seconds = math_->reduce_seconds();
  event.journal_seconds = journal_->write_seconds();
  if (updates_net_) return;
  // The math goes on while this event waits. Elsewhere it is in the state.
  if (layout_.velocity == 0) event.velocity = math_->velocity();
}

Coordination::After Coordination::Test() {
  if (steps_.Test(!holds_)) return After::kGoOn;
  return steps_.out_of_patience() ? After::kEnd : After::kStop;
}

void Coordination::Do(After after) {
  if (after == After::kStop) Stop();
  if (after == After::kEnd) {
    service_->Do([](Coordinator& coordinator) { coordinator.Stop("tests became no better", Now()); });
  }
}

Coordination::After Coordination::Handle(const ClusterEvent& event) {
  using Kind = ClusterEvent::Kind;
  workers_ = event.workers;
  if (event.kind == Kind::kCommitted) return OnCommitted(event);
  most_workers_ = std::max(most_workers_, event.workers);
  const bool warning = event.kind != Kind::kJoined && event.kind != Kind::kRecovered && event.kind != Kind::kNotice;
  Tell(event.text, event.workers, warning);
  // What is in the net is of a round that did not count, or is older than what a worker kept.
  if (event.kind == Kind::kRecovered) PutIntoNet(event);
  return After::kGoOn;
}

Coordination::After Coordination::OnCommitted(const ClusterEvent& event) {
  const SolverParameter& solver = file_.solver;
  // Not when it is looked at, which a test may have delayed.
  const double now = static_cast<double>(event.closed) / 1000;
  const double seconds = now - std::exchange(last_commit_, now);
  ++rounds_;
  most_contributions_ = std::max(most_contributions_, event.workers);
  for (const WorkerInRound& worker : event.by_worker) rounds_late_ += worker.late;
  RoundCommitted round;
  round.version = event.version;
  round.iteration = static_cast<int>(event.round.iteration);
  round.steps = static_cast<int>(event.round.steps);
  round.workers = event.workers;
  round.examples = event.examples;
  round.loss = static_cast<float>(event.loss);
  round.seconds = seconds;
  round.opened = event.opened;
  round.closed = event.closed;
  round.averaging_seconds = event.averaging_seconds;
  round.journal_seconds = event.journal_seconds;
  round.among_workers = event.round.among_workers;
  round.by_worker = event.by_worker;
  for (Observer* observer : options_.observers) observer->OnRound(round);
  std::vector<float> outputs = event.outputs;
  outputs.resize(steps_.shown_outputs());
  if (event.round.steps > 0) {
    const double began = std::exchange(last_step_, now);
    const double step = (now - began) / static_cast<double>(event.round.steps);
    for (uint64_t i = 0; i < event.round.steps; ++i) {
      const int iteration = static_cast<int>(event.round.iteration + i);
      steps_.AddLoss(event.loss);
      if (DueAt(static_cast<uint64_t>(iteration), solver.display())) {
        const double ended = began + step * static_cast<double>(i + 1);
        steps_.Display(iteration, outputs, ended - std::exchange(last_display_, ended));
      }
      steps_.EndIteration(iteration, event.loss, step);
    }
  }
  const uint64_t end = event.round.iteration + event.round.steps;
  // Where workers do not wait for each other, others may have come so far already.
  const bool came = event.round.steps > 0;
  const bool last = end >= static_cast<uint64_t>(solver.max_iter());
  const bool snapshot = (came && DueAt(end, solver.snapshot())) || (snapshot_wanted_ && event.held);
  const bool test = came && DueAt(end, solver.test_interval()) && !last && !steps_.out_of_patience();
  if (snapshot || test || last || event.held) PutIntoNet(event);
  if (snapshot) {
    const bool written = steps_.TrySnapshot();
    snapshot_wanted_ = false;
    // By what the snapshot before this one has, too: this one may be damaged by the time it is needed.
    if (written) shorten_to_ = saved_version_;
    saved_iteration_ = end;
    saved_version_ = event.version;
  }
  return test ? Test() : After::kGoOn;
}

void Coordination::ShortenJournal() {
  const uint64_t version = std::exchange(shorten_to_, 0);
  if (version == 0) return;
  try {
    service_->Do([&](Coordinator&) {
      if (journal_->bytes() > kLongJournal) journal_->Shorten(version);
    });
  } catch (const EnvironmentError& error) {
    Tell(std::string("the journal stays long: ") + error.what(), workers_, true);
  } catch (const UserError& error) {
    Tell(std::string("the journal cannot be read: ") + error.what(), workers_, true);
  }
}

// Who did what, and whether it was training together at all.
void Coordination::SumUp() {
  ClusterSummary summary;
  service_->Do([&](Coordinator& coordinator) { summary = coordinator.Summary(Now()); });
  const int wanted = std::max(ExpectedWorkers(settings_), MinWorkers(settings_));
  // Where nobody waits, each result mostly comes alone, and what counts is whether there were those of several.
  const auto brought = std::count_if(summary.workers.begin(), summary.workers.end(),
                                     [](const ClusterSummary::Worker& worker) { return worker.rounds > 0; });
  const bool apart = settings_.mode() == DistributedParameter::STALE ? brought < 2 : most_contributions_ < 2;
  if (rounds_ > 0 && apart && wanted > 1) {
    summary.warning = "no round averaged more than one worker's results, though " + std::to_string(wanted) +
                      " workers were expected: this was training by one machine. ";
    if (most_workers_ < 2) {
      summary.warning +=
          "There were never two at a time: look above, and in the workers' logs, for why the others did not join or "
          "left (address, keys, data). With min_workers: 2 training waits for them";
    } else if (rounds_late_ > 0) {
      summary.warning += "Of " + std::to_string(rounds_) + " rounds all but one worker's results came late: raise " +
                         "straggler_factor, or set it to 0 so that rounds wait for all";
    } else {
      summary.warning += "Up to " + std::to_string(most_workers_) +
                         " were there, but not for a whole round, or their values could not be used: look above for "
                         "why they left";
    }
  }
  for (Observer* observer : options_.observers) observer->OnClusterEnd(summary);
}

void Coordination::PutIntoNet(const ClusterEvent& event) {
  SetState(steps_, layout_, event.state);
  cluster_state_.set_job(job_);
  cluster_state_.set_version(event.version);
  cluster_state_.set_next_step(event.next_step);
  cluster_state_.set_carried(event.carried);
  cluster_state_.clear_unused();
  for (const Steps& steps : event.unused) {
    StepRange& range = *cluster_state_.add_unused();
    range.set_first(steps.first);
    range.set_count(steps.count);
  }
  cluster_state_.clear_velocity();
  const std::span<const float> velocity =
      layout_.velocity > 0 ? VelocityIn(layout_, event.state) : std::span<const float>(event.velocity);
  for (const float value : velocity) cluster_state_.add_velocity(value);
  steps_.SetIteration(static_cast<int>(event.round.iteration + event.round.steps), event.next_step);
}

void Coordination::TakeRequests() {
  const SolverAction action = options_.requested_action ? options_.requested_action() : SolverAction::kNone;
  if (action == SolverAction::kSnapshot) {
    snapshot_wanted_ = true;
    service_->Do([](Coordinator& coordinator) { coordinator.HoldAfterHistory(); });
  }
  if (action == SolverAction::kStop) Stop();
}

SolverAction Coordination::RequestedAction() {
  if (waits_for_room_) {
    bool end = false;
    try {
      // Of strangers, mostly.
      for (const ClusterEvent& event : service_->Await(0)) {
        Tell(event.text, event.workers, event.kind != ClusterEvent::Kind::kNotice);
      }
    } catch (const std::exception&) {
      // Nobody is answered any more, but what was learnt still waits for room.
    }
    service_->Do([&](Coordinator& coordinator) { end = coordinator.TakeEndWithoutRoom(); });
    TellLines();
    if (end) return SolverAction::kStop;
  }
  return options_.requested_action();
}

// A test that is asked to stop has taken the request.
void Coordination::Stop() {
  const bool again = std::exchange(stopping_, true);
  Tell(again ? "stopping at once" : "stopping when the round is done; once more to stop at once", workers_, false);
  service_->Do([again](Coordinator& coordinator) {
    if (again) {
      coordinator.Stop("stopped", Now());
    } else {
      coordinator.Drain("stopped", Now());
    }
  });
}

void Coordination::TendLocal() {
  const auto wanted = [this] {
    bool ending = false;
    service_->Do([&](Coordinator& c) { ending = c.phase() == Coordinator::Phase::kEnding; });
    return !ending;
  };
  const auto on_end = [this](const std::string& name) {
    service_->Do([&](Coordinator& c) { c.Lose(name, ServerSockets::RoutesOf(kLocalSocket), Now()); });
  };
  if (!wanted()) return local_->Wind(0, on_end);
  try {
    for (const std::string& line : local_->Tend(Now(), on_end, wanted)) Tell(line, workers_, true);
  } catch (const UserError& error) {
    service_->Do(
        [&](Coordinator& c) { c.Fail(error.diagnostics().front().message, Now(), Coordinator::Failure::kMistake); });
  } catch (const EnvironmentError& error) {
    service_->Do([&](Coordinator& c) { c.Fail(error.what(), Now()); });
  }
}

void Coordination::TellLines() {
  std::vector<std::string> lines;
  {
    const std::lock_guard lock(lines_mutex_);
    lines.swap(lines_);
  }
  for (const std::string& line : lines) Tell(line, workers_, true);
}

void Coordination::Tend() {
  if (local_ && !service_->ended()) TendLocal();
  TellLines();
  if (!settings_.endpoint().empty() && protection_ == Protection::kNone && !IsLocal(settings_.endpoint()) &&
      Now() - warned_plaintext_ >= kPlaintextWarningEvery) {
    warned_plaintext_ = Now();
    Tell(PlaintextWarning(settings_.endpoint()), workers_, true);
  }
}

}  // namespace crema
