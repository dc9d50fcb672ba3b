#include "solver/training_steps.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/check.h"
#include "device/gpu.h"
#include "device/host_copies.h"
#include "graph/program.h"
#include "ops/operations.h"
#include "solver/rules/plain_update.h"
#include "solver/shown_outputs.h"
#include "solver/solver_impl.h"
#include "solver/statistics.h"
#include "solver/test_outputs.h"

namespace crema {

namespace {

std::span<const Parameter> ParametersOf(const Net& net) { return net.parameters(); }

// Copies each gradient to where it goes once it is complete.
class GradientCopies : public GradientReader {
 public:
  // `blocks`: the trained ones; `announced`: by parameter, the block of those that will come, or -1.
  GradientCopies(std::span<const TrainingSteps::Block> blocks, std::span<const Parameter> parameters,
                 const std::vector<int>& announced, int batches, float* gradients,
                 const std::function<void(int64_t first)>& on_gradients)
      : blocks_(blocks),
        parameters_(parameters),
        announced_(announced),
        batches_(static_cast<float>(batches)),
        gradients_(gradients),
        on_gradients_(on_gradients),
        there_(blocks.size(), true),
        left_(blocks.size()) {
    for (const int block : announced) {
      if (block >= 0) there_[static_cast<size_t>(block)] = false;
    }
    // What no pass writes.
    for (size_t b = 0; b < there_.size(); ++b) {
      if (there_[b]) Copy(blocks_[b]);
    }
  }

  void OnGradient(int parameter, const Tensor&) override {
    const int block = announced_[static_cast<size_t>(parameter)];
    if (block < 0) return;
    Copy(blocks_[static_cast<size_t>(block)]);
    there_[static_cast<size_t>(block)] = true;
    const size_t before = left_;
    while (left_ > 0 && there_[left_ - 1]) --left_;
    if (left_ < before) on_gradients_(blocks_[left_].offset);
  }

 private:
  void Copy(const TrainingSteps::Block& block) {
    float* const to = gradients_ + block.offset;
    parameters_[static_cast<size_t>(block.parameter)].CopyGradTo(to);
    if (batches_ == 1) return;
    for (int64_t i = 0; i < block.count; ++i) to[i] /= batches_;
  }

