#include "distributed/training/cluster_settings.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "crema/error.h"
#include "distributed/averaging/round_formula.h"
#include "distributed/sockets/socket_messages.h"
#include "distributed/training/coordinate.h"

namespace crema {

namespace {

class Checker {
 public:
  explicit Checker(const SolverFile& file) : file_(file), settings_(file.solver.distributed()) {}

  std::vector<Diagnostic> Run();
  std::vector<Diagnostic> RunExchange();  // without numbers, workers and rounds

 private:
  void Say(Diagnostic::Severity severity, const std::string& message) {
    Diagnostic diagnostic;
    diagnostic.severity = severity;
    if (file_.source) diagnostic.where = file_.source->Field("distributed");
    diagnostic.message = "distributed: " + message;
    found_.push_back(std::move(diagnostic));
  }
  void Expect(bool holds, std::string message) {
    if (!holds) Say(Diagnostic::Severity::kError, std::move(message));
  }
  void Warn(bool when, std::string message) {
    if (when) Say(Diagnostic::Severity::kWarning, std::move(message));
  }
  template <typename Number>
  void Between(const char* field, Number value, Number least, Number most) {
    Expect(value >= least && value <= most, std::string(field) + " is " + std::to_string(value) + "; it must be from " +
                                                std::to_string(least) + " to " + std::to_string(most));
  }
  void CheckNumbers();
  void CheckWorkers();
  void CheckRounds();
  void CheckElastic(bool outer);
  void CheckTournament(bool outer);
  void CheckStale(bool outer_momentum);
  void CheckTopology();
  void CheckOverlap();
  void CheckBackward();

