// How a coordinator's program begins and ends.
#include "distributed/training/coordinate.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "base/compute_threads.h"
#include "base/paths.h"
#include "crema/error.h"
#include "distributed/journal/digest.h"
#include "distributed/journal/journal_replay.h"
#include "distributed/protocol/environment.h"
#include "distributed/sockets/open_files.h"
#include "distributed/training/cluster_settings.h"
#include "distributed/training/coordination.h"
#include "distributed/training/data_fingerprint.h"
#include "distributed/training/lost_rounds.h"
#include "distributed/training/solver_for_workers.h"
#include "ops/matrices/gemm.h"
#include "runtime/refuse_inputs.h"
#include "schema/wire_bytes.h"
#include "solver/checks/epochs.h"
#include "solver/nets.h"
#include "solver/ranks/hogwild.h"
#include "solver/snapshots/prefix_files.h"

namespace crema {

namespace {

// `requested_action`: in the place of that of the options, where these have one.
SolverOptions CoordinatorsOwn(const SolverFile& file, SolverOptions options,
                              std::function<SolverAction()> requested_action = {}) {
  options.role = SolverOptions::Role::kCoordinator;
  if (options.requested_action && requested_action) options.requested_action = std::move(requested_action);
  options.exchanges_gradients = file.solver.distributed().mode() == DistributedParameter::GRADIENT;
  return options;
}

void AddFingerprints(const NetParameter& net, const std::vector<std::string>& folders,
                     std::vector<Welcome::Data>* data) {
  for (const DataFingerprint& found : FingerprintData(net, folders)) {
    Welcome::Data& added = data->emplace_back();
    added.set_layer(found.layer);
    added.set_fingerprint(found.value);
    if (found.files) added.set_files(*found.files);
  }
}

}  // namespace

Coordination::Coordination(const SolverFile& file, SolverOptions options, const CoordinateOptions& cluster)
    : file_(file),
      settings_(file.solver.distributed()),
      warnings_(CheckDistributed(file)),
      cluster_(cluster),
      options_(options),
      updates_net_(settings_.mode() == DistributedParameter::GRADIENT &&
                   settings_.topology() == DistributedParameter::STAR),
      // Else the next round would change the net that a test or snapshot of this one needs, or be one too many where
      // that test is the last.
      holds_(updates_net_ || file.solver.best().patience() > 0),
      solver_(file, CoordinatorsOwn(file, std::move(options), [this] { return RequestedAction(); })),
      steps_(solver_),
      layout_(LayoutOf(steps_, settings_)) {
  for (Observer* observer : options_.observers) {
    for (const Diagnostic& warning : warnings_) observer->OnNotice(warning);
  }
  RefuseInputs(solver_.net(), "the train net", "a program can write in its own process only: train on one machine");
  if (settings_.mode() == DistributedParameter::TOURNAMENT) {
    higher_wins_ = HigherWins(solver_.test_net(0), settings_.tournament_output(),
                              file.source ? file.source->Field("distributed") : Location{});
  }
  if (!settings_.endpoint().empty()) {
    protection_ = CheckSecurity(settings_.endpoint(), settings_.security(), true,
                                file.source ? file.source->Field("distributed.security") : Location{});
  }
}

CoordinatorStart Coordination::StartingPoint() {
  const std::optional<ClusterState>& restored = steps_.restored_cluster_state();
  if (solver_.snapshot_prefix().empty()) {
    throw UserError(file_.source ? file_.source->Field("snapshot_prefix") : Location{},
                    "training on several machines keeps a journal beside its snapshots: set snapshot_prefix");
  }
  ClusterState before;
  if (restored) {
    before = *restored;
    if (HasOuterMomentum(settings_)) CheckVelocity(layout_, static_cast<size_t>(before.velocity_size()));
  } else {
    before.set_job(Draw());
    before.set_next_step(steps_.next_step());
  }
  JournalReplayer replayer(before);
  journal_ =
      std::make_unique<JournalFile>(solver_.snapshot_prefix() + "_cluster.journal", [&](const JournalRecord& record) {
        if (restored) replayer.Add(record);
      });
  if (!restored && !journal_->empty()) {
    Tell("this is a new training: what " + solver_.snapshot_prefix() +
             "_cluster.journal said of an earlier one is void (--snapshot=auto goes on with it)",
         0, true);
    journal_->Empty();
  }
  job_ = before.job();
  const bool with_history =
      layout_.history > 0 && (settings_.history() == DistributedParameter::MEAN ||
                              (settings_.history() == DistributedParameter::LOCAL && solver_.iteration() > 0));
  const std::span<const float> velocity(before.velocity().data(), static_cast<size_t>(before.velocity_size()));
  const Payload state = StateOf(steps_, layout_, with_history, velocity);
  JournalReplay replay = replayer.Finish();
  CoordinatorStart start;
  start.iteration = static_cast<uint64_t>(solver_.iteration());
  start.digest = DigestOf(*state);
  std::vector<uint64_t> digests = {start.digest};
  // Histories are part of what the journal names in some rounds only.
  if (restored && with_history) digests.push_back(DigestOf(*StateOf(steps_, layout_, false, velocity)));
  if (restored && IsOfOthers(replay, start.iteration, digests)) {
    Tell("the snapshot is of round " + std::to_string(replay.version) + ", for which " + solver_.snapshot_prefix() +
             "_cluster.journal names other parameters: it is of another run, or what the solver file says of the net "
             "or of how workers average was changed; training goes on from what the snapshot has",
         0, true);
  }
  const std::string nobody_has_them =
      WhyNobodyHasRounds(settings_, layout_, updates_net_ && steps_.history_count() > 0);
  // What was named is what is to go on.
  const bool named = restored && options_.snapshot != "auto";
  rolled_back_ = GiveUpRounds(nobody_has_them.empty() && named
                                  ? "--snapshot=auto, which goes on with what workers have, was not asked for"
                                  : nobody_has_them,
                              &replay);
  // What would be rolled back need not be on the disk.
  journal_->set_flush(nobody_has_them.empty());
  start.epoch = replay.epoch;
  start.version = replay.version;
  start.carried = before.carried();
  start.state = state;
  start.ledger = std::move(replay.ledger);
  start.lost = std::move(replay.lost);
  cluster_state_ = before;
  steps_.set_cluster_state([this] {
    // A snapshot is never ahead of the journal.
    journal_->Flush();
    return cluster_state_;
  });
  return start;
}

std::unique_ptr<Averaging> Coordination::MakeMath(const Payload& state) {
  if (settings_.mode() != DistributedParameter::GRADIENT) {
    std::vector<float> velocity;
    if (layout_.velocity == 0) velocity.assign(cluster_state_.velocity().begin(), cluster_state_.velocity().end());
    return std::make_unique<Averaging>(settings_, layout_, state, std::move(velocity));
  }
  GradientMean::Update update;
  if (!updates_net_) {
    update.apply = SharedUpdate(steps_);
    return std::make_unique<GradientMean>(settings_, layout_, state, std::move(update));
  }
  update.apply = [this](uint64_t iteration, const float* gradient, float* values, float*) {
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
  if (settings_.worker_threads()) AllowSockets();
  auto sockets = std::make_unique<ServerSockets>(context_, settings_.chunk_bytes());
  if (settings_.local_workers() > 0) sockets->Bind(LocalEndpoint(), nullptr);
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

// Else they would wait for a coordinator that does not come back.
void Coordination::TellWorkersOfEnd(const std::exception& error) {
  service_->Do([&](Coordinator& coordinator) { FailBecause(error, coordinator); });
  const Milliseconds end = Now() + static_cast<Milliseconds>(settings_.dead_ms() + settings_.heartbeat_ms());
  while (!service_->ended() && Now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

TrainingResult Coordination::Run() {
  // First, since what an earlier training left is void once this one starts.
  std::unique_ptr<ServerSockets> sockets = Listen();
  CoordinatorStart start = StartingPoint();
  math_ = MakeMath(start.state);
  const auto fixed = std::make_shared<Bytes>(static_cast<size_t>(steps_.fixed_count()) * sizeof(float));
  steps_.ReadFixed(reinterpret_cast<float*>(fixed->data()));
  math_->set_fixed(fixed);
  CoordinatorOptions protocol = ProtocolOf(file_.solver);
  protocol.job = job_;
  protocol.most_push_bytes = math_->most_push_bytes();
  const SolverParameter solver_for_workers = SolverForWorkers(file_, options_, solver_);
  protocol.solver = WireBytes(solver_for_workers);
  protocol.search_folders = Folders();
  AddFingerprints(solver_for_workers.train_net_param(), Folders(), &protocol.data);
  protocol.higher_wins = higher_wins_;
  for (const NetParameter& net : solver_for_workers.test_net_param()) {
    AddFingerprints(net, Folders(), &protocol.test_data);
  }
  protocol.seed = solver_.seed();
  protocol.hold_at_stops = holds_;

  steps_.Start();
  // Workers of other machines outlive a coordinator: the next one has to know them, and the seed, from the beginning.
  if (!steps_.restored_cluster_state() && !settings_.endpoint().empty()) {
    steps_.SetIteration(solver_.iteration(), cluster_state_.next_step());
    steps_.TrySnapshot();
  }
  if (!rolled_back_.empty()) Tell(rolled_back_, 0, true);
  last_commit_ = last_step_ = last_display_ = static_cast<double>(Now()) / 1000;
  service_ = std::make_unique<CoordinatorService>(std::move(protocol), std::move(start), *math_, *journal_,
                                                  std::move(sockets), [this](ClusterEvent& event) { Prepare(event); });
  std::exception_ptr error;  // of this program
  Coordinator::Failure kind = Coordinator::Failure::kEnvironment;
  try {
    if (settings_.local_workers() > 0) StartWorkers();
    Serve();
  } catch (const std::exception& broken) {
    error = std::current_exception();
    TellWorkersOfEnd(broken);
  }
  if (local_) local_->Wind(5000);
  SumUp();

  std::string failure;
  bool completed = false;
  service_->Do([&](Coordinator& coordinator) {
    failure = coordinator.failure();
    kind = coordinator.failure_kind();
    completed = coordinator.completed();
  });
  const bool failed = error || !failure.empty();
  const bool behind = TakeEnd();
  local_.reset();
  // Until all is written `crema cluster` is answered, and who comes back late is told of the end.
  steps_.set_on_waiting_for_room([this](const std::string& unwritten) {
    waits_for_room_ = !unwritten.empty();
    service_->Do([&](Coordinator& coordinator) { coordinator.WaitForRoom(unwritten); });
  });
  if (!failed) {
    if (behind) steps_.SnapshotAtEnd();
    return steps_.Finish(!completed);
  }
  // Of numbers that are not finite the last snapshot is the better one: as on one machine, it stays.
  try {
    if (kind != Coordinator::Failure::kDiverged) steps_.SnapshotAtEnd();
  } catch (const NotFinite&) {
    // What failed first is what is told.
  }
  if (error) std::rethrow_exception(error);
  if (kind == Coordinator::Failure::kEnvironment) throw EnvironmentError(failure);
  throw UserError(failure + (kind == Coordinator::Failure::kDiverged ? steps_.LastSnapshot() : ""));
}

bool Coordination::TakeEnd() {
  bool behind = false;
  service_->Do([&](Coordinator& coordinator) {
    if (!coordinator.state()) return;  // with workers that do not answer
    ClusterEvent now;
    now.state = coordinator.state();
    now.version = coordinator.version();
    now.round.iteration = coordinator.iteration();
    now.next_step = coordinator.ledger().next();
    now.carried = coordinator.carried();
    now.unused = coordinator.ledger().unused();
    math_->Abandon();
    now.velocity = math_->velocity();
    PutIntoNet(now);
    behind = saved_iteration_ == now.round.iteration && saved_version_ != now.version && saved_version_ > 0;
  });
  return behind;
}

TrainingResult Coordinate(const SolverFile& file, SolverOptions options, const CoordinateOptions& cluster) {
  std::optional<ComputeThreads> share;
  if (file.solver.distributed().worker_threads()) {
    share.emplace(cluster.compute_threads);
    SetGemmThreads(cluster.compute_threads);
  }
  const int workers = std::max(1, ExpectedWorkers(file.solver.distributed()));
  AllowOpenFiles(kOwnFiles + kFilesOfAWorker * static_cast<uint64_t>(workers));
  // Before snapshots are read: whoever writes them now may write newer ones.
  std::optional<PrefixLock> lock;
  if (const std::string prefix = SnapshotPrefix(file.solver, options); !prefix.empty()) {
    lock.emplace(prefix);
    lock->RemoveUnfinished();
  }
  const EpochProgress progress = ReadEpochProgress(file, options);
  const SolverFile in_iterations = InIterations(file, CoordinatorsOwn(file, options), workers, progress);
  options.tests_from_the_first |= TestsFromTheFirst(file);
  return Coordination(in_iterations, std::move(options), cluster).Run();
}

}  // namespace crema
