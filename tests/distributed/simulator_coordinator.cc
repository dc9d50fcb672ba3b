// The coordinator's process and its disk.
#include <algorithm>

#include "crema/error.h"
#include "distributed/journal/digest.h"
#include "distributed/journal/journal_replay.h"
#include "distributed/simulator_run.h"

namespace crema {

namespace {

// Coordinators wait that long before they try to write to a full disk again.
constexpr Milliseconds kRetriesJournal = 2000;

// Of "worker 4 joined in place 8" and "worker 4 (place 8) was ...".
size_t MachineOf(const std::string& text) { return std::stoul(text.substr(text.find(' ') + 1)); }
uint64_t PlaceOf(const std::string& text) {
  const std::string before = "place ";
  return std::stoull(text.substr(text.find(before) + before.size()));
}

}  // namespace

void Simulation::Write(const JournalRecord& record) {
  if (now_ < journal_fails_until_) throw EnvironmentError("no space left on device");
  if (crash_ == Fault::kBeforeJournal) throw Crash();
  if (record.has_start()) CheckLostRounds(record.start());
  int ready = 0;
  if (record.has_commit()) {
    const ClusterStatus status = coordinator_->Status(now_);
    for (const ClusterStatus::Worker& worker : status.worker()) ready += worker.state() != "joining";
    ++report_.commits;
    CheckClocks(&record);
  }
  audit_.OnRecord(record, ready, options_.coordinator.min_workers);
  journal_.push_back(record);
  if (crash_ == Fault::kAfterJournal) throw Crash();
}

// Who may be how far ahead: whoever joins begins where the slowest is.
void Simulation::CheckClocks(const JournalRecord* record) {
  const CoordinatorOptions& options = options_.coordinator;
  if (!options.stale) return;
  const ClusterStatus status = coordinator_->Status(now_);
  std::vector<uint64_t> ready;
  for (const ClusterStatus::Worker& worker : status.worker()) {
    if (worker.state() != "joining") ready.push_back(worker.member());
  }
  audit_.OnReady(ready);
  if (record) report_.most_ahead = std::max(report_.most_ahead, audit_.OnShares(record->commit(), options.staleness));
}

// A round that was announced is lost only with all who had its parameters.
void Simulation::CheckLostRounds(const JournalRecord::Start& start) const {
  if (start.version() >= audit_.version() || disturbed_ > started_ || options_.bytes_per_second > 0) return;
  for (size_t i = 0; i < machines_.size(); ++i) {
    const Machine& machine = machines_[i];
    if (!machine.worker || machine.disturbed > started_ - 2 * options_.timing.dead) continue;
    if (machine.worker->version() > start.version() &&
        audit_.Counts(machine.worker->version(), machine.worker->digest())) {
      throw Violation("round " + std::to_string(machine.worker->version()) + " was lost though machine " +
                      std::to_string(i) + " had it");
    }
  }
}

// Links that broke are no reason to make no progress for long.
void Simulation::CheckStalled(const std::string& text) const {
  constexpr Milliseconds kLongestPatience = 45'000;  // after the longest faults of RandomSchedule
  if (text.find("made no progress") == std::string::npos || options_.bytes_per_second > 0) return;
  const size_t machine = MachineOf(text);
  const Milliseconds unsteady = std::max({machines_[machine].unsteady, disturbed_, started_, journal_fails_until_});
  if (now_ > unsteady + kLongestPatience) throw Violation(text);
}

// Nobody is called dead for a coordinator that stood still.
void Simulation::CheckSilent(const std::string& text) const {
  if (text.find("was not heard of") == std::string::npos || options_.bytes_per_second > 0) return;
  const Machine& machine = machines_[MachineOf(text)];
  if (machine.place != PlaceOf(text)) return;  // a process that it had before
  // What was wrong before it stood still is found out afterwards.
  const Milliseconds soon = 2 * options_.timing.dead;
  const Milliseconds since = (now_ > paused_until_ + soon ? now_ : paused_since_) - soon;
  if (machine.worker && machine.began < since && machine.disturbed < since) throw Violation(text);
}

// A member that could be reached knows when training has ended.
void Simulation::CheckTold(int index) {
  const Machine& machine = machines_[static_cast<size_t>(index)];
  if (!over_ || machine.epoch != epoch_) return;
  ++report_.orphans;
  // Whoever was refused for want of a place was none.
  const bool was_member = options_.coordinator.max_workers >= options_.machines;
  const Milliseconds quiet = report_.coordinator_ended - 2 * options_.timing.dead;
  if (!was_member || options_.bytes_per_second > 0 || std::max(machine.disturbed, disturbed_) > quiet) return;
  throw Violation("machine " + std::to_string(index) + " was not told that training has ended");
}

void Simulation::WithCoordinator(const std::function<void(Coordinator&)>& call) {
  if (!coordinator_) return;
  try {
    call(*coordinator_);
  } catch (const Crash&) {
    return KillCoordinator(crash_back_);
  }
  AfterCoordinator();
}

void Simulation::AfterCoordinator() {
  for (ClusterEvent& event : coordinator_->TakeEvents()) OnClusterEvent(std::move(event));
  size_t last = SIZE_MAX;
  std::vector<Outgoing> all = coordinator_->TakeOutgoing();
  const bool dies = crash_ == Fault::kWhileSending && all.size() > 1;
  if (dies) last = dice_.Below(all.size());
  for (size_t i = 0; i < std::min(last, all.size()); ++i) {
    Flight flight;
    flight.message = std::move(all[i].message);
    flight.slice = std::move(all[i].slice);
    Send(std::move(flight), all[i].route);
  }
  if (dies) return KillCoordinator(crash_back_);
  if (coordinator_->ended()) return EndCoordinator();
  if (tick_ <= now_ || coordinator_->deadline() < tick_) {
    tick_ = std::max(now_ + 1, coordinator_->deadline());
    At(tick_, What::kCoordinatorTick, 0, process_);
  }
}

void Simulation::OnClusterEvent(ClusterEvent event) {
  if (event.kind != ClusterEvent::Kind::kCommitted) {
    report_.recovered += event.kind == ClusterEvent::Kind::kRecovered;
    report_.rolled_back += event.kind == ClusterEvent::Kind::kRolledBack;
    if (event.kind == ClusterEvent::Kind::kLost) {
      // One that ends says in its journal what does not count, if it can.
      recovering_ =
          coordinator_->phase() == Coordinator::Phase::kRecovering || now_ < journal_fails_until_ + kRetriesJournal;
      ++report_.lost;
    }
    report_.exchanges_given_up += event.text.find("could not exchange") != std::string::npos;
    if (event.kind == ClusterEvent::Kind::kRecovered || event.kind == ClusterEvent::Kind::kRolledBack) {
      recovering_ = false;
    }
    if (event.kind == ClusterEvent::Kind::kJoined) machines_[MachineOf(event.text)].place = PlaceOf(event.text);
    if (event.kind == ClusterEvent::Kind::kLeft) {
      CheckStalled(event.text);
      CheckSilent(event.text);
    }
    if (event.kind == ClusterEvent::Kind::kLeft || event.kind == ClusterEvent::Kind::kJoined) CheckClocks(nullptr);
    Log("coordinator " + std::to_string(process_) + ": " + event.text);
    return;
  }
  Log("coordinator " + std::to_string(process_) + ": committed round " + std::to_string(event.version) + " of " +
      std::to_string(event.workers) + " workers");
  audit_.OnCommitted(event);
  report_.exchanged += event.round.among_workers;
  report_.early += event.round.among_workers &&
                   std::any_of(event.by_worker.begin(), event.by_worker.end(), [](const WorkerInRound& worker) {
                     return worker.exchange > 0 && worker.exchange < worker.trained;
                   });
  if (coordinator_->ledger().leases() > 2 * static_cast<size_t>(coordinator_->Status(now_).worker_size())) {
    throw Violation("steps are leased to nobody");
  }
  report_.version = event.version;
  if (options_.snapshot_every == 0 || !event.state || is_writing_ ||
      event.version < snapshot_.state.version() + options_.snapshot_every) {
    return;
  }
  writing_ = {};
  writing_.state.set_job(options_.coordinator.job);
  writing_.state.set_version(event.version);
  writing_.state.set_next_step(event.next_step);
  for (const Steps& steps : event.unused) {
    StepRange& range = *writing_.state.add_unused();
    range.set_first(steps.first);
    range.set_count(steps.count);
  }
  writing_.state.set_carried(event.carried);
  writing_.parameters = event.state;
  writing_.iteration = event.round.iteration + event.round.steps;
  is_writing_ = true;
  coordinator_->Hold();
  At(now_ + options_.snapshot_takes, What::kSnapshot, 0, process_);
}

void Simulation::StartCoordinator() {
  if (coordinator_ || over_) return;
  ++process_;
  ++report_.coordinators;
  JournalReplayer replayer(snapshot_.state);
  for (const JournalRecord& record : journal_) replayer.Add(record);
  const JournalReplay replay = replayer.Finish();
  CoordinatorStart start;
  start.epoch = replay.epoch;
  start.version = replay.version;
  start.iteration = snapshot_.iteration;
  start.state = snapshot_.parameters;
  start.digest = DigestOf(*snapshot_.parameters);
  start.carried = snapshot_.state.carried();
  start.ledger = replay.ledger;
  start.lost = replay.lost;
  if (replay.iteration.value_or(start.iteration) != start.iteration ||
      replay.digest.value_or(start.digest) != start.digest) {
    throw Violation("a snapshot does not fit the journal");
  }
  const uint64_t epoch = start.epoch;
  if (epoch <= epoch_) throw Violation("two coordinators of one epoch");
  started_ = now_;
  recovering_ = !start.lost.empty();
  paused_until_ = 0;
  tick_ = -1;
  crash_ = Fault::kNow;
  Log("coordinator " + std::to_string(process_) + " starts from round " + std::to_string(start.version) + ", " +
      std::to_string(start.lost.size()) + " lost");
  math_ = std::make_unique<SimulatedRoundMath>(start.state, options_.words, kind());
  audit_.ForgetClocks();
  Journal& journal = *this;
  try {
    coordinator_ = std::make_unique<Coordinator>(options_.coordinator, std::move(start), *math_, journal, now_);
  } catch (const EnvironmentError& error) {
    Log(std::string("the coordinator cannot start: ") + error.what());
    return At(now_ + 2000, What::kStartCoordinator);
  }
  epoch_ = epoch;
  for (size_t i = 0; i < machines_.size(); ++i) {
    if (machines_[i].ended && !machines_[i].restarts) Restart(static_cast<int>(i), 3000);
  }
  AfterCoordinator();
}

void Simulation::EndCoordinator() {
  const std::string failure = coordinator_->failure();
  if (coordinator_->ledger().leases() > 0) throw Violation("the coordinator ends and steps are still leased");
  report_.completed = coordinator_->completed();
  if (!recovering_) {
    audit_.OnLedger(coordinator_->ledger().next(), coordinator_->ledger().unused());
    if (coordinator_->version() != audit_.version()) throw Violation("the coordinator ends with another round");
  }
  audit_.OnState(coordinator_->version(), coordinator_->digest(), coordinator_->state());
  coordinator_.reset();
  is_writing_ = false;
  if (failure.empty()) {
    over_ = true;
    report_.coordinator_ended = now_;
    Log("the coordinator ends");
    return;
  }
  // It may give up only while something goes wrong; somebody starts all again.
  if (healed_ && now_ > options_.healed + options_.coordinator.join_timeout) {
    throw Violation("the coordinator gave up: " + failure);
  }
  Log("the coordinator gave up: " + failure);
  ++report_.gave_up;
  At(now_ + 5000, What::kStartCoordinator);
  for (size_t i = 0; i < machines_.size(); ++i) {
    if (!machines_[i].restarts) Restart(static_cast<int>(i), 6000);
  }
}

}  // namespace crema