  const SolverFile& file_;
  const DistributedParameter& settings_;
  std::vector<Diagnostic> found_;
};

void Checker::CheckNumbers() {
  Between("local_steps", settings_.local_steps(), 1u, 1'000'000u);
  Between("local_workers", settings_.local_workers(), 0u, 256u);
  Between("max_workers", settings_.max_workers(), 1u, 100'000u);
  Between("heartbeat_ms", settings_.heartbeat_ms(), 10u, 60'000u);
  Between("chunk_bytes", settings_.chunk_bytes(), 1024u, 64u << 20);
  Between("credits", settings_.credits(), 1u, 900u);
  Between("keep_rounds", settings_.keep_rounds(), 1u, 1'000'000u);
  Expect(settings_.dead_ms() >= 3 * settings_.heartbeat_ms(),
         "dead_ms is " + std::to_string(settings_.dead_ms()) +
             "; it must be at least three times heartbeat_ms, or a worker is given up that only sent late");
  const auto at_least = [&](const char* field, uint32_t value, uint32_t least, const std::string& why) {
    Expect(value >= least, std::string(field) + " is " + std::to_string(value) + "; it must be at least " +
                               std::to_string(least) + ", " + why);
  };
  const uint32_t beats = 3 * std::min(settings_.heartbeat_ms(), 60'000u);
  at_least("join_timeout_ms", settings_.join_timeout_ms(), beats,
           "three times heartbeat_ms, or training ends before anybody could join");
  at_least("orphan_ms", settings_.orphan_ms(), beats,
           "three times heartbeat_ms, or workers give up a coordinator that is only late");
  if (settings_.stall_ms() > 0) {
    at_least("stall_ms", settings_.stall_ms(), beats,
             "three times heartbeat_ms, which tell of progress, or 0 for never");
  }
  const auto expected = settings_.has_expected_workers() ? settings_.expected_workers()
                                                         : static_cast<uint32_t>(ExpectedWorkers(settings_));
  Between("expected_workers", expected, 1u, 100'000u);
  const auto most = settings_.max_workers();
  Expect(expected <= most, "more workers are expected (" + std::to_string(expected) + ") than max_workers allows (" +
                               std::to_string(most) + ")");
  Expect(settings_.min_workers() <= expected, "min_workers is " + std::to_string(settings_.min_workers()) +
                                                  ", but only " + std::to_string(expected) +
                                                  " workers are expected (expected_workers): raise that");
  Expect(settings_.straggler_factor() == 0 || settings_.straggler_factor() >= 1,
         "straggler_factor must be 0 (wait for all) or at least 1");
  Expect(settings_.elastic_rate() >= 0 && settings_.elastic_rate() <= 1, "elastic_rate must be from 0 to 1");
  Expect(std::isfinite(settings_.outer_lr()) && settings_.outer_lr() > 0, "outer_lr must be above 0");
  Expect(settings_.topk_ratio() > 0 && settings_.topk_ratio() <= 1, "topk_ratio must be above 0 and at most 1");
  Expect(std::isfinite(settings_.codec_threshold()) && settings_.codec_threshold() > 0,
         "codec_threshold must be above 0");
  const auto coded = [&](DistributedParameter::Codec codec) {
    return settings_.codec() == codec || settings_.down_codec() == codec;
  };
  Warn(settings_.has_topk_ratio() && !coded(DistributedParameter::TOPK),
       "topk_ratio has no effect without codec: TOPK");
  Warn(settings_.has_codec_threshold() && !coded(DistributedParameter::THRESHOLD),
       "codec_threshold has no effect without codec: THRESHOLD");
  Expect(settings_.outer_momentum() >= 0 && settings_.outer_momentum() < 1,
         "outer_momentum must be at least 0 and below 1");
}

void Checker::CheckWorkers() {
  const std::string local = std::to_string(settings_.local_workers());
  Expect(!settings_.endpoint().empty() || settings_.expected_workers() <= settings_.local_workers(),
         std::to_string(settings_.expected_workers()) +
             " workers are expected (expected_workers, --expect), but only " + local +
             " can come (local_workers, --workers); raise that, or set endpoint (--coordinate=ENDPOINT)");
  // Else what is expected says so.
  Expect(!settings_.has_expected_workers() || settings_.local_workers() <= settings_.max_workers(),
         "local_workers is " + local + ", but max_workers lets only " + std::to_string(settings_.max_workers()) +
             " take part; lower the one, or raise the other");
  Expect(!settings_.worker_threads() || settings_.local_workers() > 0,
         "worker_threads makes threads of the workers of this machine, but there are none; set local_workers "
         "(--workers=N), or remove worker_threads");
  Expect(!settings_.endpoint().starts_with(kInproc),
         "endpoint is " + settings_.endpoint() +
             ", where nobody outside of this program can join; write tcp://HOST:PORT, or for threads of this process "
             "remove it and set local_workers and worker_threads: true");
}

void Checker::CheckRounds() {
  const bool by_workers = settings_.outer_momentum_by_workers();
  const bool outer =
      settings_.has_outer_lr() || settings_.outer_momentum() != 0 || settings_.outer_nesterov() || by_workers;
  if (settings_.mode() == DistributedParameter::GRADIENT) {
    Expect(!outer,
           "outer_lr, outer_momentum and outer_nesterov average parameters, but mode is GRADIENT; remove them, "
           "or set mode: AVERAGE");
    Expect(!settings_.has_history(),
           "history has no meaning with mode: GRADIENT, where there is one for all; remove it, or set mode: AVERAGE");
    Warn(settings_.has_local_steps() && settings_.local_steps() != 1,
         "local_steps has no effect with mode: GRADIENT, which exchanges gradients in every step");
  }
  if (settings_.mode() == DistributedParameter::ELASTIC) CheckElastic(outer);
  if (settings_.mode() == DistributedParameter::TOURNAMENT) CheckTournament(outer);
  if (settings_.mode() == DistributedParameter::STALE) CheckStale(settings_.outer_momentum() != 0 || by_workers);
  Warn(settings_.has_tournament_output() && settings_.mode() != DistributedParameter::TOURNAMENT,
       "tournament_output has no effect without mode: TOURNAMENT");
  Warn(settings_.has_elastic_rate() && settings_.mode() != DistributedParameter::ELASTIC,
       "elastic_rate has no effect without mode: ELASTIC");
  Expect(!by_workers || settings_.outer_momentum() == 0,
         "outer_momentum and outer_momentum_by_workers are both set; keep one");
  Expect(!settings_.outer_nesterov() || settings_.outer_momentum() != 0 || by_workers,
         "outer_nesterov needs outer_momentum above 0");
  Warn(
      settings_.has_staleness() && settings_.straggler_factor() == 0 && settings_.mode() != DistributedParameter::STALE,
      "staleness has no effect without straggler_factor: rounds wait for all");
}

void Checker::CheckElastic(bool outer) {
  Expect(!outer,
         "mode is ELASTIC, where elastic_rate says how far the center moves; remove outer_lr, outer_momentum and "
         "outer_nesterov, or set mode: AVERAGE");
  Expect(settings_.history() != DistributedParameter::MEAN,
         "mode is ELASTIC, where workers go on with parameters and a history of their own, but history is MEAN; set "
         "history: LOCAL or RESET, or mode: AVERAGE");
  Expect(settings_.codec() == DistributedParameter::NONE,
         "mode is ELASTIC, where workers send how far they are from the center, and what a codec leaves out of that "
         "cannot be made up for in the next round; remove codec (down_codec may stay), or set mode: AVERAGE");
  const double reach = ElasticRate(settings_) * ExpectedWorkers(settings_);
  Warn(reach > 1,
       "elastic_rate times expected_workers is above 1: the center moves to the mean of the workers, as with "
       "mode: AVERAGE; elastic_rate is usually 0.9 / expected_workers");
}

void Checker::CheckTournament(bool outer) {
  Expect(file_.solver.test_iter_size() > 0,
         "mode is TOURNAMENT, which decides by the first test net, but there is none; set test_iter and test_interval, "
         "or mode: AVERAGE");
  Expect(ExpectedWorkers(settings_) >= 2,
         "mode is TOURNAMENT, where workers meet in pairs, but one worker is expected; raise local_workers or "
         "expected_workers (--expect) to 2 or more");
  Expect(!outer,
         "mode is TOURNAMENT, where nothing is averaged; remove outer_lr, outer_momentum and outer_nesterov, or set "
         "mode: AVERAGE");
  Expect(
      settings_.history() != DistributedParameter::MEAN,
      "mode is TOURNAMENT, where a history goes with the parameters that it is of, but history is MEAN; set history: "
      "LOCAL or RESET, or mode: AVERAGE");
  const auto averages = [&](const char* field, bool given) {
    Expect(!given, std::string("mode is TOURNAMENT, where nothing is averaged, but ") + field + " is set; remove " +
                       field + ", or set mode: AVERAGE");
  };
  averages("weight_by_examples", settings_.has_weight_by_examples());
  averages("batch_norm", settings_.has_batch_norm());
  const auto coded = [&](const char* field, DistributedParameter::Codec codec) {
    Expect(
        codec == DistributedParameter::NONE,
        std::string("mode is TOURNAMENT, where workers have no parameters in common that a difference could be taken "
                    "to, but ") +
            field + " is " + DistributedParameter::Codec_Name(codec) + "; remove it, or set mode: AVERAGE");
  };
  coded("codec", settings_.codec());
  coded("down_codec", settings_.down_codec());
  Expect(settings_.straggler_factor() == 0,
         "mode is TOURNAMENT, where those meet who have done the same steps; remove straggler_factor, or set mode: "
         "AVERAGE");
}

void Checker::CheckStale(bool outer_momentum) {
  Expect(!outer_momentum && !settings_.outer_nesterov(),
         "mode is STALE, where there are no rounds that an outer momentum could count; remove outer_momentum, "
         "outer_momentum_by_workers and outer_nesterov (outer_lr may stay), or set mode: AVERAGE");
  Expect(settings_.history() != DistributedParameter::MEAN,
         "mode is STALE, where workers do not wait for each other's histories, but history is MEAN; set history: LOCAL "
         "or RESET, or mode: AVERAGE");
  Expect(settings_.down_codec() == DistributedParameter::NONE,
         "mode is STALE, where workers skip versions of the parameters, so that differences between two of them are of "
         "no use; remove down_codec (codec may stay), or set mode: AVERAGE");
  Expect(settings_.straggler_factor() == 0,
         "mode is STALE, where nobody waits for slow workers; remove straggler_factor and set staleness, or set mode: "
         "AVERAGE");
}

void Checker::CheckTopology() {
  if (settings_.topology() == DistributedParameter::STAR) {
    Warn(settings_.has_keep_rounds(),
         "keep_rounds has no effect with topology: STAR, where the coordinator has the parameters of every round");
    return;
  }
  const std::string topology = "topology is " + DistributedParameter::Topology_Name(settings_.topology()) + ", ";
  const std::string mode = DistributedParameter::Mode_Name(settings_.mode());
  Expect(settings_.mode() == DistributedParameter::AVERAGE || settings_.mode() == DistributedParameter::GRADIENT,
         topology + "where workers take means among themselves, but mode is " + mode +
             "; set mode: AVERAGE or GRADIENT, or topology: STAR");
  const auto uncoded = [&](const char* field, DistributedParameter::Codec codec) {
    Expect(codec == DistributedParameter::NONE || settings_.topology() == DistributedParameter::SHARDED,
           topology + "where sums that grow from worker to worker would have to be coded anew at each of them, but " +
               field + " is " + DistributedParameter::Codec_Name(codec) + "; set topology: SHARDED, or remove " +
               field);
  };
  uncoded("codec", settings_.codec());
  uncoded("down_codec", settings_.down_codec());
  Expect(settings_.local_workers() == 0 || settings_.endpoint().empty(),
         topology +
             "where all workers must reach each other, but those that local_workers starts have no address for "
             "those that join at endpoint; remove one of the two (workers of this machine may --join, too), or "
             "set topology: STAR");
}

void Checker::CheckOverlap() {
  if (settings_.overlap() == DistributedParameter::WAIT) return;
  if (settings_.overlap() == DistributedParameter::BACKWARD) return CheckBackward();
  Expect(settings_.mode() == DistributedParameter::AVERAGE,
         "overlap is DELAYED, which trains on from parameters while their average is under way, but mode is " +
             DistributedParameter::Mode_Name(settings_.mode()) + "; set mode: AVERAGE, or remove overlap");
  Expect(settings_.history() != DistributedParameter::MEAN,
         "overlap is DELAYED, where workers go on with a history of their own, but history is MEAN; set history: LOCAL "
         "or RESET, or remove overlap");
}

void Checker::CheckBackward() {
  Expect(settings_.mode() == DistributedParameter::GRADIENT,
         "overlap is BACKWARD, where gradients are on their way while the backward pass makes others, but mode is " +
             DistributedParameter::Mode_Name(settings_.mode()) + "; set mode: GRADIENT, or remove overlap" +
             (settings_.mode() == DistributedParameter::AVERAGE ? ", or set overlap: DELAYED" : ""));
  Expect(settings_.topology() == DistributedParameter::SHARDED,
         "overlap is BACKWARD, where each worker sums its part of the gradients that are there, but topology is " +
             DistributedParameter::Topology_Name(settings_.topology()) +
             ", which sums all of them at once; set topology: SHARDED, or remove overlap");
  Expect(settings_.straggler_factor() == 0,
         "overlap is BACKWARD, where workers begin to exchange gradients before it is known who is late; remove "
         "straggler_factor, or overlap");
}

std::vector<Diagnostic> Checker::Run() {
  CheckNumbers();
  CheckWorkers();
  CheckRounds();
  return RunExchange();
}

std::vector<Diagnostic> Checker::RunExchange() {
  CheckTopology();
  CheckOverlap();
  std::vector<Diagnostic> errors;
  for (const Diagnostic& diagnostic : found_) {
    if (diagnostic.severity == Diagnostic::Severity::kError) errors.push_back(diagnostic);
  }
  if (!errors.empty()) throw UserError(std::move(errors));
  return found_;
}

}  // namespace

bool IsDistributed(const SolverParameter& solver) {
  const DistributedParameter& settings = solver.distributed();
  return solver.has_distributed() && settings.mode() != DistributedParameter::OFF &&
         settings.engine() == DistributedParameter::ZMQ && settings.mode() != DistributedParameter::HOGWILD &&
         (settings.local_workers() > 0 || !settings.endpoint().empty());
}

std::vector<Diagnostic> CheckDistributed(const SolverFile& file) { return Checker(file).Run(); }

void CheckExchange(const SolverFile& file) { Checker(file).RunExchange(); }

int ExpectedWorkers(const DistributedParameter& settings) {
  if (settings.has_expected_workers()) return static_cast<int>(std::max(1u, settings.expected_workers()));
  return static_cast<int>(std::max(1u, settings.local_workers()));
}

int MinWorkers(const DistributedParameter& settings) {
  return settings.min_workers() > 0 ? static_cast<int>(settings.min_workers()) : ExpectedWorkers(settings) / 2 + 1;
}

TransferOptions TransferOf(const DistributedParameter& settings) {
  TransferOptions options;
  options.chunk_bytes = settings.chunk_bytes();
  options.credits = settings.credits();
  options.patience = 5 * static_cast<Milliseconds>(settings.heartbeat_ms());
  return options;
}

WorkerTiming TimingOf(const DistributedParameter& settings) {
  return {settings.heartbeat_ms(), settings.dead_ms(), settings.orphan_ms()};
}

CoordinatorOptions ProtocolOf(const SolverParameter& solver) {
  const DistributedParameter& settings = solver.distributed();
  CoordinatorOptions options;
  const bool averages = settings.mode() != DistributedParameter::GRADIENT;
  const bool elastic = settings.mode() == DistributedParameter::ELASTIC;
  options.own_parameters = elastic;
  options.tournament = settings.mode() == DistributedParameter::TOURNAMENT;
  options.stale = settings.mode() == DistributedParameter::STALE;
  options.expected_workers = ExpectedWorkers(settings);
  options.min_workers = MinWorkers(settings);
  options.max_workers = static_cast<int>(settings.max_workers());
  options.local_steps = averages ? static_cast<int>(settings.local_steps()) : 1;
  options.max_iter = static_cast<uint64_t>(std::max(0, solver.max_iter()));
  const auto stop_at = [&](int interval) {
    if (interval > 0) options.stops.push_back(static_cast<uint64_t>(interval));
  };
  stop_at(solver.test_interval());
  stop_at(solver.snapshot());
  // Of a tournament's participants each has its own, which goes along.
  options.history_always = averages && (settings.history() == DistributedParameter::MEAN ||
                                        (options.tournament && settings.history() == DistributedParameter::LOCAL));
  if (elastic ||
      (averages && !options.stale && !options.tournament && settings.history() == DistributedParameter::LOCAL)) {
    // A snapshot at the end only is a snapshot, too. Those with parameters of their own give these up there, too.
    options.history_every = solver.snapshot() > 0 ? static_cast<uint64_t>(solver.snapshot()) : options.max_iter;
  }
  options.heartbeat = settings.heartbeat_ms();
  options.dead = settings.dead_ms();
  options.stall = settings.stall_ms();
  options.join_timeout = settings.join_timeout_ms();
  options.recovery = 3 * options.dead;
  options.straggler_factor = static_cast<double>(settings.straggler_factor());
  options.staleness = settings.staleness();
  options.drop_nonfinite = settings.drop_nonfinite();
  options.transfer = TransferOf(settings);
  options.topology = settings.topology();
  options.keep_rounds = settings.keep_rounds();
  options.train_ahead = averages && settings.overlap() == DistributedParameter::DELAYED;
  return options;
}

}  // namespace crema
