// CheckSolver: what a solver file can get wrong by itself, all of it at once.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/byte_size.h"
#include "base/listed.h"
#include "base/number_text.h"
#include "base/suggest.h"
#include "crema/solver.h"
#include "solver/average_precision.h"
#include "solver/checks/epochs.h"
#include "solver/checks/solver_fields.h"
#include "solver/checks/update_rule_check.h"
#include "solver/ranks/hogwild.h"
#include "solver/rules/rates.h"

namespace crema {

namespace {

class Checker : private SolverFields {
 public:
  explicit Checker(const SolverFile& file) : SolverFields(file), solver_(file.solver) {}

  std::vector<Diagnostic> Run() {
    CheckNets();
    CheckTests();
    CheckSchedule();
    CheckUpdateRule(solver_, *this);
    CheckLoop();
    CheckSnapshots();
    if (TrainsHogwild(solver_)) CheckHogwild();
    return diagnostics();
  }

 private:
  void CheckNets();
  void CheckTests();
  bool HasGenericNet() const { return solver_.has_net() || solver_.has_net_param(); }
  void CheckTestStates(int nets);
  void CheckSchedule();
  bool ReadsBaseRate() const { return solver_.lr_policy() != "multifixed" || WarmUpOf(solver_).iterations > 0; }
  void CheckWarmUp();
  void CheckStages();
  // Iterations, each of which must exceed the one before it.
  void Increasing(const std::string& field, const google::protobuf::RepeatedField<int32_t>& values,
                  const std::string& hint) {
    for (int i = 0; i < values.size(); ++i) {
      if (values[i] >= 0 && (i == 0 || values[i] > values[i - 1])) continue;
      return Error(field, field + " " + std::to_string(values[i]) +
                              (values[i] < 0 ? " is negative"
                                             : " does not exceed the one before it, " + std::to_string(values[i - 1])) +
                              "; " + hint);
    }
  }
  void CheckLoop();
  void CheckSnapshots();
  void CheckHogwild();

