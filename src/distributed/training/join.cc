// A worker's program: trains what the coordinator says, from the parameters that it sends.
#include "distributed/training/join.h"

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "base/stopwatch.h"
#include "crema/error.h"
#include "distributed/averaging/averaging.h"
#include "distributed/protocol/environment.h"
#include "distributed/protocol/tournament.h"
#include "distributed/security/security.h"
#include "distributed/sockets/join_log.h"
#include "distributed/sockets/open_files.h"
#include "distributed/sockets/own_address.h"
#include "distributed/sockets/worker_service.h"
#include "distributed/training/cluster_settings.h"
#include "distributed/training/data_fingerprint.h"
#include "distributed/training/moves_of_net.h"
#include "distributed/training/solver_layout.h"
#include "distributed/training/worker_watch.h"

namespace crema {

namespace {

constexpr Milliseconds kJoinTick = 100;

class Joining {
 public:
  // Ends `watch`, unless that is null.
  Joining(zmq::context_t& context, const JoinOptions& options, WorkerWatch* watch)
      : options_(options), context_(context), watch_(watch), log_(options.endpoint, options.log) {}
  JoinResult Run();

 private:
  std::unique_ptr<WorkerSockets> Connect();
  void Build(const Welcome& welcome);
  void BuildOrLeave(const Welcome& welcome);
  PeerAddress Listen();
  void CheckData(const Welcome& welcome) const;
  void Train(const TrainTask& task);
  TrainResult Compute(const TrainTask& task, bool* abandoned);
  void TrainUntilEnd();
  bool AskedToStop();
  std::optional<WorkerWatch::Ending> Look();
  WorkerWatch::Ending EndingOf(const Worker& worker) const;
  bool GoesOn(const TrainTask& task, uint64_t steps_done);
  void TakeFixed();
  void LogPhase();

