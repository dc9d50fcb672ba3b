// The coordinator's program: its solver tests, logs and writes snapshots of what the service commits.
#include "distributed/coordinate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "base/atomic_file.h"
#include "base/check.h"
#include "crema/error.h"
#include "distributed/authentication.h"
#include "distributed/averaging.h"
#include "distributed/cluster_settings.h"
#include "distributed/coordinator_service.h"
#include "distributed/digest.h"
#include "distributed/journal_file.h"
#include "distributed/journal_replay.h"
#include "distributed/local_workers.h"
#include "distributed/security.h"
#include "distributed/solver_layout.h"
#include "solver/nets.h"

namespace crema {

namespace {

constexpr Milliseconds kTick = 100;
// Committed rounds that wait for tests of earlier ones, before no more are opened.
constexpr size_t kMostBehind = 2;
constexpr Milliseconds kPlaintextWarningEvery = 60'000;

uint64_t Draw() {
  std::random_device random;
  return (uint64_t{random()} << 32) | random() | 1;
}

SolverOptions CoordinatorsOwn(const SolverFile& file, SolverOptions options) {
  options.role = SolverOptions::Role::kCoordinator;
  options.exchanges_gradients = file.solver.distributed().mode() == DistributedParameter::GRADIENT;
  return options;
}

class Coordination {
 public:
  Coordination(const SolverFile& file, SolverOptions options, const CoordinateOptions& cluster);
  TrainingResult Run();

 private:
  void Tell(const std::string& text, int workers, bool warning);
  CoordinatorStart StartingPoint();
  std::unique_ptr<Averaging> MakeMath(const Payload& state);
  std::unique_ptr<ServerSockets> Listen();
  std::string WelcomeSolver() const;
  std::vector<std::string> Folders() const;
  void Prepare(ClusterEvent& event);
  void Handle(const ClusterEvent& event);
  void OnCommitted(const ClusterEvent& event);
  void PutIntoNet(const ClusterEvent& event);
  bool DueAt(uint64_t iteration, int interval) const {
    return interval > 0 && iteration % static_cast<uint64_t>(interval) == 0;
  }
  void TakeRequests();
  void Stop();
  void Tend();
  void Serve();
  void TellWorkersOfEnd(const std::string& why);

  const SolverFile& file_;
  const DistributedParameter& settings_;
  const std::vector<Diagnostic> warnings_;
  const CoordinateOptions& cluster_;
  const SolverOptions options_;
  const bool gradients_;
  Solver solver_;
  TrainingSteps steps_;
  const StateLayout layout_;
  uint64_t job_ = 0;
  std::string rolled_back_;  // what is lost for good, as one sentence

  std::unique_ptr<JournalFile> journal_;
  std::mutex solver_mutex_;  // the service's thread uses the solver, too, with mode GRADIENT
  std::unique_ptr<Averaging> math_;
  std::unique_ptr<PrivateFolder> folder_;  // of local workers
  zmq::context_t context_;
  std::mutex lines_mutex_;
  std::vector<std::string> lines_;  // of the authenticator, under lines_mutex_
  std::unique_ptr<Authenticator> authenticator_;
  std::unique_ptr<CoordinatorService> service_;
  std::unique_ptr<LocalWorkers> local_;
  std::string local_endpoint_;
  Protection protection_ = Protection::kNone;

