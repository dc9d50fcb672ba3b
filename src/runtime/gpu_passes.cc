#include "runtime/gpu_passes.h"

#include <algorithm>

#include "base/aligned_memory.h"
#include "base/check.h"
#include "graph/boundary_types.h"
#include "ops/operations.h"

namespace crema {

namespace {

constexpr size_t kAlignment = 256;

}  // namespace

GpuPasses::GpuPasses(Executor& executor, Gpu& gpu) : executor_(executor), gpu_(gpu) {
  const CompiledNet& net = executor.net_;
  size_t output_bytes = 0;
  for (const Executor::Bound& bound : executor.forward_) {
    if (!IsSource(bound)) continue;
    for (const int id : bound.step->tops) Place(&sources_, &staging_bytes_, id);
  }
  for (const int value : net.graph.outputs) {
    const int id = net.program.value_tensor[value];
    const auto same = [id](const Mirror& mirror) { return mirror.id == id; };
    const bool known =
        std::any_of(sources_.begin(), sources_.end(), same) || std::any_of(outputs_.begin(), outputs_.end(), same);
    if (!known && id >= 0) Place(&outputs_, &output_bytes, id);
  }
  staging_ = PinnedBuffer(gpu, staging_bytes_);
  if (staging_.data()) std::fill(staging_.data(), staging_.data() + staging_bytes_, std::byte{0});
  inbox_ = Buffer(gpu, staging_bytes_);
  PlaceSinks();
  host_outputs_ = PinnedBuffer(gpu, output_bytes);
  host_result_ = PinnedBuffer(gpu, sizeof(GpuPassResult));
  forward_done_ = gpu.MakeEvent();
  for (Executor::Bound& bound : executor.forward_) {
    if (!IsSource(bound)) continue;
    for (size_t i = 0; i < bound.tops.size(); ++i) bound.tops[i] = OnHost(bound.step->tops[i]);
  }
}

void GpuPasses::PlaceSinks() {
  size_t bytes = 0;
  for (Executor::Bound& bound : executor_.forward_) {
    const int unit = bound.step->node;
    if (unit < 0 || !IsOutputType(executor_.net_.graph.unit(unit).type_name())) continue;
    Sink& sink = sinks_.emplace_back(Sink{&bound, {}});
    for (const int id : bound.step->bottoms) Place(&sink.bottoms, &bytes, id);
  }
  host_sinks_ = PinnedBuffer(gpu_, bytes);
  for (const Sink& sink : sinks_) {
    for (size_t i = 0; i < sink.bottoms.size(); ++i) {
      Tensor& bottom = sink.bound->bottoms[i];
      bottom = Tensor(host_sinks_.data() + sink.bottoms[i].offset, bottom.spec());
    }
  }
}

bool GpuPasses::IssueSink(const Executor::Bound& bound) {
  for (const Sink& sink : sinks_) {
    if (sink.bound != &bound) continue;
    for (const Mirror& mirror : sink.bottoms) {
      const Tensor tensor = executor_.tensor(mirror.id);
      gpu_.CopyOutLater(tensor.raw(), host_sinks_.data() + mirror.offset, tensor.bytes());
    }
    return true;
  }
  return false;
}

bool GpuPasses::IsSource(const Executor::Bound& bound) const {
  return bound.step->node >= 0 && executor_.net_.graph.unit(bound.step->node).setup->is_source();
}

void GpuPasses::Place(std::vector<Mirror>* mirrors, size_t* total, int id) const {
  mirrors->push_back({id, *total});
  *total += AlignedBytes(executor_.tensor(id).bytes(), kAlignment);
}

Tensor GpuPasses::OnHost(int id) {
  if (id < 0) return {};
  const Tensor tensor = executor_.tensor(id);
  for (const Mirror& mirror : sources_) {
    if (mirror.id == id) return Tensor(staging_.data() + mirror.offset, tensor.spec());
  }
  for (const Mirror& mirror : outputs_) {
    if (mirror.id == id) return Tensor(host_outputs_.data() + mirror.offset, tensor.spec());
  }
  std::vector<std::byte>& copy = copies_[id];
  copy.resize(tensor.bytes());
  gpu_.CopyOut(tensor.raw(), copy.data(), tensor.bytes());
  return Tensor(copy.data(), tensor.spec());
}

void GpuPasses::Forward(uint64_t pass, uint64_t parameters_version, bool replay, const Executor::Watch& watch) {
  if (!awaited_) AwaitLoss();  // the batch before is still on its way from the staging memory
  for (const Executor::Bound& bound : executor_.forward_) {
    if (!IsSource(bound)) continue;
    executor_.RunForward(bound, pass, parameters_version, replay);
    if (executor_.net_.graph.unit(bound.step->node).layer->wrote_tops()) StartUpload(bound);
  }
  gpu_.JoinUploads();
  gpu_.BeginPass(pass);
  // In a net that is not trained, layers convert parameters anew when these have changed: that is not to be replayed.
  const bool same_work = executor_.backward_.empty() ? parameters_version == parameters_version_ : true;
  pass_ = pass;
  parameters_version_ = parameters_version;
  replay_ = replay;
  if (replay || watch || executor_.recorder_ || !same_work || eager_passes_ == 0) {
    IssueForward(pass, parameters_version, replay, watch);
    ++eager_passes_;
  } else {
    if (!forward_graph_) {
      forward_graph_ = gpu_.Capture([&] { IssueForward(pass, parameters_version, false, {}); });
    }
    forward_graph_ ? forward_graph_->Launch() : IssueForward(pass, parameters_version, false, {});
  }
  forward_done_->Record();
  awaited_ = false;
  if (executor_.recorder_) TellRecorder(0, executor_.forward_.size());
}

void GpuPasses::StartUpload(const Executor::Bound& source) {
  for (const Mirror& mirror : sources_) {
    const auto& tops = source.step->tops;
    if (std::find(tops.begin(), tops.end(), mirror.id) == tops.end()) continue;
    gpu_.StartUpload(staging_.data() + mirror.offset, inbox_.data() + mirror.offset,
                     executor_.tensor(mirror.id).bytes());
  }
}

void GpuPasses::IssueForward(uint64_t pass, uint64_t parameters_version, bool replay, const Executor::Watch& watch) {
  const bool timed = executor_.recorder_ != nullptr;
  if (timed) StepEvent(0).Record();
  for (const Mirror& mirror : sources_) {
    const Tensor tensor = executor_.tensor(mirror.id);
    executor_.ops_.Copy(inbox_.data() + mirror.offset, tensor.raw(), tensor.bytes());
  }
  size_t step = 0;
  for (const Executor::Bound& bound : executor_.forward_) {
    if (!IsSource(bound) && !IssueSink(bound)) {
      gpu_.BeginUnit(bound.step->node);
      executor_.RunForward(bound, pass, parameters_version, replay);
    }
    if (timed) StepEvent(++step).Record();
    if (watch) watch(*bound.step);
  }
  for (const Executor::Loss& part : executor_.losses_) {
    executor_.ops_.AddLoss(part.weight, part.top.count(), part.top.f32(), true, &gpu_.result()->loss);
  }
  for (const Mirror& mirror : outputs_) {
    const Tensor tensor = executor_.tensor(mirror.id);
    gpu_.CopyOutLater(tensor.raw(), host_outputs_.data() + mirror.offset, tensor.bytes());
  }
  gpu_.CopyOutLater(gpu_.result(), host_result_.data(), sizeof(GpuPassResult));
}

float GpuPasses::AwaitLoss() {
  forward_done_->Wait();
  awaited_ = true;
  const auto& result = *reinterpret_cast<const GpuPassResult*>(host_result_.data());
  if (result.faulty_unit >= 0) {
    const Node& node = executor_.net_.graph.unit(result.faulty_unit);
    try {
      node.layer->OnBadValue(result.position, result.value);
    } catch (const BadItem& bad) {
      executor_.Report(node, bad);
    }
    CREMA_CHECK(false) << node.name() << " does not say what is wrong with a value";
  }
  for (const Sink& sink : sinks_) executor_.RunForward(*sink.bound, pass_, parameters_version_, replay_);
  return static_cast<float>(result.loss);
}

void GpuPasses::Backward(uint64_t pass, bool first, GradientReader* reader) {
  std::unique_ptr<GpuGraph>& graph = backward_graphs_[first];
  if (reader || executor_.recorder_ || eager_backward_[first] == 0) {
    IssueBackward(pass, first, reader);
    ++eager_backward_[first];
  } else {
    if (!graph) {
      graph = gpu_.Capture([&] { IssueBackward(pass, first, nullptr); });
    }
    graph ? graph->Launch() : IssueBackward(pass, first, nullptr);
  }
  if (executor_.recorder_) TellRecorder(executor_.forward_.size(), executor_.backward_.size());
}

void GpuPasses::ForgetBackward() {
  for (auto& graph : backward_graphs_) graph.reset();
}

void GpuPasses::IssueBackward(uint64_t pass, bool first, GradientReader* reader) {
  const bool timed = executor_.recorder_ != nullptr;
  if (timed) StepEvent(0).Record();
  size_t step = 0;
  for (const Executor::Bound& bound : executor_.backward_) {
    gpu_.BeginUnit(bound.step->node);
    executor_.RunBackward(bound, pass, first, reader);
    if (timed) StepEvent(++step).Record();
  }
}

GpuEvent& GpuPasses::StepEvent(size_t index) {
  while (step_events_.size() <= index) step_events_.push_back(gpu_.MakeEvent());
  return *step_events_[index];
}

void GpuPasses::TellRecorder(size_t first, size_t steps) {
  StepEvent(steps).Wait();
  using Clock = StepRecorder::Clock;
  // The GPU's clock is not the host's: the last step ends now.
  const auto end = Clock::now();
  const double total = StepEvent(steps).SecondsSince(StepEvent(0));
  const auto at = [&](size_t step) {
    const double before_end = total - StepEvent(step).SecondsSince(StepEvent(0));
    return end - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(before_end));
  };
  for (size_t step = 0; step < steps; ++step) {
    executor_.recorder_->OnStep(static_cast<int>(first + step), at(step), at(step + 1));
  }
}

}  // namespace crema
