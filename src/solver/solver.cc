// Construction of a solver, and its public face.
#include "crema/solver.h"

#include <algorithm>
#include <random>
#include <set>

#include "base/compute_threads.h"
#include "base/paths.h"
#include "base/trimmed.h"
#include "compiler/compiler.h"
#include "device/device.h"
#include "graph/program.h"
#include "runtime/refuse_inputs.h"
#include "schema/weights_files.h"
#include "solver/checks/epochs.h"
#include "solver/checks/likely_mistakes.h"
#include "solver/nets.h"
#include "solver/solver_impl.h"

namespace crema {

Solver::Impl::Impl(const SolverFile& file, SolverOptions given)
    : param(file.solver),
      options(std::move(given)),
      snapshots(std::make_shared<RunSnapshots>(param, options)),
      losses(std::max(1, file.solver.average_loss())) {
  best_file.emplace(snapshots->prefix(), snapshots->format());
  if (options.devices.empty()) options.devices = {options.device};
  for (Device*& of_rank : options.devices) {
    if (!of_rank) of_rank = &CpuDevice();
  }
  std::erase(options.observers, nullptr);
  device = options.device = options.devices[0];
  if (options.processes && options.processes->ranks() == 1) options.processes = nullptr;
  ranks = options.processes ? options.processes->ranks() : static_cast<int>(options.devices.size());
  if (options.processes) rank = options.processes->rank();
  if (rank > 0) options.observers.clear();

  LoadedState loaded;
  bool resume = false;
  InAll([&] {
    Check(file);
    ap_version = *ApVersionOf(param.ap_version());
    if (rank > 0) return;
    if (options.snapshot == "auto") {
      resume = LoadNewestState(
          snapshots->prefix(), [this](const Diagnostic& d) { Tell(&Observer::OnNotice, d); }, &loaded,
          snapshots->format());
      if (!resume)
        Warn({}, "no snapshot to resume from at " + StatePath(snapshots->prefix(), 0, snapshots->format()) +
                     " and higher: a fresh start");
    } else if (!options.snapshot.empty()) {
      loaded = LoadState(FindFile(options.snapshot, SearchFolders(options)));
      resume = true;
    }
  });

  ChooseHogwild();
  const bool shares = options.role == Role::kAlone && TrainsHogwild(param);
  ChooseSeed(resume ? &loaded : nullptr);
  if (options.processes) {
    options.processes->Broadcast(&seed, sizeof seed);
  } else if (ranks > 1 && !shares) {
    group = Connect(options.devices);
  }
  NetPlans plans;
  InAll([&] {
    plans = PlanNets(file, options, Context{device, seed, options.data_threads, rank, ranks});
    BuildTrainNet(plans);
  });
  if (options.processes) ConnectProcesses(plans);
  InAll([&] {
    BuildTestNets(plans, file);
    if (options.role != Role::kAlone) {
      RefuseInputs("in its own process only: train on one machine");
      RefuseOutputs(*net, "several workers train it");
    }
    MakeUpdater();
    if (rank > 0) return;
    if (param.has_ema()) average.emplace(param.ema(), *net, *device);
    if (resume) {
      Restore(loaded);
    } else if (options.role != Role::kWorker) {
      LoadWeights();
      if (average) average->Restart();
    }
    CheckTournamentTests(file);
    CheckNamesForHdf5();
    CheckSnapshotSize();
  });
  if (shares) {
    MakeHogwild(file);
  } else if (ranks > 1 && !options.processes) {
    MakeRanks(file);
  }
}

void Solver::Impl::ChooseSeed(const LoadedState* loaded) {
  const bool saved = loaded != nullptr && loaded->state.has_random_seed();
  if (options.seed || param.random_seed() >= 0) {
    seed = options.seed ? *options.seed : static_cast<uint64_t>(param.random_seed());
    if (saved && seed != loaded->state.random_seed()) {
      Warn({}, "the random seed is now " + std::to_string(seed) + " but the snapshot was written with " +
                   std::to_string(loaded->state.random_seed()) + ": the run will not be the same as without a break");
    }
  } else if (saved) {
    seed = loaded->state.random_seed();
  } else {
    seed = std::random_device{}();
    seed_drawn = true;
  }
}

void Solver::Impl::BuildTrainNet(NetPlans& plans, const Net* shared) {
  updates_singly = !plans.train.options.keep_gradients;
  shows_sizes = plans.shows_sizes;
  device->UseHere();
  plans.train.options.train_with = shared;
  // Kernels are made for as many threads as run them.
  const ComputeThreads share(ThreadsOfNet());
  net = std::make_unique<Net>(plans.train.file, plans.train.options);
}

void Solver::Impl::BuildTestNets(NetPlans& plans, const SolverFile& file) {
  if (rank > 0) return;
  for (NetPlan& plan : plans.tests) {
    plan.options.share_with = net.get();
    plan.options.share_memory = true;
    test_nets.push_back(std::make_unique<Net>(plan.file, plan.options));
  }
  RefuseOverwriting();
  CheckEvalType(file);
  std::vector<Diagnostic> warnings;
  if (param.has_best() && !test_nets.empty()) best.emplace(file, *test_nets[0], &warnings);
  // Train and test nets mostly come from one file, whose warnings are worth telling once.
  std::set<std::string> told;
  const auto tell = [&](const std::vector<Diagnostic>& warnings) {
    for (const Diagnostic& warning : warnings) {
      if (told.insert(warning.ToString()).second) Tell(&Observer::OnNotice, warning);
    }
  };
  tell(plans.warnings);
  tell(net->warnings());
  for (const auto& test_net : test_nets) tell(test_net->warnings());
  tell(warnings);
  WarnOfRecurrentLayers();
  WarnOfNothingToLearn();
  WarnOfSizes(plans);
}

void Solver::Impl::MakeUpdater() {
  const bool half_precision = net->compiled().graph.factors == Factors::kF16;
  // Threads that share parameters do not sum their gradients.
  const int summed = TrainsHogwild(param) ? 1 : ranks;
  updater = std::make_unique<Updater>(param, std::as_const(*net).parameters(), *device, summed, half_precision);
  if (updater->loss_factor()) net->set_loss_factor(updater->loss_factor());
}

void Solver::Impl::LoadWeights() {
  std::vector<std::string> lists = options.weights;
  if (lists.empty()) lists.assign(param.weights().begin(), param.weights().end());
  std::vector<WeightsLoaded> files;
  std::set<std::string> copied;
  for (const std::string& list : lists) {
    for (const std::string& name : CommaParts(list)) {
      if (name.empty()) continue;  // of a comma at the end
      WeightsLoaded& loaded = files.emplace_back();
      loaded.path = FindFile(name, SearchFolders(options));
      const std::vector<LayerWeights> weights = ReadWeights(loaded.path);
      // First: what a test net shares with the train net is what that has in the file.
      const std::set<std::string> in_test_nets = LoadIntoTestNets(weights);
      loaded.report = net->LoadWeights(weights);
      for (const std::string& layer : in_test_nets) {
        if (std::erase(loaded.report.ignored, layer) > 0) loaded.report.copied.push_back(layer);
      }
      copied.insert(loaded.report.copied.begin(), loaded.report.copied.end());
    }
  }
  for (WeightsLoaded& loaded : files) {
    // What another file gave does not start afresh.
    if (files.size() > 1) {
      std::erase_if(loaded.report.fresh, [&](const std::string& layer) { return copied.contains(layer); });
    }
    if (loaded.report.copied.empty() && !std::as_const(*net).parameters().empty()) {
      throw UserError({loaded.path, 0, 0}, DescribeUnused("the train net"));
    }
    Tell(&Observer::OnWeights, loaded);
  }
  WarnOfTestsOwnLayers();
  for (const Diagnostic& mistake : LikelyMistakes({param, *net, test_nets, copied})) {
    Tell(&Observer::OnNotice, mistake);
  }
}

void Solver::Impl::Warn(Location where, std::string message) const {
  Tell(&Observer::OnNotice, Diagnostic{Diagnostic::Severity::kWarning, std::move(where), std::move(message)});
}

SolverAction Solver::Impl::RequestedAction() const {
  return options.requested_action ? options.requested_action() : SolverAction::kNone;
}

void Solver::Impl::InAll(const std::function<void()>& action) const {
  if (!options.processes) return action();
  Together(*options.processes, action);
}

Solver::Solver(const SolverFile& file, SolverOptions options) {
  int ranks = std::max(1, static_cast<int>(options.devices.size()));
  if (TrainsHogwild(file.solver)) ranks = std::max(1, static_cast<int>(file.solver.distributed().local_workers()));
  SolverFile in_iterations;
  EpochProgress progress;
  const auto read = [&] { progress = ReadEpochProgress(file, options); };
  const auto count = [&] { in_iterations = InIterations(file, options, ranks, progress); };
  if (options.processes) {
    ranks = options.processes->ranks();
    Together(*options.processes, [&] {
      if (options.processes->rank() == 0) read();
    });
    options.processes->Broadcast(&progress, sizeof progress);
    Together(*options.processes, count);
  } else {
    read();
    count();
  }
  options.tests_from_the_first |= TestsFromTheFirst(file);
  impl_ = std::make_unique<Impl>(in_iterations, std::move(options));
}
Solver::~Solver() = default;

namespace {

// Observers are called within what they would begin anew.
class Busy {
 public:
  Busy(bool* busy, SolverOptions::Role role, const std::string& what) : busy_(busy) {
    if (role != SolverOptions::Role::kAlone) {
      throw UserError("Solver::" + what + " is not for SolverOptions::role, which is of crema's own programs");
    }
    if (*busy) {
      throw UserError("Solver::" + what +
                      " was called by an observer, while the solver trains or tests; call it when Train, Step or Test "
                      "has returned");
    }
    *busy = true;
  }
  ~Busy() { *busy_ = false; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  bool* const busy_;
};

}  // namespace

TrainingResult Solver::Train() {
  const Busy busy(&impl_->busy, impl_->options.role, "Train");
  return impl_->Train();
}
bool Solver::Step(int iterations) {
  const Busy busy(&impl_->busy, impl_->options.role, "Step");
  return impl_->Step(iterations);
}
bool Solver::Test() {
  const Busy busy(&impl_->busy, SolverOptions::Role::kAlone, "Test");
  const bool goes_on = impl_->Test();
  // Else a resumed run tests again here, and begins with what this test did.
  if (!impl_->TestIsDue()) impl_->before_test.iteration = -1;
  return goes_on;
}
void Solver::Snapshot() {
  if (impl_->undo.passes_done()) {
    throw UserError("Solver::Snapshot was called within an iteration, by an observer; call it from OnIteration");
  }
  impl_->Snapshot();
}
int Solver::iteration() const { return impl_->iteration; }
float Solver::learning_rate() const { return impl_->RateAt(impl_->iteration); }
float Solver::smoothed_loss() const { return impl_->losses.mean(); }
uint64_t Solver::seed() const { return impl_->seed; }
const std::string& Solver::snapshot_prefix() const { return impl_->snapshots->prefix(); }
Net& Solver::net() { return *impl_->net; }
int Solver::test_nets() const { return static_cast<int>(impl_->test_nets.size()); }
Net& Solver::test_net(int index) { return *impl_->test_nets.at(static_cast<size_t>(index)); }

}  // namespace crema