  ClusterState cluster_state_;  // of what is in the net
  bool committed_ = false, snapshot_wanted_ = false, stopping_ = false;
  Milliseconds last_commit_ = 0, warned_plaintext_ = 0;
  int workers_ = 0;
  std::vector<float> velocity_before_, history_before_;
  std::vector<float> values_;
};

Coordination::Coordination(const SolverFile& file, SolverOptions options, const CoordinateOptions& cluster)
    : file_(file),
      settings_(file.solver.distributed()),
      warnings_(CheckDistributed(file)),
      cluster_(cluster),
      options_(options),
      gradients_(settings_.mode() == DistributedParameter::GRADIENT),
      solver_(file, CoordinatorsOwn(file, std::move(options))),
      steps_(solver_),
      layout_(LayoutOf(steps_, settings_)) {
  for (Observer* observer : options_.observers) {
    for (const Diagnostic& warning : warnings_) observer->OnNotice(warning);
  }
  if (!solver_.net().inputs().empty()) {
    throw UserError("the train net gets \"" + solver_.net().inputs().front().name +
                    "\" from an Input layer, which a program would have to write: workers read from Data layers");
  }
  if (!settings_.endpoint().empty()) protection_ = CheckSecurity(settings_.endpoint(), settings_.security(), true);
}

void Coordination::Tell(const std::string& text, int workers, bool warning) {
  for (Observer* observer : options_.observers) observer->OnCluster(ClusterChanged{text, workers, warning});
}

CoordinatorStart Coordination::StartingPoint() {
  const std::optional<ClusterState>& restored = steps_.restored_cluster_state();
  if (solver_.snapshot_prefix().empty()) {
    throw UserError(file_.source ? file_.source->Field("snapshot_prefix") : Location{},
                    "training on several machines keeps a journal beside its snapshots: set snapshot_prefix");
  }
  journal_ = std::make_unique<JournalFile>(solver_.snapshot_prefix() + "_cluster.journal");
  if (!restored && !journal_->records().empty()) {
    Tell("this is a new training: what " + solver_.snapshot_prefix() +
             "_cluster.journal said of an earlier one is void (--snapshot=auto goes on with it)",
         0, true);
    journal_->Empty();
  }
  ClusterState before;
  if (restored) {
    before = *restored;
  } else {
    before.set_job(Draw());
    before.set_next_step(steps_.next_step());
  }
  job_ = before.job();
  const bool with_history =
      layout_.history > 0 && (settings_.history() == DistributedParameter::MEAN ||
                              (settings_.history() == DistributedParameter::LOCAL && solver_.iteration() > 0));
  const Payload state = StateOf(steps_, layout_, with_history);
  JournalReplay replay = ReplayJournal(journal_->records(), before);
  CoordinatorStart start;
  start.epoch = replay.epoch;
  start.version = replay.version;
  start.iteration = static_cast<uint64_t>(solver_.iteration());
  start.ledger = std::move(replay.ledger);
  start.lost = std::move(replay.lost);
  start.state = state;
  start.digest = DigestOf(*state);
  // Workers do not have the outer momentum, nor what a solver that updates here remembers; those of this machine died
  // with the coordinator that started them.
  std::string nobody_has_them;
  if (settings_.outer_momentum() != 0 || settings_.outer_momentum_by_workers()) {
    nobody_has_them = "workers do not know the outer momentum";
  } else if (gradients_ && steps_.history_count() > 0) {
    nobody_has_them = "workers do not know the solver's history";
  } else if (settings_.endpoint().empty()) {
    nobody_has_them = "no worker is left";
  }
  if (!start.lost.empty() && !nobody_has_them.empty()) {
    rolled_back_ = "rounds " + std::to_string(start.version + 1) + " to " +
                   std::to_string(start.lost.back().version()) +
                   " are lost and will be trained again: the snapshot does not have them, and " + nobody_has_them;
    start.lost.clear();
  }
  // What would be rolled back need not be on the disk.
  journal_->set_flush(nobody_has_them.empty());
  cluster_state_ = before;
  steps_.set_cluster_state([this] { return cluster_state_; });
  return start;
}

std::unique_ptr<Averaging> Coordination::MakeMath(const Payload& state) {
  if (!gradients_) {
    return std::make_unique<Averaging>(
        settings_, layout_, state,
        std::vector<float>(cluster_state_.velocity().begin(), cluster_state_.velocity().end()));
  }
  GradientMean::Update update;
  update.apply = [this](uint64_t iteration, const float* gradient, float* values) {
    const std::lock_guard lock(solver_mutex_);
    history_before_.resize(static_cast<size_t>(steps_.history_count()));
    steps_.ReadHistory(history_before_.data());
    values_.assign(values, values + layout_.values);
    steps_.WriteValues(values_.data());
    steps_.Update(static_cast<int>(iteration), gradient);
    steps_.ReadValues(values_.data());
    std::copy_n(values_.begin(), layout_.trained, values);
  };
  update.undo = [this] {
    const std::lock_guard lock(solver_mutex_);
    steps_.WriteHistory(history_before_.data());
  };
  return std::make_unique<GradientMean>(settings_, layout_, state, std::move(update));
}

std::unique_ptr<ServerSockets> Coordination::Listen() {
  auto sockets = std::make_unique<ServerSockets>(context_, settings_.chunk_bytes());
  if (settings_.local_workers() > 0) {
    folder_ = std::make_unique<PrivateFolder>();
    local_endpoint_ = "ipc://" + folder_->socket();
    sockets->Bind(local_endpoint_, nullptr);
  }
  if (settings_.endpoint().empty()) return sockets;
  if (protection_ == Protection::kNone) {
    const std::string bound = sockets->Bind(settings_.endpoint(), nullptr);
    if (cluster_.on_listening) cluster_.on_listening(bound);
    return sockets;
  }
  const KeyPair keys = ReadKeyPair(settings_.security().secret_key_file());
  authenticator_ = std::make_unique<Authenticator>(context_, settings_.security().authorized_keys_dir(),
                                                   [this](const std::string& line) {
                                                     const std::lock_guard lock(lines_mutex_);
                                                     lines_.push_back(line);
                                                   });
  const std::string bound = sockets->Bind(settings_.endpoint(), &keys);
  authenticator_->SelfTest(bound, keys.public_key);
  if (cluster_.on_listening) cluster_.on_listening(bound);
  return sockets;
}

std::string Coordination::WelcomeSolver() const {
  NetPlans plans = PlanNets(file_, options_, Context{});
  SolverParameter solver = file_.solver;
  *solver.mutable_train_net_param() = std::move(plans.train.file.net);
  NetState& state = *solver.mutable_train_state();
  state.set_level(plans.train.options.level);
  state.clear_stage();
  for (const std::string& stage : plans.train.options.stages) state.add_stage(stage);
  // What only the coordinator does, and what stays with it.
  solver.clear_net();
  solver.clear_net_param();
  solver.clear_train_net();
  solver.clear_test_net();
  solver.clear_test_net_param();
  solver.clear_test_state();
  solver.clear_test_iter();
  solver.clear_test_interval();
  solver.clear_test_initialization();
  solver.clear_test_compute_loss();
  solver.clear_weights();
  solver.clear_snapshot();
  solver.clear_snapshot_prefix();
  solver.clear_display();
  solver.mutable_distributed()->clear_security();
  solver.mutable_distributed()->clear_endpoint();
  return solver.SerializeAsString();
}

std::vector<std::string> Coordination::Folders() const {
  std::vector<std::string> folders;
  const auto add = [&](const std::string& folder) {
    std::error_code error;
    const auto whole = std::filesystem::absolute(folder, error);
    if (!error) folders.push_back(whole.lexically_normal().string());
  };
  add(".");
  if (!options_.path.empty()) add(DirectoryOf(options_.path));
  for (const std::string& folder : options_.search_folders) add(folder);
  return folders;
}

void Coordination::Prepare(ClusterEvent& event) {
  if (event.kind != ClusterEvent::Kind::kCommitted || gradients_) return;
  // The math goes on while this event waits.
  event.velocity = math_->velocity();
}

void Coordination::Handle(const ClusterEvent& event) {
  using Kind = ClusterEvent::Kind;
  workers_ = event.workers;
  if (event.kind == Kind::kCommitted) return OnCommitted(event);
  // At the start there is nobody, as it should be.
  const bool expected = event.kind == Kind::kWaiting && cluster_state_.version() == 0 && !committed_;
  const bool warning = event.kind != Kind::kJoined && event.kind != Kind::kRecovered && !expected;
  Tell(event.text, event.workers, warning);
  // What is in the net is of a round that did not count, or is older than what a worker kept.
  if (event.kind == Kind::kRecovered) PutIntoNet(event);
}

void Coordination::PutIntoNet(const ClusterEvent& event) {
  SetState(steps_, layout_, event.state);
  cluster_state_.set_job(job_);
  cluster_state_.set_version(event.version);
  cluster_state_.set_next_step(event.next_step);
  cluster_state_.clear_unused();
  for (const Steps& steps : event.unused) {
    StepRange& range = *cluster_state_.add_unused();
    range.set_first(steps.first);
    range.set_count(steps.count);
  }
  cluster_state_.clear_velocity();
  for (const float value : event.velocity) cluster_state_.add_velocity(value);
  steps_.SetIteration(static_cast<int>(event.round.iteration + event.round.steps), event.next_step);
}

void Coordination::OnCommitted(const ClusterEvent& event) {
  const SolverParameter& solver = file_.solver;
  const Milliseconds now = Now();
  committed_ = true;
  const double seconds = static_cast<double>(now - last_commit_) / 1000;
  last_commit_ = now;
  for (Observer* observer : options_.observers) {
    observer->OnRound({event.version, static_cast<int>(event.round.iteration), static_cast<int>(event.round.steps),
                       event.workers, event.examples, static_cast<float>(event.loss), seconds});
  }
  std::vector<float> outputs = event.outputs;
  size_t expected = 0;
  for (const NetOutput& output : solver_.net().outputs()) expected += static_cast<size_t>(output.value.count());
  outputs.resize(expected);
  for (uint64_t i = 0; i < event.round.steps; ++i) {
    const int iteration = static_cast<int>(event.round.iteration + i);
    steps_.AddLoss(event.loss);
    if (DueAt(static_cast<uint64_t>(iteration), solver.display())) steps_.Display(iteration, outputs);
    steps_.EndIteration(iteration, event.loss, seconds / static_cast<double>(event.round.steps));
  }
  const uint64_t end = event.round.iteration + event.round.steps;
  const bool last = end >= static_cast<uint64_t>(solver.max_iter());
  const bool snapshot = DueAt(end, solver.snapshot()) || (snapshot_wanted_ && event.held);
  const bool test = DueAt(end, solver.test_interval()) && !last;
  if (snapshot || test || last || event.held) PutIntoNet(event);
  if (snapshot) {
    steps_.TrySnapshot();
    snapshot_wanted_ = false;
  }
  if (test && !steps_.Test()) Stop();
  if (event.held) service_->Do([](Coordinator& coordinator) { coordinator.Hold(false); });
}

void Coordination::TakeRequests() {
  const SolverAction action = options_.requested_action ? options_.requested_action() : SolverAction::kNone;
  if (action == SolverAction::kSnapshot) {
    snapshot_wanted_ = true;
    service_->Do([](Coordinator& coordinator) { coordinator.HoldAfterHistory(); });
  }
  if (action == SolverAction::kStop) Stop();
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

void Coordination::Tend() {
  if (local_ && !service_->ended()) {
    bool ending = false;
    service_->Do([&](Coordinator& c) { ending = c.phase() == Coordinator::Phase::kEnding; });
    if (!ending) {
      try {
        for (const std::string& line : local_->Tend(Now())) Tell(line, workers_, true);
      } catch (const EnvironmentError& error) {
        service_->Do([&](Coordinator& c) { c.Fail(error.what(), Now()); });
      }
    }
  }
  std::vector<std::string> lines;
  {
    const std::lock_guard lock(lines_mutex_);
    lines.swap(lines_);
  }
  for (const std::string& line : lines) Tell(line, workers_, true);
  if (!settings_.endpoint().empty() && protection_ == Protection::kNone && !IsLocal(settings_.endpoint()) &&
      Now() - warned_plaintext_ >= kPlaintextWarningEvery) {
    warned_plaintext_ = Now();
    Tell(PlaintextWarning(settings_.endpoint()), workers_, true);
  }
}

void Coordination::Serve() {
  const SolverParameter& solver = file_.solver;
  const int first = solver_.iteration();
  if (DueAt(static_cast<uint64_t>(first), solver.test_interval()) && first < solver.max_iter() &&
      (first > 0 || solver.test_initialization())) {
    if (!steps_.Test()) Stop();
  }
  bool ended = false;
  while (!ended) {
    ended = service_->ended();
    const std::vector<ClusterEvent> events = service_->Await(ended ? 0 : kTick);
    if (!gradients_ && events.size() > kMostBehind) {
      service_->Do([](Coordinator& coordinator) { coordinator.Hold(true); });
    }
    for (const ClusterEvent& event : events) {
      const std::lock_guard lock(solver_mutex_);
      Handle(event);
    }
    if (!gradients_ && events.size() > kMostBehind) {
      service_->Do([](Coordinator& coordinator) { coordinator.Hold(false); });
    }
    TakeRequests();
    Tend();
  }
}

// Else they would wait for a coordinator that does not come back.
void Coordination::TellWorkersOfEnd(const std::string& why) {
  service_->Do([&](Coordinator& coordinator) {
    if (coordinator.phase() != Coordinator::Phase::kEnding) coordinator.Fail(why, Now());
  });
  const Milliseconds end = Now() + 4 * static_cast<Milliseconds>(settings_.heartbeat_ms());
  while (!service_->ended() && Now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

TrainingResult Coordination::Run() {
  CoordinatorStart start = StartingPoint();
  math_ = MakeMath(start.state);
  const auto fixed =
      std::make_shared<std::vector<std::byte>>(static_cast<size_t>(steps_.fixed_count()) * sizeof(float));
  steps_.ReadFixed(reinterpret_cast<float*>(fixed->data()));
  math_->set_fixed(fixed);
  CoordinatorOptions protocol = ProtocolOf(file_.solver);
  protocol.job = job_;
  protocol.most_push_bytes = math_->most_push_bytes();
  protocol.solver = WelcomeSolver();
  protocol.search_folders = Folders();
  protocol.seed = solver_.seed();
  // With gradients, the next round changes the net that a test or snapshot of this one needs.
  if (gradients_) protocol.hold_at_stops = true;

  steps_.Start();
  if (!rolled_back_.empty()) Tell(rolled_back_, 0, true);
  warned_plaintext_ = Now() - kPlaintextWarningEvery;
  last_commit_ = Now();
  service_ = std::make_unique<CoordinatorService>(std::move(protocol), std::move(start), *math_, *journal_, Listen(),
                                                  [this](ClusterEvent& event) { Prepare(event); });
  if (settings_.local_workers() > 0) {
    std::vector<std::vector<std::string>> commands = cluster_.worker_commands;
    CREMA_CHECK(commands.size() == settings_.local_workers());
    for (std::vector<std::string>& command : commands) command.push_back("--join=" + local_endpoint_);
    local_ = std::make_unique<LocalWorkers>(commands);
  }
  try {
    Serve();
  } catch (const std::exception& error) {
    TellWorkersOfEnd(error.what());
    throw;
  }
  if (local_) local_->Wind(5000);

  std::string failure;
  bool completed = false;
  service_->Do([&](Coordinator& coordinator) {
    failure = coordinator.failure();
    completed = coordinator.completed();
    ClusterEvent now;
    now.state = coordinator.state();
    now.version = coordinator.version();
    now.round.iteration = coordinator.iteration();
    now.next_step = coordinator.ledger().next();
    now.unused = coordinator.ledger().unused();
    now.velocity = math_->velocity();
    PutIntoNet(now);
  });
  service_.reset();
  local_.reset();
  if (!failure.empty()) {
    steps_.TrySnapshot();
    throw EnvironmentError(failure);
  }
  return steps_.Finish(!completed);
}

}  // namespace

TrainingResult Coordinate(const SolverFile& file, SolverOptions options, const CoordinateOptions& cluster) {
  return Coordination(file, std::move(options), cluster).Run();
}

}  // namespace crema
