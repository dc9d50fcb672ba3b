// From a running solver to a snapshot and back.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/paths.h"
#include "graph/program.h"
#include "solver/checks/epochs.h"
#include "solver/snapshots/net_change.h"
#include "solver/snapshots/parameter_places.h"
#include "solver/solver_impl.h"

namespace crema {

namespace {

constexpr char kTrainNet[] = "train";

std::string TestNet(size_t index) { return "test" + std::to_string(index); }

using DataExtents = std::vector<std::pair<std::string, DataExtent>>;

// `extents`: of the same layers, or none.
void AddPosition(const std::string& net, const NetPosition& position, const DataExtents& extents, SolverState* state) {
  for (size_t i = 0; i < position.records.size(); ++i) {
    const auto& [layer, records] = position.records[i];
    DataPosition* data = state->add_data_position();
    data->set_net(net);
    data->set_layer(layer);
    data->set_records(records);
    if (extents.empty()) continue;
    if (const uint64_t epoch = extents[i].second.epoch; epoch > 0) data->set_epoch_records(epoch);
    if (const uint64_t batch = extents[i].second.batch; batch > 0) data->set_batch_size(batch);
  }
  for (const auto& [layer, values] : position.recurrent) {
    RecurrentState* recurrent = state->add_recurrent_state();
    recurrent->set_net(net);
    recurrent->set_layer(layer);
    recurrent->mutable_value()->Add(values.begin(), values.end());
  }
}

// What a snapshot says of epochs that had other records than `now`, for the snapshots that follow it.
DataPosition EarlierEpochs(const DataPosition& stored, const DataExtent& now) {
  DataPosition earlier = stored;
  if (stored.epoch_records() > 0 && now.epoch > 0 && stored.epoch_records() != now.epoch) {
    earlier.set_epochs_before(EpochsDone(ProgressOf(0, stored), now.epoch));
    earlier.set_records_before(stored.records());
  }
  return earlier;
}

// How the data that a layer reads differs from what it read when a snapshot was written; empty: not, as far as is
// known.
std::string Difference(const DataPosition& stored, const DataExtent& now) {
  const auto differ = [](uint64_t then, uint64_t here) { return then > 0 && here > 0 && then != here; };
  std::string text;
  if (differ(stored.epoch_records(), now.epoch)) {
    text = "has " + std::to_string(now.epoch) + " records, and had " + std::to_string(stored.epoch_records());
  }
  if (differ(stored.batch_size(), now.batch)) {
    text += (text.empty() ? "takes " : ", and takes ") + std::to_string(now.batch) + " a batch instead of " +
            std::to_string(stored.batch_size());
  }
  return text;
}

std::vector<StoredHistory> Histories(const Updater& updater, std::span<const Parameter> parameters) {
  std::vector<StoredHistory> histories;
  for (int i = 0; i < updater.histories(); ++i) {
    const Parameter& parameter = parameters[i % parameters.size()];
    histories.emplace_back(updater.history(i), parameter.shape, parameter.layout.get(), *parameter.device);
  }
  return histories;
}

// The histories in the order of the state's parameters, whose places among the net's are given, or none.
std::vector<StoredHistory> InOrderOf(const std::vector<size_t>& places, size_t parameters,
                                     std::vector<StoredHistory> histories) {
  if (places.size() != parameters) return histories;
  std::vector<StoredHistory> ordered;
  for (size_t i = 0; i < histories.size(); ++i) {
    ordered.push_back(histories[i - i % parameters + places[i % parameters]]);
  }
  return ordered;
}

// What a state stores for a layer of one of its nets; of layers of one name each has its own, in their order.
template <typename Stored>
const Stored* FindStored(const google::protobuf::RepeatedPtrField<Stored>& all, const std::string& net,
                         const std::string& layer, int number) {
  for (const Stored& stored : all) {
    if (stored.net() == net && stored.layer() == layer && number-- == 0) return &stored;
  }
  return nullptr;
}

// Whether this is a snapshot of the run whose files have this prefix.
bool IsOfPrefix(const std::string& state, const std::string& prefix) {
  std::error_code error;
  return FileName(state).starts_with(FileName(prefix) + "_iter_") &&
         std::filesystem::equivalent(DirectoryOf(state), DirectoryOf(prefix), error);
}

}  // namespace

NetPosition Solver::Impl::PositionOf(const Net& of) const {
  NetPosition position{of.data_positions(), {}};
  if (const std::vector<uint64_t>* before = &of == net.get() ? undo.records() : nullptr) {
    for (size_t i = 0; i < position.records.size(); ++i) position.records[i].second = (*before)[i];
  }
  if (&of == net.get() && (ranks > 1 || options.role != Role::kAlone)) return position;
  for (const auto& [layer, values] : of.recurrent_states()) {
    std::vector<float> plain(static_cast<size_t>(values.count()));
    device->CopyOut(values.raw(), plain.data(), values.bytes());
    position.recurrent.emplace_back(layer, std::move(plain));
  }
  return position;
}

void Solver::Impl::Snapshot() {
  snapshots->Prepare();
  Settle();
  const bool tested = iteration == before_test.iteration;
  const bool moved = tested && before_test.statistics && (!average || average->exchanged());
  const ShownMovingState statistics(moved ? &*before_test.statistics : nullptr);
  const ShownParameters shown(average ? &*average : nullptr, ShownParameters::Show::kTrained);
  RefuseNan();
  Stopwatch watch;
  SolverState state;
  state.set_iter(iteration);
  if (param.lr_policy() == "plateau") {
    state.set_current_step(plateau.drops);
    state.set_minimum_loss(plateau.minimum_loss);
    state.set_iter_last_event(plateau.last_event);
  } else {
    state.set_current_step(RateStepAt(param, std::max(0, iteration - 1)));
  }
  state.set_solver_type(UpdateRuleName(param));
  state.set_random_seed(seed);
  for (const float loss : losses.losses()) state.add_recent_loss(loss);
  // A coordinator's workers have its data.
  const DataExtents extents = options.role == Role::kCoordinator ? DataExtents() : net->data_extents();
  AddPosition(kTrainNet, PositionOf(*net), extents, &state);
  for (size_t i = 0; i < test_nets.size(); ++i) {
    AddPosition(TestNet(i), tested ? before_test.positions[i] : PositionOf(*test_nets[i]), test_nets[i]->data_extents(),
                &state);
  }

  for (DataPosition& position : *state.mutable_data_position()) {
    for (const DataPosition& earlier : earlier_epochs) {
      if (earlier.net() != position.net() || earlier.layer() != position.layer()) continue;
      position.set_epochs_before(earlier.epochs_before());
      position.set_records_before(earlier.records_before());
    }
  }

  if (best) *state.mutable_best() = tested ? before_test.best : best->state();
  if (cluster_state) *state.mutable_cluster() = cluster_state();
  if (updater->finds_loss_scale()) {
    const LossScale loss_scale = updater->ReadLossScale();
    state.set_loss_scale(loss_scale.scale);
    state.set_loss_scale_updates(loss_scale.updates);
  }

  *state.mutable_train_net() = ComputationOf(*net);
  for (const Parameter& parameter : std::as_const(*net).parameters()) state.add_parameter(parameter.name());
  std::string ema_path;
  if (average) {
    average->Store(&state);
    ema_path = EmaModelPath(snapshots->prefix(), snapshots->format());
    const ShownParameters averages(&*average, ShownParameters::Show::kAverage);
    WriteModel(ema_path, ModelToWrite());
  }

  std::vector<StoredHistory> histories = Histories(*updater, std::as_const(*net).parameters());
  std::vector<std::vector<float>> means;  // over threads that share all but their histories
  for (int i = 0; hogwild && ranks > 1 && i < updater->histories(); ++i) {
    means.push_back(MeanHistory(i));
    histories[static_cast<size_t>(i)].values = Tensor(means.back().data(), updater->history(i).spec());
  }
  snapshots->Write(ModelToWrite(param.snapshot_diff()), std::move(state), histories, ema_path, watch);
}

bool Solver::Impl::TrySnapshot(bool at_end) {
  if (rank > 0) {
    RefuseNan();  // so that all ranks end together
    return false;
  }
  const auto write = [this] { Snapshot(); };
  return at_end ? snapshots->TrySnapshotAtEnd(iteration, write) : snapshots->TrySnapshot(iteration, write);
}

void Solver::Impl::RestoreBest(const BestState& state) {
  if (state.has_output() && state.output() != best->output()) {
    Warn({}, "best compares output \"" + best->output() + "\", and compared \"" + state.output() +
                 "\" when the snapshot was written: the best of the tests to come are kept");
    best_file->set_own(false);
  } else if (!state.has_value() || (best_file->is_own() && access(best_file->path().c_str(), R_OK) == 0)) {
    best->Restore(state);
  } else {
    Warn({}, "the best parameters so far, of iteration " + std::to_string(state.iteration()) + ", are not in \"" +
                 best_file->path() +
                 "\" (any more, or in this snapshot_format, or under this snapshot_prefix): the best of the tests to "
                 "come are kept");
  }
}

void Solver::Impl::WarnOfOtherNet(const NetParameter& before) const {
  const NetChange change = ChangeOf(before, ComputationOf(*net));
  if (change.text.empty()) return;
  Location where;
  const CompiledNet& compiled = net->compiled();
  for (const Node& node : compiled.graph.nodes) {
    if (compiled.file.source && node.name() == change.layer) where = compiled.file.source->Layer(node.index_in_file);
  }
  Warn(where, "the net is another one than when the snapshot was written: " + change.text +
                  "; training goes on with the net as it is now");
}

void Solver::Impl::RestorePosition(const LoadedState& loaded, const std::string& name, Net* target) {
  const bool reads = target != net.get() || options.role != Role::kCoordinator;
  const auto positions = target->data_positions();
  std::vector<const DataPosition*> stored;
  std::vector<uint64_t> records;
  std::map<std::string, int> numbers;  // of the layers of a name so far
  for (const auto& [layer, now] : positions) {
    stored.push_back(FindStored(loaded.state.data_position(), name, layer, numbers[layer]++));
    records.push_back(stored.back() ? stored.back()->records() : now);
    if (stored.back() || !loaded.exact) continue;
    Warn({}, "the snapshot knows no position of data layer \"" + layer + "\" of the " + name +
                 " net: it starts at the first record");
  }
  target->set_data_positions(records);
  for (size_t i = 0; i < positions.size() && reads; ++i) {
    if (!stored[i]) continue;
    const std::string& layer = positions[i].first;
    // What was not known then is not looked up, so that the next snapshot says the same as without a break.
    if (stored[i]->epoch_records() > 0) target->FindDataExtent(layer);
    const DataExtent now = target->data_extents()[i].second;
    const DataPosition earlier = EarlierEpochs(*stored[i], now);
    if (earlier.records_before() > 0) earlier_epochs.push_back(earlier);
    const std::string difference = Difference(*stored[i], now);
    if (difference.empty()) continue;
    Warn({}, "data layer \"" + layer + "\" of the " + name + " net " + difference +
                 " when the snapshot was written: the run will not be the same as without a break");
  }
  if (target == net.get() && ranks > 1) return;
  numbers.clear();
  for (const auto& [layer, values] : target->recurrent_states()) {
    const RecurrentState* state = FindStored(loaded.state.recurrent_state(), name, layer, numbers[layer]++);
    if (state && state->value_size() == values.count()) {
      device->CopyIn(state->value().data(), values.raw(), values.bytes());
    } else if (loaded.exact) {
      Warn({}, "the snapshot knows no state of recurrent layer \"" + layer + "\" of the " + name +
                   " net that fits: it starts with zeros");
    }
  }
}

void Solver::Impl::Restore(const LoadedState& loaded) {
  const SolverState& state = loaded.state;
  const std::vector<LayerWeights> weights = ReadWeights(loaded.model_path);
  LoadIntoTestNets(weights);
  const WeightsReport report = net->LoadWeights(weights);
  if (!report.fresh.empty()) {
    throw UserError(Location{loaded.model_path, 0, 0},
                    "holds no weights for layer \"" + report.fresh.front() +
                        "\" of this net: the snapshot is of another net; to start a new training from its weights use "
                        "--weights instead");
  }
  WarnOfTestsOwnLayers();
  const auto parameters = std::as_const(*net).parameters();
  const std::vector<size_t> places = ParameterPlaces(state, loaded.state_path, *net);
  RestoreHistory(loaded, UpdateRuleName(param), InOrderOf(places, parameters.size(), Histories(*updater, parameters)));
  if (state.has_train_net()) WarnOfOtherNet(state.train_net());
  iteration = state.iter();
  best_file->set_own(IsOfPrefix(loaded.state_path, snapshots->prefix()) && (!best || state.has_best()));
  for (const float loss : state.recent_loss()) losses.Add(loss);
  if (param.lr_policy() == "plateau") {
    // A snapshot of another policy knows nothing of plateaus.
    plateau.drops = state.has_minimum_loss() ? state.current_step() : 0;
    plateau.last_event = state.has_minimum_loss() ? state.iter_last_event() : state.iter();
    if (state.has_minimum_loss()) plateau.minimum_loss = state.minimum_loss();
  }
  snapshots->Restore(loaded);
  if (best && state.has_best()) RestoreBest(state.best());
  if (state.has_cluster()) restored_cluster = state.cluster();
  if (state.has_loss_scale() && updater->finds_loss_scale()) {
    updater->RestoreLossScale({.scale = state.loss_scale(), .updates = state.loss_scale_updates()});
  }

  if (average) {
    average->Restart();
    const std::vector<std::string> missing = average->Load(state, places);
    if (!missing.empty()) {
      Warn(Location{loaded.state_path, 0, 0}, "knows no moving average of parameter " + missing.front() +
                                                  (missing.size() > 1 ? " and others" : "") +
                                                  ": it begins with the parameters of the snapshot");
    }
  } else if (state.ema_size() > 0) {
    Warn(Location{loaded.state_path, 0, 0},
         "has a moving average of the parameters, which ends here: the solver has no ema");
  }

  RestorePosition(loaded, kTrainNet, net.get());
  for (size_t i = 0; i < test_nets.size(); ++i) RestorePosition(loaded, TestNet(i), test_nets[i].get());
  if (!loaded.exact) {
    Warn(Location{loaded.state_path, 0, 0},
         "written by Caffe, which saves neither data positions nor the seed: data starts at the first record");
  }
  Tell(&Observer::OnRestored, SnapshotRestored{loaded.state_path, loaded.model_path, iteration, loaded.exact});
}

}  // namespace crema