  const std::span<const TrainingSteps::Block> blocks_;
  const std::span<const Parameter> parameters_;
  const std::vector<int>& announced_;
  const float batches_;
  float* const gradients_;
  const std::function<void(int64_t first)>& on_gradients_;
  std::vector<bool> there_;
  size_t left_;  // all blocks from here on are there
};

}  // namespace

TrainingSteps::TrainingSteps(Solver& solver) : impl_(*solver.impl_) {
  CREMA_CHECK(impl_.ranks == 1);
  const auto parameters = ParametersOf(*impl_.net);
  int64_t largest = 0;
  for (size_t p = 0; p < parameters.size(); ++p) {
    if (!parameters[p].trained) continue;
    Block block{parameters[p].name(), parameters[p].shape};
    block.offset = trained_count_;
    block.count = block.shape.count();
    block.parameter = static_cast<int>(p);
    trained_count_ += block.count;
    largest = std::max(largest, block.count);
    blocks_.push_back(std::move(block));
  }
  trained_blocks_ = blocks_.size();
  value_count_ = trained_count_;
  AddStatistics();
  for (const Step& step : impl_.net->compiled().program.backward) {
    if (step.kind != StepKind::kUseGradient || !impl_.options.exchanges_gradients) continue;
    announced_.resize(parameters.size(), -1);
    for (size_t b = 0; b < trained_blocks_; ++b) {
      if (blocks_[b].parameter == step.param) announced_[static_cast<size_t>(step.param)] = static_cast<int>(b);
    }
  }
  const bool sums = impl_.param.iter_size() > 1 || impl_.updater->loss_factor();
  if (impl_.options.exchanges_gradients && sums) block_.resize(static_cast<size_t>(largest));
}

void TrainingSteps::AddStatistics() {
  const auto parameters = ParametersOf(*impl_.net);
  std::map<int, std::pair<int, int>> added;  // by parameter: group and blob
  int groups = 0;
  for (const StatisticsBlobs& blobs : StatisticsOf(*impl_.net)) {
    for (size_t i = 0; i < blobs.parameters.size(); ++i) added[blobs.parameters[i]] = {groups, static_cast<int>(i)};
    ++groups;
  }
  for (const auto& [p, place] : added) {
    Block block{parameters[p].name(), parameters[p].shape, Kind::kStatistics};
    block.offset = value_count_;
    block.count = block.shape.count();
    block.group = place.first;
    block.statistics_blob = place.second;
    block.parameter = p;
    value_count_ += block.count;
    blocks_.push_back(std::move(block));
  }
}

void TrainingSteps::ReadValues(float* values) const {
  const auto parameters = ParametersOf(*impl_.net);
  for (const Block& block : blocks_) parameters[block.parameter].CopyDataTo(values + block.offset);
  impl_.TellIssued();
}

void TrainingSteps::ReadStatistics(float* statistics) const {
  const auto parameters = ParametersOf(*impl_.net);
  for (size_t b = trained_blocks_; b < blocks_.size(); ++b) {
    parameters[blocks_[b].parameter].CopyDataTo(statistics + (blocks_[b].offset - trained_count_));
  }
}

void TrainingSteps::WriteValues(const float* values) {
  const auto parameters = ParametersOf(*impl_.net);
  for (const Block& block : blocks_) parameters[block.parameter].SetData(values + block.offset);
  impl_.net->ParametersChanged();
  impl_.ForgetIssued();
}

std::vector<int> TrainingSteps::FixedParameters() const {
  std::vector<bool> changed(ParametersOf(*impl_.net).size());
  for (const Block& block : blocks_) changed[block.parameter] = true;
  std::vector<int> fixed;
  for (size_t p = 0; p < changed.size(); ++p) {
    if (!changed[p]) fixed.push_back(static_cast<int>(p));
  }
  return fixed;
}

int64_t TrainingSteps::fixed_count() const {
  int64_t count = 0;
  for (const int p : FixedParameters()) count += ParametersOf(*impl_.net)[p].shape.count();
  return count;
}

void TrainingSteps::ReadFixed(float* values) const {
  for (const int p : FixedParameters()) {
    const Parameter& parameter = ParametersOf(*impl_.net)[p];
    parameter.CopyDataTo(values);
    values += parameter.shape.count();
  }
}

void TrainingSteps::WriteFixed(const float* values) {
  for (const int p : FixedParameters()) {
    const Parameter& parameter = ParametersOf(*impl_.net)[p];
    parameter.SetData(values);
    values += parameter.shape.count();
  }
  impl_.net->ParametersChanged();
}

size_t TrainingSteps::history_pieces() const {
  const size_t parameters = ParametersOf(*impl_.net).size();
  return parameters == 0 ? 0 : static_cast<size_t>(impl_.updater->histories()) / parameters * trained_blocks_;
}

Tensor TrainingSteps::HistoryTensor(size_t piece) const {
  const size_t moment = piece / trained_blocks_, parameters = ParametersOf(*impl_.net).size();
  return impl_.updater->history(static_cast<int>(moment * parameters) + HistoryBlock(piece).parameter);
}

int64_t TrainingSteps::history_count() const {
  return trained_blocks_ == 0 ? 0 : static_cast<int64_t>(history_pieces() / trained_blocks_) * trained_count_;
}

void TrainingSteps::ReadHistory(float* history) const {
  const auto parameters = ParametersOf(*impl_.net);
  for (size_t piece = 0; piece < history_pieces(); ++piece) {
    const Parameter& parameter = parameters[HistoryBlock(piece).parameter];
    CopyPlainOut(*parameter.device, parameter.layout.get(), HistoryTensor(piece), history);
    history += HistoryBlock(piece).count;
  }
}

void TrainingSteps::WriteHistory(const float* history) {
  const auto parameters = ParametersOf(*impl_.net);
  for (size_t piece = 0; piece < history_pieces(); ++piece) {
    const Parameter& parameter = parameters[HistoryBlock(piece).parameter];
    CopyPlainIn(*parameter.device, parameter.layout.get(), history, HistoryTensor(piece));
    history += HistoryBlock(piece).count;
  }
}

void TrainingSteps::ClearHistory() { impl_.updater->ClearHistories(); }

void TrainingSteps::ReadBatches(uint64_t first_step, uint64_t run_steps, uint64_t stride_steps) {
  const uint64_t batches = static_cast<uint64_t>(impl_.param.iter_size());
  impl_.net->ReadBatches({first_step * batches, run_steps * batches, stride_steps * batches});
}

uint64_t TrainingSteps::records_per_step() const {
  const Graph& graph = impl_.net->compiled().graph;
  int64_t batch = 1;
  for (const Node& node : graph.nodes) {
    if (!node.setup->is_source() || node.tops.empty()) continue;
    const Shape& shape = graph.values[node.tops[0]].spec.shape;
    if (shape.axes() > 0) batch = std::max(batch, shape[0]);
  }
  return static_cast<uint64_t>(batch) * static_cast<uint64_t>(impl_.param.iter_size());
}

TrainingSteps::StepResult TrainingSteps::ResultOf(float loss) const {
  StepResult result{loss, {}};
  for (const NetOutput& output : ShownOutputs(*impl_.net)) {
    for (int64_t i = 0; i < output.value.count(); ++i) {
      result.outputs.push_back(static_cast<float>(output.value.value(i)));
    }
  }
  return result;
}

size_t TrainingSteps::shown_outputs() const {
  int64_t numbers = 0;
  for (const NetOutput& output : ShownOutputs(*impl_.net)) numbers += output.value.count();
  return static_cast<size_t>(numbers);
}

TrainingSteps::StepResult TrainingSteps::Train(int iteration, uint64_t step) {
  CREMA_CHECK(impl_.options.role != SolverOptions::Role::kCoordinator);
  impl_.iteration = iteration;
  return ResultOf(impl_.Iterate(step));
}

TrainingSteps::StepResult TrainingSteps::Gradients(int iteration, uint64_t step, float* gradients,
                                                   const std::function<void(int64_t first)>& on_gradients) {
  CREMA_CHECK(impl_.options.role != SolverOptions::Role::kCoordinator && impl_.options.exchanges_gradients);
  impl_.iteration = iteration;
  const auto parameters = ParametersOf(*impl_.net);
  float loss = 0;
  if (on_gradients && !announced_.empty()) {
    GradientCopies copies({blocks_.data(), trained_blocks_}, parameters, announced_, impl_.param.iter_size(), gradients,
                          on_gradients);
    return ResultOf(impl_.RunPasses(step, std::nullopt, {}, &copies));
  }
  if (impl_.updater->loss_factor()) {
    // A batch whose gradients overflow is computed once more: each before the next one is read.
    std::fill_n(gradients, trained_count_, 0.0f);
    loss = impl_.RunPasses(step, std::nullopt, [&] {
      impl_.DivideByLossScale();
      for (size_t b = 0; b < trained_blocks_; ++b) {
        float* const to = gradients + blocks_[b].offset;
        parameters[blocks_[b].parameter].CopyGradTo(block_.data());
        std::transform(to, to + blocks_[b].count, block_.begin(), to, std::plus<float>());
      }
    });
  } else {
    loss = impl_.RunPasses(step, std::nullopt);
    for (size_t b = 0; b < trained_blocks_; ++b) {
      parameters[blocks_[b].parameter].CopyGradTo(gradients + blocks_[b].offset);
    }
  }
  if (impl_.param.iter_size() > 1) {
    const float batches = static_cast<float>(impl_.param.iter_size());
    for (int64_t i = 0; i < trained_count_; ++i) gradients[i] /= batches;
  }
  return ResultOf(loss);
}

std::optional<double> TrainingSteps::Score(const std::string& output, uint64_t test,
                                           const std::function<bool()>& goes_on) {
  CREMA_CHECK(!impl_.test_nets.empty());
  impl_.Settle();
  Net& net = *impl_.test_nets[0];
  const uint64_t batches = static_cast<uint64_t>(impl_.param.test_iter(0));
  net.ReadBatches({test * batches, batches, batches});
  net.ClearRecurrentStates();
  net.set_pass(test * batches);
  TestOutputs outputs(net, impl_.ap_version);
  for (uint64_t batch = 0; batch < batches; ++batch) {
    net.Forward();
    outputs.AddBatch();
    if (!goes_on()) return std::nullopt;
  }
  const std::vector<OutputValue> values = outputs.ValuesOf(output);
  CREMA_CHECK(values.size() == 1) << output;
  return static_cast<double>(values[0].value);
}

void TrainingSteps::Start() {
  impl_.Start();
  impl_.WarnIfNothingIsLeft();
}

uint64_t TrainingSteps::next_step() const {
  const uint64_t batches = static_cast<uint64_t>(impl_.param.iter_size());
  return (impl_.net->next_batch() + batches - 1) / batches;
}

void TrainingSteps::SetIteration(int iteration, uint64_t next_step) {
  impl_.iteration = iteration;
  impl_.net->ReadBatches({next_step * static_cast<uint64_t>(impl_.param.iter_size()), 1, 1});
}

void TrainingSteps::Update(int iteration, const float* gradients) {
  CREMA_CHECK(impl_.options.exchanges_gradients);
  impl_.iteration = iteration;
  const auto parameters = ParametersOf(*impl_.net);
  // The update divides by it again, and clips what Caffe does, the sum.
  const float batches = static_cast<float>(impl_.param.iter_size());
  for (size_t b = 0; b < trained_blocks_; ++b) {
    const Block& block = blocks_[b];
    const Parameter& parameter = parameters[block.parameter];
    const float* from = gradients + block.offset;
    if (impl_.param.iter_size() > 1) {
      std::transform(from, from + block.count, block_.begin(), [batches](float g) { return g * batches; });
      from = block_.data();
    }
    CopyPlainIn(*parameter.device, parameter.layout.get(), from, parameter.grad);
  }
  Device& device = *impl_.options.device;
  if (device.type() != DeviceType::kCpu) {
    // Updates look at the loss of the latest pass, which was none of the train net's.
    const GpuPassResult usable;
    device.CopyIn(&usable, static_cast<Gpu&>(device).result(), sizeof usable);
  }
  impl_.Update(impl_.RateAt(iteration));
  impl_.net->ParametersChanged();
  ++impl_.iteration;
}

std::unique_ptr<PlainUpdate> TrainingSteps::MakePlainUpdate() const {
  return std::make_unique<PlainUpdate>(impl_.param, ParametersOf(*impl_.net));
}

void TrainingSteps::AddLoss(double loss) { impl_.losses.Add(static_cast<float>(loss)); }

void TrainingSteps::Display(int iteration, const std::vector<float>& outputs, double seconds) {
  std::vector<OutputValue> values;
  for (const NetOutput& output : ShownOutputs(*impl_.net)) {
    for (int64_t i = 0; i < output.value.count(); ++i) {
      CREMA_CHECK(values.size() < outputs.size()) << "outputs of another net";
      values.push_back({output.name, outputs[values.size()], output.loss_weight, output.is_loss});
    }
  }
  CREMA_CHECK(values.size() == outputs.size()) << "outputs of another net";
  const int now = std::exchange(impl_.iteration, iteration);
  impl_.TellDisplay(impl_.RateAt(iteration), std::move(values), seconds);
  impl_.iteration = now;
}

void TrainingSteps::EndIteration(int iteration, double loss, double seconds) {
  impl_.TellRateStep(iteration);
  IterationEnd event;
  event.iteration = iteration;
  event.loss = static_cast<float>(loss);
  event.seconds = seconds;
  impl_.Tell(&Observer::OnIteration, event);
}

bool TrainingSteps::Test(bool to_the_end) { return impl_.Test(to_the_end); }

bool TrainingSteps::out_of_patience() const { return impl_.out_of_patience; }

std::string TrainingSteps::LastSnapshot() const { return impl_.snapshots->LastInWords(); }

bool TrainingSteps::TrySnapshot() { return impl_.TrySnapshot(); }

bool TrainingSteps::SnapshotAtEnd() { return impl_.TrySnapshot(/*at_end=*/true); }

TrainingResult TrainingSteps::Finish(bool stopped) { return impl_.End(!stopped); }

void TrainingSteps::set_cluster_state(std::function<ClusterState()> state) { impl_.cluster_state = std::move(state); }

void TrainingSteps::set_on_waiting_for_room(std::function<void(const std::string& failure)> told) {
  impl_.snapshots->set_on_waiting_for_room(std::move(told));
}

const std::optional<ClusterState>& TrainingSteps::restored_cluster_state() const { return impl_.restored_cluster; }

}  // namespace crema
