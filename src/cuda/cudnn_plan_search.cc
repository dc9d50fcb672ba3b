#include "cuda/cudnn_plan_search.h"

#include <algorithm>

#include "crema/error.h"

namespace crema::cuda {

namespace {

constexpr size_t kMostWorkspace = size_t{1} << 30;
constexpr size_t kCandidates = 6;  // that are timed
constexpr int kRuns = 3;

void Grow(CudaGpu& gpu, size_t bytes, Buffer* buffer) {
  if (buffer->bytes() >= bytes) return;
  *buffer = Buffer();
  *buffer = Buffer(gpu, bytes);
  Check(cudaMemsetAsync(buffer->data(), 0, bytes, gpu.queue().stream), "filling memory");
}

}  // namespace

bool CudnnPlanSearch::Accepts(const CudnnEngine& engine, bool in_floats) const {
  if (engine.Has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  if (engine.Has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return false;
  // Large tiles of Winograd's lose several digits.
  if (engine.Has(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6) || engine.Has(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13)) {
    return false;
  }
  if (!in_floats || session_.allows_tf32()) return true;
  return !engine.Has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) && !engine.Has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
}

std::unique_ptr<CudnnPlan> CudnnPlanSearch::Find(const std::string& given_key,
                                                 const std::function<std::shared_ptr<CudnnGraph>()>& make) {
  const std::string key = given_key + (session_.allows_tf32() ? " tf32" : "");
  const std::optional<int> known = session_.choices().Find(key);
  std::shared_ptr<CudnnGraph> graph;
  std::vector<CudnnEngine> engines;
  try {
    graph = make();
    graph->Finish(session_.handle());
    engines = graph->Engines();
  } catch (const CudnnError&) {
    // cuDNN does not know such a graph.
    engines.clear();
    graph = std::make_shared<CudnnGraph>();
  }
  const bool in_floats = std::all_of(graph->stored().begin(), graph->stored().end(),
                                     [](const auto& tensor) { return tensor.second.type == CUDNN_DATA_FLOAT; });
  const auto plan_of = [&](size_t i) -> std::unique_ptr<CudnnPlan> {
    if (!Accepts(engines[i], in_floats)) return nullptr;
    try {
      auto plan = std::make_unique<CudnnPlan>(graph, std::move(engines[i]), session_.handle());
      return plan->workspace() <= kMostWorkspace ? std::move(plan) : nullptr;
    } catch (const CudnnError&) {
      return nullptr;
    }
  };
  if (known && static_cast<size_t>(*known) < engines.size()) {
    if (auto plan = plan_of(static_cast<size_t>(*known))) return plan;
  }
  std::vector<std::pair<int, std::unique_ptr<CudnnPlan>>> plans;
  for (size_t i = 0; i < engines.size() && plans.size() < kCandidates; ++i) {
    if (auto plan = plan_of(i)) plans.emplace_back(static_cast<int>(i), std::move(plan));
  }
  size_t best = 0;
  double least = 0;
  for (size_t i = 0; plans.size() > 1 && i < plans.size(); ++i) {
    const std::optional<double> seconds = Measure(*plans[i].second);
    if (!seconds) continue;
    if (least == 0 || *seconds < least) {
      best = i;
      least = *seconds;
    }
  }
  // Not that there is none: the reason may be gone the next time.
  if (plans.empty()) return nullptr;
  session_.choices().Remember(key, plans[best].first);
  return std::move(plans[best].second);
}

void* CudnnPlanSearch::Scratch(size_t bytes) {
  Grow(gpu_, bytes, &scratch_);
  return scratch_.data();
}

std::optional<double> CudnnPlanSearch::Measure(CudnnPlan& plan,
                                               const std::function<void(std::span<void* const>)>& after) {
  const auto& tensors = plan.graph().stored();
  try {
    std::vector<void*> data;
    if (buffers_.size() < tensors.size()) buffers_.resize(tensors.size());
    size_t index = 0;
    for (const auto& [id, tensor] : tensors) {
      Grow(gpu_, tensor.bytes(), &buffers_[index]);
      data.push_back(buffers_[index++].data());
    }
    Grow(gpu_, plan.workspace(), &workspace_);
    const auto run = [&] {
      plan.Run(session_.handle(), data, workspace_.data());
      if (after) after(data);
    };
    run();  // loads what it needs
    const auto begin = gpu_.MakeEvent(), end = gpu_.MakeEvent();
    begin->Record();
    for (int i = 0; i < kRuns; ++i) run();
    end->Record();
    end->Wait();
    return end->SecondsSince(*begin) / kRuns;
  } catch (const EnvironmentError&) {
    return std::nullopt;
  }
}

}  // namespace crema::cuda
