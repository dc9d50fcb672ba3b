#include "runtime/executor.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/compute_threads.h"
#include "ops/operations.h"
#include "runtime/arena.h"
#include "runtime/gpu_passes.h"

namespace crema {

// A step begins where the one before it ended.
class StepClock {
 public:
  // Numbers steps from `first` on, which is that of the first one in `steps`.
  StepClock(StepRecorder* recorder, const std::vector<Step>& steps, size_t first)
      : recorder_(recorder), steps_(steps), first_(static_cast<int>(first)) {
    if (recorder_) last_ = StepRecorder::Clock::now();
  }
  void EndStep(const Step& step) {
    if (!recorder_) return;
    const auto now = StepRecorder::Clock::now();
    recorder_->OnStep(first_ + static_cast<int>(&step - steps_.data()), last_, now);
    last_ = now;
  }

 private:
  StepRecorder* const recorder_;
  const std::vector<Step>& steps_;
  const int first_;
  StepRecorder::Clock::time_point last_;
};

Executor::Executor(CompiledNet& net, std::span<const Parameter> parameters, const Context& context,
                   std::span<std::byte> lent)
    : net_(net), context_(context), ops_(OperationsOf(*context.device)) {
  const Program& program = net.program;
  const size_t lasting = program.lasting_bytes, passing = program.arena_bytes - lasting;
  const bool borrows = passing > 0 && lent.size() >= passing;
  arena_ = AllocateArena(net, *context.device, borrows ? lasting : program.arena_bytes);
  if (passing > 0) passing_ = borrows ? lent.first(passing) : std::span(arena_.data() + lasting, passing);
  for (const PlannedTensor& planned : program.tensors) {
    std::byte* at = nullptr;
    if (planned.storage >= 0) {
      const size_t offset = program.storages[planned.storage].offset;
      at = offset < lasting ? arena_.data() + offset : passing_.data() + (offset - lasting);
    }
    tensors_.emplace_back(at, planned.spec);
  }
  for (const Step& step : program.forward) {
    if (step.part < 0) {
      forward_.push_back(Bind(step, parameters));
    } else {
      forward_.emplace_back().step = &step;
    }
  }
  for (const ProgramPart& part : program.parts) {
    std::vector<Lane>& lanes = parts_.emplace_back();
    for (int lane = 0; lane < part.lanes; ++lane) lanes.push_back(BindLane(part, parameters, lane));
  }
  for (const Step& step : program.backward) backward_.push_back(Bind(step, parameters));
  for (const Node& node : net.graph.nodes) {
    for (size_t i = 0; i < node.tops.size(); ++i) {
      if (node.loss_weights[i] != 0) {
        losses_.push_back({tensors_[program.value_tensor[node.tops[i]]], node.loss_weights[i]});
      }
    }
  }
  if (context.device->type() != DeviceType::kCpu) {
    gpu_ = std::make_unique<GpuPasses>(*this, static_cast<Gpu&>(*context.device));
  }
}

Executor::~Executor() = default;

Executor::Bound Executor::Bind(const Step& step, std::span<const Parameter> parameters, int lane) const {
  const auto place = [&](int id) {
    Tensor at = tensor(id);
    if (step.part < 0 || id < 0) return at;
    const ProgramPart& part = net_.program.parts[step.part];
    if (net_.program.tensors[id].part >= 0) {
      at.MoveTo(static_cast<std::byte*>(at.raw()) + static_cast<size_t>(lane) * part.lane_bytes);
      return at;
    }
    TensorSpec rows = at.spec();
    rows.shape.set(0, part.rows);
    return Tensor(at.raw(), std::move(rows));
  };
  const auto bind = [&](const std::vector<int>& ids) {
    std::vector<Tensor> list;
    for (int id : ids) list.push_back(place(id));
    return list;
  };
  Bound bound;
  bound.step = &step;
  bound.bottoms = bind(step.bottoms);
  bound.tops = bind(step.tops);
  bound.saved = bind(step.saved);
  bound.top_grads = bind(step.top_grads);
  bound.bottom_grads = bind(step.bottom_grads);
  bound.workspace = static_cast<std::byte*>(place(step.workspace).raw());
  if (step.kind == StepKind::kAddToParameter) bound.param_grads = {parameters[step.param].grad};
  if (step.kind == StepKind::kUseGradient && step.bottoms.empty()) bound.param_grads = {parameters[step.param].grad};
  if (step.node < 0) return bound;

  const Node& node = net_.graph.unit(step.node);
  bound.layer = lane == 0 ? node.layer.get() : node.other_lanes[lane - 1].get();
  for (size_t i = 0; i < node.params.size(); ++i) {
    // Shared permissively, a parameter may have another shape here than where it is owned.
    const Parameter& parameter = parameters[node.params[i]];
    const Shape shape = parameter.layout ? parameter.data.shape() : node.setup->params()[i].shape;
    bound.params.push_back(parameter.data.Reshaped(shape));
    if (i >= step.param_grads.size()) continue;
    const int id = step.param_grads[i];
    bound.param_grads.push_back(id == Step::kDirect ? parameter.grad.Reshaped(shape) : tensor(id));
  }
  // Shapes stay known where the contents are gone.
  for (size_t i = 0; i < bound.bottoms.size(); ++i) {
    if (bound.bottoms[i].defined()) continue;
    bound.bottoms[i] = Tensor(nullptr, node.Laid(net_.graph.values[node.bottoms[i]].spec));
  }
  for (size_t i = 0; i < bound.tops.size(); ++i) {
    if (!bound.tops[i].defined()) bound.tops[i] = Tensor(nullptr, net_.graph.values[node.tops[i]].spec);
  }
  return bound;
}

Executor::Lane Executor::BindLane(const ProgramPart& part, std::span<const Parameter> parameters, int lane) const {
  Lane bound;
  for (int i = part.begin; i < part.end; ++i) {
    const Step& step = net_.program.forward[i];
    bound.steps.push_back(Bind(step, parameters, lane));
    const auto add = [&](const std::vector<int>& ids, std::vector<Tensor>& tensors) {
      for (size_t k = 0; k < ids.size(); ++k) {
        if (ids[k] < 0 || net_.program.tensors[ids[k]].part >= 0) continue;
        bound.rows.push_back({&tensors[k], static_cast<std::byte*>(tensors[k].raw())});
      }
    };
    add(step.bottoms, bound.steps.back().bottoms);
    add(step.tops, bound.steps.back().tops);
  }
  return bound;
}

LayerRun Executor::MakeRun(const Bound& bound, uint64_t pass, bool replay) const {
  LayerRun run;
  run.context = &context_;
  run.ops = &ops_;
  run.pass = pass;
  run.replay = replay;
  run.layer_index = bound.step->node;
  run.bottoms = bound.bottoms;
  run.tops = bound.tops;
  run.params = bound.params;
  run.saved = bound.saved;
  run.workspace = bound.workspace;
  run.top_grads = bound.top_grads;
  run.bottom_grads = bound.bottom_grads;
  run.param_grads = bound.param_grads;
  return run;
}

void Executor::RunForward(const Bound& bound, uint64_t pass, uint64_t parameters_version, bool replay,
                          int64_t turn) const {
  if (bound.step->kind == StepKind::kReorder) return ops_.Reorder(bound.bottoms[0], bound.tops[0]);
  try {
    LayerRun run = MakeRun(bound, pass, replay);
    run.parameters_version = parameters_version;
    bound.layer->Forward(run);
  } catch (BadItem& bad) {
    const Node& node = net_.graph.unit(bound.step->node);
    if (bad.item >= 0) bad.item += turn * node.rows;
    Report(node, bad);
  }
}

void Executor::RunTurn(Lane& lane, int64_t turn, uint64_t pass, uint64_t parameters_version, bool replay,
                       StepClock* clock) const {
  for (const Lane::Rows& rows : lane.rows) {
    rows.tensor->MoveTo(rows.first_turn + static_cast<size_t>(turn) * rows.tensor->bytes());
  }
  for (const Bound& bound : lane.steps) {
    RunForward(bound, pass, parameters_version, replay, turn);
    if (clock) clock->EndStep(*bound.step);
  }
}

// Lanes compute on one thread each, for which their layers were planned, and wait for each other once. Only the first
// one is timed.
void Executor::RunPart(int p, uint64_t pass, uint64_t parameters_version, bool replay, StepClock& clock) {
  std::vector<Lane>& lanes = parts_[p];
  const int64_t turns = net_.program.parts[p].turns;
  std::atomic<int64_t> next = 0;
  // No exception may leave what the lanes run in parallel; of several the first in the batch is told.
  std::mutex failing;
  int64_t failed_turn = turns;
  std::exception_ptr failure;
  const auto work = [&](int lane, int64_t last) {
    const ComputeThreads alone(1);
    for (int64_t turn; next < last && (turn = next++) < turns;) {
      try {
        RunTurn(lanes[lane], turn, pass, parameters_version, replay, lane == 0 ? &clock : nullptr);
      } catch (...) {
        const std::lock_guard lock(failing);
        if (turn < failed_turn) failure = std::current_exception();
        failed_turn = std::min(failed_turn, turn);
        next = turns;
      }
    }
  };
  // The first turn prepares the weights for all.
  if (parameters_version != parts_version_) work(0, 1);
#pragma omp parallel num_threads(static_cast <int>(lanes.size()))
  work(omp_get_thread_num(), turns);
  if (failure) std::rethrow_exception(failure);
  clock.EndStep(*lanes[0].steps.back().step);
}

void Executor::RunBackward(const Bound& bound, uint64_t pass, bool first, GradientReader* reader) const {
  const Step& step = *bound.step;
  switch (step.kind) {
    case StepKind::kBackward:
      return net_.graph.unit(step.node).layer->Backward(MakeRun(bound, pass, false));
    case StepKind::kFillGradient:
      if (loss_factor_ && step.value != 0) return ops_.FillTimes(step.value, loss_factor_, bound.tops[0]);
      return ops_.Fill(step.value, bound.tops[0]);
    case StepKind::kSumGradients:
      ops_.WeightedSum(1, bound.bottoms[0], 1, bound.bottoms[1], bound.tops[0]);
      for (size_t i = 2; i < bound.bottoms.size(); ++i) {
        ops_.WeightedSum(1, bound.tops[0], 1, bound.bottoms[i], bound.tops[0]);
      }
      return;
    case StepKind::kReorder:
      return ops_.Reorder(bound.bottoms[0], bound.tops[0]);
    case StepKind::kAddToParameter: {
      const Tensor& part = bound.bottoms[0];
      if (first && step.first_of_pass) return ops_.Copy(part.raw(), bound.param_grads[0].raw(), part.bytes());
      return ops_.Axpy(part.count(), 1, part.f32(), bound.param_grads[0].f32());
    }
    case StepKind::kUseGradient:
      if (!bound.param_grads.empty()) {
        if (reader) reader->OnGradient(step.param, bound.param_grads[0]);
        return;
      }
      CREMA_CHECK(reader != nullptr) << "nobody takes the gradients";
      return reader->OnGradient(step.param, bound.bottoms[0]);
    case StepKind::kForward:
      return net_.graph.unit(step.node).layer->Forward(MakeRun(bound, pass, true));
  }
}

float Executor::Forward(uint64_t pass, uint64_t parameters_version, bool replay, const Watch& watch) {
  UseComputeThreads();
  context_.device->UseHere();
  if (gpu_) {
    gpu_->Forward(pass, parameters_version, replay, watch);
    return gpu_->AwaitLoss();
  }
  StepClock clock(recorder_, net_.program.forward, 0);
  for (size_t i = 0; i < forward_.size(); ++i) {
    const Bound& bound = forward_[i];
    if (const int p = bound.step->part; p >= 0) {
      RunPart(p, pass, parameters_version, replay, clock);
      i = static_cast<size_t>(net_.program.parts[p].end) - 1;
      continue;
    }
    RunForward(bound, pass, parameters_version, replay);
    clock.EndStep(*bound.step);
    if (watch) watch(*bound.step);
  }
  parts_version_ = parameters_version;
  double loss = 0;
  for (const Loss& part : losses_) ops_.AddLoss(part.weight, part.top.count(), part.top.f32(), true, &loss);
  return static_cast<float>(loss);
}

void Executor::Backward(uint64_t pass, bool first, GradientReader* reader) {
  UseComputeThreads();
  context_.device->UseHere();
  if (gpu_) return gpu_->Backward(pass, first, reader);
  StepClock clock(recorder_, net_.program.backward, net_.program.forward.size());
  for (const Bound& bound : backward_) {
    RunBackward(bound, pass, first, reader);
    clock.EndStep(*bound.step);
  }
}

float Executor::ForwardBackward(uint64_t pass, uint64_t parameters_version, bool first, GradientReader* reader,
                                const std::function<void()>& then) {
  if (gpu_) {
    UseComputeThreads();
    context_.device->UseHere();
    gpu_->Forward(pass, parameters_version, false, {});
    gpu_->Backward(pass, first, reader);
    if (then) then();
    return gpu_->AwaitLoss();
  }
  const float loss = Forward(pass, parameters_version, false);
  if (!std::isfinite(loss)) return loss;
  Backward(pass, first, reader);
  if (then) then();
  return loss;
}

void Executor::set_loss_factor(const float* factor) {
  loss_factor_ = factor;
  if (gpu_) gpu_->ForgetBackward();
}

Tensor Executor::on_host(int id) const { return gpu_ ? gpu_->OnHost(id) : tensor(id); }

void Executor::Report(const Node& node, const BadItem& bad) const {
  std::string message = "layer \"" + node.name() + "\" (" + node.type_name() + "): " + bad.what();
  // The record is known to the source the bottom came from, perhaps through views of it.
  const Node* from = &net_.graph.nodes[net_.graph.values[node.bottoms[bad.bottom]].producer];
  while (from->setup->is_view()) from = &net_.graph.nodes[net_.graph.values[from->bottoms[0]].producer];
  if (bad.item >= 0) {
    const std::string item = from->setup->is_source() ? from->layer->DescribeItem(bad.item) : "";
    message += item.empty() ? " (item " + std::to_string(bad.item) + " of the batch)" : " (" + item + ")";
  }
  const Location where = net_.file.source ? net_.file.source->Layer(node.index_in_file) : Location{};
  throw UserError(where, message);
}

}  // namespace crema
