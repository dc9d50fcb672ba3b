// From a running solver to a snapshot and back.
#include <unistd.h>

#include <algorithm>

#include "solver/rates.h"
#include "solver/solver_impl.h"

namespace crema {

namespace {

constexpr char kTrainNet[] = "train";

std::string TestNet(size_t index) { return "test" + std::to_string(index); }

void AddPositions(const std::string& net, const std::vector<std::pair<std::string, uint64_t>>& positions,
                  SolverState* state) {
  for (const auto& [layer, records] : positions) {
    DataPosition* position = state->add_data_position();
    position->set_net(net);
    position->set_layer(layer);
    position->set_records(records);
  }
}

std::vector<StoredHistory> Histories(const Updater& updater, std::span<const Parameter> parameters) {
  std::vector<StoredHistory> histories;
  for (int i = 0; i < updater.histories(); ++i) {
    const Parameter& parameter = parameters[i % parameters.size()];
    histories.emplace_back(updater.history(i), parameter.shape, parameter.layout.get(), *parameter.device);
  }
  return histories;
}

}  // namespace

void Solver::Impl::Snapshot() {
  if (prefix.empty()) throw EnvironmentError("no snapshot can be written: snapshot_prefix is not set");
  Settle();
  Stopwatch watch;
  SolverState state;
  state.set_iter(iteration);
  state.set_current_step(RateStepAt(param, std::max(0, iteration - 1)));
  state.set_solver_type(UpdateRuleName(param));
  state.set_random_seed(seed);
  for (const float loss : losses.losses()) state.add_recent_loss(loss);
  AddPositions(kTrainNet, net->data_positions(), &state);
  for (size_t i = 0; i < test_nets.size(); ++i) {
    AddPositions(TestNet(i), testing ? positions_before_test[i] : test_nets[i]->data_positions(), &state);
  }

  if (best && best->has_value()) *state.mutable_best() = testing ? best_before_test : best->state();
  if (cluster_state) *state.mutable_cluster() = cluster_state();
  if (updater->finds_loss_scale()) {
    const LossScale loss_scale = updater->ReadLossScale();
    state.set_loss_scale(loss_scale.scale);
    state.set_loss_scale_updates(loss_scale.updates);
  }

  std::vector<StoredHistory> histories = Histories(*updater, std::as_const(*net).parameters());
  std::vector<std::vector<float>> means;  // over threads that share all but their histories
  for (int i = 0; hogwild && ranks > 1 && i < updater->histories(); ++i) {
    means.push_back(MeanHistory(i));
    histories[static_cast<size_t>(i)].values = Tensor(means.back().data(), updater->history(i).spec());
  }
  SnapshotWritten written;
  written.bytes = WriteSnapshot(prefix, net->ToProto(param.snapshot_diff()), std::move(state), histories);
  written.iteration = iteration;
  written.model_path = ModelPath(prefix, iteration);
  written.state_path = StatePath(prefix, iteration);
  written.seconds = watch.Seconds();
  saved_iteration = iteration;
  last_snapshot = written.state_path;
  Tell(&Observer::OnSnapshot, written);
}

void Solver::Impl::TrySnapshot() {
  if (rank > 0) return;
  try {
    Snapshot();
  } catch (const EnvironmentError& error) {
    ++failed_snapshots;
    Tell(&Observer::OnSnapshotFailed, SnapshotFailed{iteration, error.what()});
  }
}

void Solver::Impl::RestoreBest(const BestState& state) {
  const std::string path = BestModelPath(prefix);
  if (access(path.c_str(), R_OK) == 0) {
    best->Restore(state);
  } else {
    Warn({}, "the best parameters so far, of iteration " + std::to_string(state.iteration()) + ", are not in \"" +
                 path + "\" any more: the best of the tests to come are kept");
  }
}

void Solver::Impl::Restore(const LoadedState& loaded) {
  const SolverState& state = loaded.state;
  const WeightsReport report = net->LoadWeights(ReadWeights(loaded.model_path));
  if (!report.fresh.empty()) {
    throw UserError(Location{loaded.model_path, 0, 0},
                    "holds no weights for layer \"" + report.fresh.front() +
                        "\" of this net: the snapshot is of another net; to start a new training from its weights use "
                        "--weights instead");
  }
  RestoreHistory(loaded, UpdateRuleName(param), Histories(*updater, std::as_const(*net).parameters()));
  iteration = saved_iteration = state.iter();
  for (const float loss : state.recent_loss()) losses.Add(loss);
  if (best && state.best().has_value()) RestoreBest(state.best());
  if (state.has_cluster()) restored_cluster = state.cluster();
  if (state.has_loss_scale() && updater->finds_loss_scale()) {
    updater->RestoreLossScale({.scale = state.loss_scale(), .updates = state.loss_scale_updates()});
  }

  const auto restore_positions = [&](const std::string& name, Net& target) {
    for (const auto& [layer, now] : target.data_positions()) {
      bool found = false;
      for (const DataPosition& position : state.data_position()) {
        if (position.net() != name || position.layer() != layer) continue;
        target.set_data_position(layer, position.records());
        found = true;
      }
      if (!found && loaded.exact) {
        Warn({}, "the snapshot knows no position of data layer \"" + layer + "\" of the " + name +
                     " net: it starts at the first record");
      }
    }
  };
  restore_positions(kTrainNet, *net);
  for (size_t i = 0; i < test_nets.size(); ++i) restore_positions(TestNet(i), *test_nets[i]);
  if (!loaded.exact) {
    Warn(Location{loaded.state_path, 0, 0},
         "written by Caffe, which saves neither data positions nor the seed: data starts at the first record");
  }
  Tell(&Observer::OnRestored, SnapshotRestored{loaded.state_path, loaded.model_path, iteration, loaded.exact});
}

}  // namespace crema
