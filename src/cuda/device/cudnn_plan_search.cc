#include "cuda/device/cudnn_plan_search.h"

#include <algorithm>
#include <limits>

#include "crema/error.h"

namespace crema::cuda {

namespace {

// Some engines bring all tensors into an order of their own: so much they may have, and `kLittle` besides.
constexpr size_t kMostWorkspace = size_t{1} << 30, kLittle = size_t{64} << 20;
constexpr size_t kCandidates = 6;  // that are timed
// Of those, the ones that are compiled at every start of a program: they must be worth it.
constexpr size_t kCompiled = 1;
constexpr double kWorthCompiling = 1.25;
constexpr int kRuns = 3;
constexpr double kHopeless = 3;  // of a first run's time, against the best so far
constexpr double kDoesNotRun = std::numeric_limits<double>::infinity(), kUntried = 1e30;  // seconds

// False where there is no memory.
bool Grow(CudaGpu& gpu, size_t bytes, Buffer* buffer) {
  if (buffer->bytes() >= bytes) return true;
  *buffer = Buffer();
  try {
    *buffer = Buffer(gpu, bytes);
  } catch (const EnvironmentError&) {
    return false;
  }
  Check(cudaMemsetAsync(buffer->data(), 0, bytes, gpu.queue().stream), "filling memory");
  return true;
}

}  // namespace

std::unique_ptr<CudnnPlan> CudnnPlanSearch::Find(const std::string& given_key,
                                                 const std::function<std::shared_ptr<CudnnGraph>()>& make) {
  const std::string key = given_key + (allows_tf32_ ? " tf32" : "");
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
  size_t most_workspace = kLittle;
  for (const auto& [id, tensor] : graph->stored()) most_workspace += tensor.bytes();
  most_workspace = std::max(most_workspace, kMostWorkspace);
  const auto plan_of = [&](size_t i) -> std::unique_ptr<CudnnPlan> {
    if (!engines[i].configuration.get() || !engines[i].IsAllowed(graph->in_floats(), allows_tf32_)) return nullptr;
    try {
      auto plan = std::make_unique<CudnnPlan>(graph, std::move(engines[i]), session_.handle());
      return plan->workspace() <= most_workspace ? std::move(plan) : nullptr;
    } catch (const CudnnError&) {
      return nullptr;
    }
  };
  if (known && static_cast<size_t>(*known) < engines.size()) {
    if (auto plan = plan_of(static_cast<size_t>(*known))) return plan;
  }
  std::unique_ptr<CudnnPlan> best;
  size_t choice = 0, tried = 0, compiled = 0;
  double least = kDoesNotRun;
  for (size_t i = 0; i < engines.size() && tried < kCandidates; ++i) {
    const bool compiles = engines[i].compiled;
    if (compiles && compiled == kCompiled) continue;
    auto plan = plan_of(i);
    if (!plan) continue;
    compiled += compiles;
    ++tried;
    // Without memory to try any, the first one is taken, which cuDNN thinks the best.
    const double seconds = Measure(*plan, {}, kHopeless * least).value_or(kUntried) * (compiles ? kWorthCompiling : 1);
    if (seconds >= least) continue;
    least = seconds;
    choice = i;
    best = std::move(plan);
  }
  // Not what was never measured, nor that there is none: the reason may be gone the next time.
  if (!best || least >= kUntried) return best;
  const int standing = session_.choices().Remember(key, static_cast<int>(choice), known);
  return standing == static_cast<int>(choice) || known ? std::move(best) : Find(given_key, make);
}

void* CudnnPlanSearch::Scratch(size_t bytes) { return Grow(gpu_, bytes, &scratch_) ? scratch_.data() : nullptr; }

bool CudnnPlanSearch::Prepare(const CudnnPlan& plan) {
  const auto& tensors = plan.graph().stored();
  if (buffers_.size() < tensors.size()) buffers_.resize(tensors.size());
  data_.clear();
  for (const auto& [id, tensor] : tensors) {
    Buffer& buffer = buffers_[data_.size()];
    if (!Grow(gpu_, tensor.bytes(), &buffer)) return false;
    data_.push_back(buffer.data());
  }
  return Grow(gpu_, plan.workspace(), &workspace_);
}

std::optional<double> CudnnPlanSearch::Measure(CudnnPlan& plan,
                                               const std::function<void(std::span<void* const>)>& after,
                                               double hopeless) {
  if (!Prepare(plan)) return std::nullopt;
  try {
    const auto run = [&] {
      plan.Run(session_.handle(), data_, workspace_.data());
      if (after) after(data_);
    };
    const auto begin = gpu_.MakeEvent(), end = gpu_.MakeEvent();
    const auto time = [&](int runs) {
      begin->Record();
      for (int i = 0; i < runs; ++i) run();
      end->Record();
      end->Wait();
      return end->SecondsSince(*begin) / runs;
    };
    run();  // loads what it needs
    const double once = time(1);
    return once > hopeless ? once : time(kRuns);
  } catch (const CudnnError&) {
    return kDoesNotRun;
  }
}

std::optional<bool> CudnnPlanSearch::KeepsNaN(CudnnPlan& plan, int64_t result) {
  if (!Prepare(plan)) return std::nullopt;
  try {
    size_t index = 0;
    const CudnnTensor* written = nullptr;
    void* at = nullptr;
    for (const auto& [id, tensor] : plan.graph().stored()) {
      const bool is_result = id == result;
      // All bits set is a NaN in every type.
      Check(cudaMemsetAsync(data_[index], is_result ? 0 : 0xFF, tensor.bytes(), gpu_.queue().stream), "filling memory");
      if (is_result) {
        written = &tensor;
        at = data_[index];
      }
      ++index;
    }
    plan.Run(session_.handle(), data_, workspace_.data());
    uint32_t bits = 0;  // of the first number
    gpu_.CopyOut(at, &bits, written->type == CUDNN_DATA_FLOAT ? 4 : 2);
    for (Buffer& buffer : buffers_) {
      if (buffer.bytes() == 0) continue;
      Check(cudaMemsetAsync(buffer.data(), 0, buffer.bytes(), gpu_.queue().stream), "filling memory");
    }
    const uint32_t infinity = written->type == CUDNN_DATA_FLOAT      ? 0x7f800000
                              : written->type == CUDNN_DATA_BFLOAT16 ? 0x7f80
                                                                     : 0x7c00;
    return (bits & (written->type == CUDNN_DATA_FLOAT ? 0x7fffffff : 0x7fff)) > infinity;
  } catch (const CudnnError&) {
    return false;
  }
}

}  // namespace crema::cuda