  const JoinOptions& options_;
  zmq::context_t& context_;
  WorkerWatch* const watch_;
  JoinLog log_;
  std::optional<KeyPair> own_keys_;
  MovesOfNet moves_;
  std::unique_ptr<WorkerService> service_;
  std::unique_ptr<SolverFile> file_;
  std::unique_ptr<Solver> solver_;
  std::unique_ptr<TrainingSteps> steps_;
  StateLayout layout_;
  std::mutex fixed_mutex_;
  Payload fixed_;  // came and is not in the net yet; under fixed_mutex_
  bool gradients_ = false;
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> rounds_ = 0, examples_ = 0;
  std::atomic<bool> has_peers_ = false;
};

std::unique_ptr<WorkerSockets> Joining::Connect() {
  std::optional<WorkerSockets::Keys> keys;
  if (CheckSecurity(options_.endpoint, options_.security, false) == Protection::kKeys) {
    own_keys_ = ReadKeyPair(options_.security.secret_key_file());
    keys = WorkerSockets::Keys{*own_keys_, ReadPublicKey(options_.security.server_public_key_file())};
  }
  return std::make_unique<WorkerSockets>(context_, options_.endpoint, std::move(keys));
}

// For other workers, where they are to reach this one.
PeerAddress Joining::Listen() {
  if (file_->solver.distributed().topology() == DistributedParameter::STAR) {
    if (!options_.peer_address.empty()) {
      throw UserError(
          "--peer_address has no effect: the coordinator's topology is STAR, where workers do not speak with "
          "each other; remove it, or set distributed { topology: SHARDED } there");
    }
    return {};
  }
  auto peers =
      std::make_unique<PeerSockets>(context_, PeerOptions{.coordinator = options_.endpoint,
                                                          .announced = options_.peer_address,
                                                          .keys = own_keys_,
                                                          .allow_plaintext = options_.security.allow_plaintext()});
  const PeerAddress address = peers->address();
  log_.Say("Other workers reach this one at " + address.endpoint());
  service_->AddPeers(std::move(peers));
  has_peers_ = true;
  return address;
}

void Joining::Build(const Welcome& welcome) {
  file_ = std::make_unique<SolverFile>();
  if (!file_->solver.ParseFromString(welcome.solver())) {
    throw EnvironmentError("the coordinator's solver cannot be read; run the same crema on all machines");
  }
  SolverParameter& solver = file_->solver;
  CheckExchange(*file_);
  if (!options_.data.empty()) ReadDataFrom(options_.data, solver.mutable_train_net_param());
  const bool tests = solver.distributed().mode() == DistributedParameter::TOURNAMENT;
  if (tests && (solver.test_net_param_size() != 1 || solver.test_iter_size() != 1)) {
    throw UserError("the coordinator's mode is TOURNAMENT, but its solver has no test net");
  }
  if (!options_.test_data.empty()) {
    if (!tests) {
      throw UserError("--test_data has no effect: the coordinator's mode is " +
                      DistributedParameter::Mode_Name(solver.distributed().mode()) +
                      ", where it tests alone; remove --test_data");
    }
    ReadDataFrom(options_.test_data, solver.mutable_test_net_param(0));
  }
  CheckData(welcome);
  gradients_ = solver.distributed().mode() == DistributedParameter::GRADIENT;
  SolverOptions options;
  options.role = SolverOptions::Role::kWorker;
  options.exchanges_gradients = gradients_;
  options.search_folders.assign(welcome.search_folders().begin(), welcome.search_folders().end());
  options.seed = welcome.seed();
  options.device = options_.device;
  options.data_threads = options_.data_threads;
  solver_ = std::make_unique<Solver>(*file_, std::move(options));
  if (options_.warn) {
    for (const Diagnostic& warning : solver_->net().warnings()) options_.warn(warning);
  }
  if (tests) HigherWins(solver_->test_net(0), solver.distributed().tournament_output(), {});
  steps_ = std::make_unique<TrainingSteps>(*solver_);
  layout_ = LayoutOf(*steps_, solver.distributed());
  const bool among_workers = solver.distributed().topology() != DistributedParameter::STAR;
  auto moves = std::make_unique<LocalMoves>(
      solver.distributed(), layout_, static_cast<uint64_t>(steps_->fixed_count()) * sizeof(float),
      [this](Payload fixed) {
        const std::lock_guard lock(fixed_mutex_);
        fixed_ = std::move(fixed);
      },
      among_workers && gradients_ ? SharedUpdate(*steps_) : GradientUpdate());
  const uint64_t most_state_bytes = moves->most_state_bytes();
  const PeerAddress address = Listen();
  service_->Do([&](Worker& worker) {
    moves_.Set(std::move(moves));
    worker.OnBuilt(most_state_bytes, TimingOf(solver.distributed()), TransferOf(solver.distributed()),
                   solver.distributed().topology(), address, Now());
  });
}

// Where it cannot, the coordinator is to know why.
void Joining::BuildOrLeave(const Welcome& welcome) {
  try {
    Build(welcome);
  } catch (const std::exception& error) {
    service_->Do([&](Worker& worker) { worker.Leave(error.what(), Now()); });
    throw;
  }
}

void Joining::LogPhase() {
  Worker::Phase phase = Worker::Phase::kJoining;
  std::string no_place;
  service_->Do([&](const Worker& worker) {
    phase = worker.phase();
    no_place = worker.no_place();
  });
  log_.Tell(phase, std::move(no_place), rounds_ > 0, own_keys_.has_value());
  log_.Tell(service_->losses());
}

void Joining::TakeFixed() {
  Payload fixed;
  {
    const std::lock_guard lock(fixed_mutex_);
    fixed.swap(fixed_);
  }
  if (fixed) steps_->WriteFixed(reinterpret_cast<const float*>(fixed->data()));
}

void Joining::CheckData(const Welcome& welcome) const {
  const std::vector<std::string> folders(welcome.search_folders().begin(), welcome.search_folders().end());
  const auto known = [](const google::protobuf::RepeatedPtrField<Welcome::Data>& data) {
    std::vector<DataFingerprint> all;
    for (const Welcome::Data& there : data) {
      all.push_back({there.layer(), "", there.fingerprint()});
      if (there.has_files()) all.back().files = there.files();
    }
    return all;
  };
  RequireSameData(file_->solver.train_net_param(), folders, known(welcome.data()), "--data", "");
  for (const NetParameter& net : file_->solver.test_net_param()) {
    RequireSameData(net, folders, known(welcome.test_data()), "--test_data",
                    "mode is TOURNAMENT, where each worker tests what it learned: test net, ");
  }
}

bool Joining::AskedToStop() {
  if (options_.requested_action && options_.requested_action() == SolverAction::kStop) stop_ = true;
  return stop_;
}

// Tells of progress; whether the task is still wanted.
bool Joining::GoesOn(const TrainTask& task, uint64_t steps_done) {
  bool wanted = true;
  service_->Do([&](Worker& worker) {
    worker.OnProgress(steps_done);
    wanted = worker.Wanted(task.lease);
  });
  return wanted && !AskedToStop();
}

TrainResult Joining::Compute(const TrainTask& task, bool* abandoned) {
  const DistributedParameter& settings = file_->solver.distributed();
  const Stopwatch watch;
  TrainResult result;
  result.lease = task.lease;
  const auto values = std::make_shared<Bytes>(layout_.bytes(task.with_history));
  float* const floats = reinterpret_cast<float*>(values->data());
  result.examples = task.steps.count * steps_->records_per_step();
  // Others may have values from this byte on.
  const auto share_from = [&](uint64_t byte) {
    service_->Do([&](Worker& worker) { worker.OnMaking(task.lease, values, result.examples, byte, Now()); });
  };
  bool has_statistics = false;
  const auto read_statistics = [&] {
    if (!std::exchange(has_statistics, true)) steps_->ReadStatistics(floats + layout_.trained);
  };
  std::function<void(int64_t)> on_gradients;
  if (settings.overlap() == DistributedParameter::BACKWARD) {
    share_from(values->size());
    on_gradients = [&](int64_t first) {
      read_statistics();
      share_from(static_cast<uint64_t>(first) * sizeof(float));
    };
  }
  try {
    TakeFixed();
    if (task.goes_on || task.own || gradients_) {
      SetValues(*steps_, layout_, task.state);
    } else {
      SetState(*steps_, layout_, task.state);
    }
    if (settings.history() == DistributedParameter::RESET && !gradients_) steps_->ClearHistory();
    steps_->ReadBatches(task.steps.first, task.steps.count, std::max(task.stride, task.steps.count));
    for (uint64_t i = 0; i < task.steps.count; ++i) {
      const int iteration = static_cast<int>(task.iteration + i);
      const uint64_t number = task.steps.first + i;
      const TrainingSteps::StepResult step =
          gradients_ ? steps_->Gradients(iteration, number, floats, on_gradients) : steps_->Train(iteration, number);
      result.loss += step.loss / static_cast<double>(task.steps.count);
      result.outputs = step.outputs;
      if (!GoesOn(task, i + 1)) {
        *abandoned = true;
        return result;
      }
    }
    if (gradients_) {
      // They moved with the pass.
      read_statistics();
    } else {
      steps_->ReadValues(floats);
      if (task.with_history) steps_->ReadHistory(floats + layout_.values);
    }
    if (settings.mode() == DistributedParameter::TOURNAMENT) {
      // A test is progress, too.
      uint64_t done = task.steps.count;
      const std::optional<double> score =
          steps_->Score(settings.tournament_output(), task.version, [&] { return GoesOn(task, ++done); });
      *abandoned = !score;
      if (*abandoned) return result;
      result.score = *score;
    }
    result.values = values;
  } catch (const NotFinite& error) {
    result.failure = error.what();
  }
  result.seconds = watch.Seconds();
  return result;
}

void Joining::Train(const TrainTask& task) {
  bool abandoned = false;
  TrainResult result;
  try {
    result = Compute(task, &abandoned);
  } catch (const UserError& error) {
    // A record that cannot be used, for one: training ends everywhere, with this.
    result = TrainResult{};
    result.lease = task.lease;
    result.failure = error.what();
    result.fatal = true;
  }
  if (stop_) return;
  if (!abandoned) {
    ++rounds_;
    examples_ += result.examples;
  }
  service_->Do([&](Worker& worker) { worker.OnTrained(std::move(result), Now()); });
}

// What this worker's end comes to.
WorkerWatch::Ending Joining::EndingOf(const Worker& worker) const {
  JoinResult result;
  result.completed = worker.completed();
  result.reason = worker.end_reason();
  result.rounds = rounds_;
  result.examples = examples_;
  result.has_peers = has_peers_;
  result.peer_bytes_sent = worker.peer_bytes_sent();
  result.peer_bytes_received = worker.peer_bytes_received();
  const bool failed = worker.failed();
  if (!failed && !worker.training_failed()) return [result] { return result; };
  result.failed = true;
  result.hopeless = worker.hopeless();
  if (options_.told_elsewhere) return [result] { return result; };
  const std::string what = (failed ? "this worker has no part in the training at " + options_.endpoint + ": "
                                   : "training at " + options_.endpoint + " failed: ") +
                           result.reason;
  return [what, hopeless = result.hopeless]() -> JoinResult {
    if (hopeless) throw UserError(what);
    throw EnvironmentError(what);
  };
}

// By the watch's thread.
std::optional<WorkerWatch::Ending> Joining::Look() {
  const bool stop = AskedToStop();
  std::optional<WorkerWatch::Ending> ending;
  service_->Do([&](Worker& worker) {
    if (stop) worker.Leave("stopped", Now());
    if (worker.ended()) ending = EndingOf(worker);
  });
  return ending;
}

void Joining::TrainUntilEnd() {
  bool ended = false;
  while (!ended) {
    const WorkerTurn turn = service_->Await(kJoinTick);
    if (turn.welcome) {
      BuildOrLeave(*turn.welcome);
      if (!stop_) log_.Say("Joined in place " + std::to_string(turn.welcome->slot()));
    }
    if (turn.task) Train(*turn.task);
    LogPhase();
    if (AskedToStop()) service_->Do([](Worker& worker) { worker.Leave("stopped", Now()); });
    ended = turn.ended || stop_;
  }
}

JoinResult Joining::Run() {
  WorkerOptions options;
  options.process = Draw();
  options.name = options_.name.empty() ? OwnName() : options_.name;
  service_ = std::make_unique<WorkerService>(std::move(options), moves_, Connect());
  log_.Say("Joining the training at " + options_.endpoint);
  if (watch_) watch_->Begin([this] { return Look(); });
  WorkerWatch::Ending ending;
  try {
    TrainUntilEnd();
    service_->Do([&](Worker& worker) { ending = EndingOf(worker); });
  } catch (...) {
    ending = [error = std::current_exception()]() -> JoinResult { std::rethrow_exception(error); };
  }
  log_.Summarize(service_->losses());
  if (watch_) watch_->End(ending);
  service_.reset();
  return ending();
}

}  // namespace

JoinResult Join(const JoinOptions& options) {
  if (options.endpoint.starts_with(kInproc)) {
    throw UserError("nobody joins at " + options.endpoint +
                    ", which is within one program; an endpoint looks like tcp://HOST:5570");
  }
  AllowOpenFiles(kOwnFiles);
  zmq::context_t context;
  return JoinInside(context, options);
}

JoinResult JoinInside(zmq::context_t& context, const JoinOptions& options) {
  // Outlives what may not come to an end either: the net waits for those who read its data.
  std::optional<WorkerWatch> watch;
  if (options.on_stuck) watch.emplace(options.on_stuck);
  return Joining(context, options, watch ? &*watch : nullptr).Run();
}

}  // namespace crema