  const SolverParameter& solver_;
};

void Checker::CheckNets() {
  std::vector<std::string> given;
  for (const char* field : {"net", "net_param", "train_net", "train_net_param"}) {
    if (Has(field)) given.push_back(field);
  }
  if (given.empty()) {
    Error("net", "no train net: add net: \"path/of/net.prototxt\"");
  } else if (given.size() > 1) {
    Error(given[1], "the train net is given twice, by " + given[0] + " and by " + given[1] +
                        "; keep one of net, net_param, train_net and train_net_param");
  }
}

void Checker::CheckTests() {
  const int counts = solver_.test_iter_size();
  const int named = solver_.test_net_size() + solver_.test_net_param_size();
  if (HasGenericNet() ? named > counts : named != counts) {
    Error(counts > 0 ? "test_iter" : (solver_.test_net_size() > 0 ? "test_net" : "test_net_param"),
          std::to_string(named) + " test nets but " + std::to_string(counts) +
              " test_iter; give one test_iter for each test_net and test_net_param" +
              (named == 0 ? ", and a test_net to test on (or one `net` for training and testing)" : ""));
  }
  CheckTestStates(std::max(counts, named));
  for (const int iterations : solver_.test_iter()) {
    if (iterations < 1) {
      Error("test_iter", "test_iter is " + std::to_string(iterations) +
                             " but must be at least 1: the number of batches a test averages over");
      break;
    }
  }
  NotNegative("test_interval", solver_.test_interval());
  if (counts > 0 && solver_.test_interval() == 0) {
    Error(Has("test_interval") ? "test_interval" : "test_iter",
          "test_interval is missing or 0 although there is a test net; set it to the number of iterations between "
          "tests, or remove test_iter");
  }
  Word("eval_type", solver_.eval_type(), {"classification", "detection"});
  Word("ap_version", solver_.ap_version(), ApVersionNames());
  if (solver_.eval_type() == "classification") {
    for (const char* field : {"ap_version", "show_per_class_result"}) {
      if (Has(field)) Warn(field, std::string(field) + " has no effect without eval_type: \"detection\"");
    }
  }
  if (solver_.has_best() && counts == 0) {
    Error("best", "best looks at tests, but there are none; set test_iter and test_interval");
  }
  if (solver_.has_ema() && !(solver_.ema().decay() >= 0 && solver_.ema().decay() < 1)) {
    Error("ema.decay",
          "decay is " + FormatNumber(solver_.ema().decay()) + " but must be at least 0 and below 1; 0.999 is usual");
  }
  if (counts == 0 && named == 0 && solver_.test_interval() > 0) {
    Warn("test_interval", "nothing is tested: test_interval is set but there is no test_iter");
  }
}

void Checker::CheckTestStates(int nets) {
  const int states = solver_.test_state_size();
  if (states == 0 || states == nets) return;
  std::string what = std::to_string(states) + " test_state for " + std::to_string(nets) + " test nets; ";
  if (states > nets && nets == solver_.test_iter_size() && nets > 0 && HasGenericNet()) {
    what += "each test_iter makes one of `net`: write";
    for (int i = 0; i < states; ++i) what += " test_iter: " + std::to_string(solver_.test_iter(std::min(i, nets - 1)));
  } else if (states < nets) {
    what += "add test_state { }, which is no stage and level 0, for those that need none, or remove all";
  } else {
    what += "give one for each test_net and test_net_param, or none";
  }
  Error("test_state", what);
}

void Checker::CheckSchedule() {
  const float infinity = std::numeric_limits<float>::infinity();
  if (!solver_.has_base_lr() && ReadsBaseRate()) {
    Error("base_lr", "base_lr is missing: the learning rate at the start, such as base_lr: 0.01");
  } else {
    NotNegative("base_lr", solver_.base_lr());
  }
  if (!solver_.has_max_iter()) {
    Error("max_iter", "max_iter is missing: the number of iterations to train for (or in_epochs { max_iter: 30 })");
  } else {
    NotNegative("max_iter", solver_.max_iter());
  }
  std::vector<std::string> names;
  for (const RatePolicy& policy : RatePolicies()) names.push_back(policy.name);
  const RatePolicy* policy = FindRatePolicy(solver_.lr_policy());
  if (policy == nullptr) {
    Error("lr_policy",
          (solver_.has_lr_policy() ? "unknown lr_policy \"" + solver_.lr_policy() + "\"" : "lr_policy is missing") +
              (solver_.has_lr_policy() ? DidYouMean(solver_.lr_policy(), names) : "") + "; it may be " +
              Listed(names, {.most = kAllNames}));
    return;
  }
  const auto reads = [&](const std::string& field) {
    return std::find(policy->fields.begin(), policy->fields.end(), field) != policy->fields.end();
  };
  for (const std::string& field : policy->fields) {
    if (!Has(field)) Error("lr_policy", "lr_policy \"" + policy->name + "\" needs " + field + ", which is missing");
  }
  for (const char* field : {"gamma", "power", "stepsize", "stepvalue", "stagelr", "stageiter", "plateau_winsize"}) {
    if (Has(field) && !reads(field)) {
      Warn(field, std::string(field) + " is not read by lr_policy \"" + policy->name + "\"");
    }
  }
  if (reads("gamma") && Has("gamma")) {
    Range("gamma", solver_.gamma(), policy->name == "sigmoid" ? -std::numeric_limits<float>::max() : 0, infinity);
  }
  if (reads("power") && Has("power")) NotNegative("power", solver_.power());
  if (reads("stepsize") && Has("stepsize")) Range("stepsize", solver_.stepsize(), policy->name == "step", infinity);
  if (reads("stepvalue")) {
    Increasing("stepvalue", solver_.stepvalue(), "list the iterations at which the rate drops in increasing order");
  }
  if (reads("stagelr")) CheckStages();
  for (const int size : solver_.plateau_winsize()) {
    if (size < 1) {
      Error("plateau_winsize", "plateau_winsize is " + std::to_string(size) +
                                   " but must be at least 1: the iterations without a new minimum of the loss");
      break;
    }
  }
  CheckWarmUp();
}

void Checker::CheckStages() {
  Increasing("stageiter", solver_.stageiter(), "list the last iteration of each stagelr in increasing order");
  const bool both = Has("stagelr") && Has("stageiter");
  if (both && solver_.stagelr_size() != solver_.stageiter_size()) {
    Error("stagelr", std::to_string(solver_.stagelr_size()) + " stagelr but " +
                         std::to_string(solver_.stageiter_size()) + " stageiter; give one stageiter for each stagelr");
  }
  for (const float rate : solver_.stagelr()) {
    if (rate >= 0 && std::isfinite(rate)) continue;
    Error("stagelr", "stagelr is " + FormatNumber(rate) + " but must be at least 0");
    break;
  }
}

void Checker::CheckWarmUp() {
  NotNegative("warmup_iter", solver_.warmup_iter());
  NotNegative("warmup_start_lr", solver_.warmup_start_lr());
  NotNegative("rampup_interval", solver_.rampup_interval());
  NotNegative("rampup_lr", solver_.rampup_lr());
  if (!(solver_.warmup_power() > 0 && std::isfinite(solver_.warmup_power()))) {
    Error("warmup_power",
          "warmup_power is " + FormatNumber(solver_.warmup_power()) + "; it must be above 0, and finite");
  }
  NotNegative("min_lr", solver_.min_lr());
  if (solver_.warmup_iter() > 0 && solver_.rampup_interval() > 0) {
    Error("rampup_interval", "warmup_iter and rampup_interval are both set; they are the same, keep one of them");
  }
  for (const auto& [start, length, iterations] :
       {std::tuple("warmup_start_lr", "warmup_iter", solver_.warmup_iter()),
        std::tuple("rampup_lr", "rampup_interval", solver_.rampup_interval())}) {
    if (Has(start) && iterations <= 0) Warn(start, std::string(start) + " has no effect without " + length);
  }
  if (Has("warmup_power") && WarmUpOf(solver_).iterations <= 0) {
    Warn("warmup_power", "warmup_power has no effect without warmup_iter");
  }
  if (ReadsBaseRate() && solver_.base_lr() >= 0 && Has("base_lr") && solver_.min_lr() > solver_.base_lr()) {
    Error("min_lr", "min_lr is " + FormatNumber(solver_.min_lr()) + ", above base_lr, " +
                        FormatNumber(solver_.base_lr()) + "; lower it, it is where the rate ends");
  }
  const int warm_up = WarmUpOf(solver_).iterations;
  if (solver_.max_iter() > 0 && warm_up >= solver_.max_iter()) {
    Warn(solver_.warmup_iter() > 0 ? "warmup_iter" : "rampup_interval",
         "the warm-up takes " + std::to_string(warm_up) + " iterations, and max_iter is " +
             std::to_string(solver_.max_iter()) + ": lr_policy is never used");
  }
}

void Checker::CheckLoop() {
  if (solver_.solver_data_type() == NumberType::FLOAT16) {
    Warn("solver_data_type",
         "solver_data_type: FLOAT16 has no effect: parameters and their history have 32 bits; precision: FP16 or BF16 "
         "says what nets compute in");
  }
  Range("iter_size", solver_.iter_size(), 1, std::numeric_limits<double>::infinity());
  Range("average_loss", solver_.average_loss(), 1, std::numeric_limits<double>::infinity());
  NotNegative("display", solver_.display(), "; 0 shows nothing");
  NotNegative("loss_scale", solver_.loss_scale(), "; 0 finds it while training");
  if (solver_.loss_scale() != 0 && solver_.precision() != SolverParameter::FP16) {
    Warn("loss_scale", "loss_scale is read with precision: FP16 only");
  }
  if (solver_.has_memory_limit() && ParseBytes(solver_.memory_limit()).value_or(0) == 0) {
    Error("memory_limit",
          "memory_limit is \"" + solver_.memory_limit() + "\"; give a size such as \"800MB\" or \"2GiB\"");
  }
}

void Checker::CheckSnapshots() { NotNegative("snapshot", solver_.snapshot(), "; 0 writes none until the end"); }

void Checker::CheckHogwild() {
  if (solver_.lr_policy() == "plateau") {
    Error("lr_policy",
          "lr_policy \"plateau\" goes by the loss of each iteration, for which no thread of mode: HOGWILD waits; use "
          "\"multistep\" or \"cosine\", or remove the mode");
  }
  const DistributedParameter& settings = solver_.distributed();
  const uint32_t threads = settings.local_workers();
  if (threads < 1 || threads > 256) {
    Error("distributed", "distributed: mode is HOGWILD and local_workers is " + std::to_string(threads) +
                             "; set local_workers (--workers) to the number of threads, from 2 to 256");
  } else if (threads == 1) {
    Warn("distributed",
         "distributed: mode is HOGWILD with one thread, which trains as without this block; set local_workers to "
         "the number of threads");
  }
  if (settings.history() != DistributedParameter::LOCAL) {
    Error("distributed",
          "distributed: mode is HOGWILD, where each thread keeps what it remembers of gradients, but "
          "history is " +
              DistributedParameter::History_Name(settings.history()) + "; remove history, or set mode: AVERAGE");
  }
  std::vector<const google::protobuf::FieldDescriptor*> given;
  settings.GetReflection()->ListFields(settings, &given);
  std::string without_meaning;
  for (const auto* field : given) {
    const std::string name(field->name());
    if (name == "mode" || name == "local_workers" || name == "history" || name == "batch_norm") continue;
    without_meaning += (without_meaning.empty() ? "" : ", ") + name;
  }
  if (!without_meaning.empty()) {
    Error(
        "distributed",
        "distributed: mode is HOGWILD, whose threads share the memory of one process, take no rounds and send nothing, "
        "but these are set: " +
            without_meaning + "; remove them, or set another mode");
  }
}

}  // namespace

std::vector<Diagnostic> CheckSolver(const SolverFile& file) {
  if (!file.solver.has_in_epochs()) return Checker(file).Run();
  Diagnostics found;
  CheckEpochs(file, &found);
  if (found.has_errors()) return found.list();
  // How long an epoch is is not known yet; all else can be checked with any length.
  return Checker(WithLengths(file, {.train = 1000})).Run();
}

}  // namespace crema
