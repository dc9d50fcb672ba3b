#include "cuda/arrays/lanes.h"
#include "cuda/arrays/reduce.h"
#include "cuda/operations.h"

namespace crema::cuda {

namespace {

// Calls body.operator()<width>(i) for numbers [i, i + width) of a block's chunk: in packs, where all arrays allow.
template <typename Body, typename... Arrays>
__device__ void ForEachOfChunk(int64_t count, const Body& body, const Arrays*... arrays) {
  constexpr int kPack = 4;
  const bool aligned = ((reinterpret_cast<uintptr_t>(arrays) | ...) & 15) == 0;
  const int64_t packed = aligned ? count / kPack * kPack : 0;
  for (int64_t i = int64_t{threadIdx.x} * kPack; i < packed; i += blockDim.x * kPack)
    body.template operator()<kPack>(i);
  for (int64_t i = packed + threadIdx.x; i < count; i += blockDim.x) body.template operator()<1>(i);
}

// Sums of squares of the chunks' gradients or values, a block for each.
template <bool kOfGradients>
__global__ void SumSquares(const UpdateChunk* chunks, double* squares) {
  const UpdateChunk& chunk = chunks[blockIdx.x];
  const float* const numbers = kOfGradients ? chunk.gradient : chunk.data;
  double sum = 0;
  const auto add = [&]<int kWidth>(int64_t i) {
    const auto lanes = LoadLanes<kWidth>(numbers, i);
    for (int k = 0; k < kWidth; ++k) sum += static_cast<double>(lanes.values[k]) * lanes.values[k];
  };
  ForEachOfChunk(chunk.count, add, numbers);
  sum = SumBlock(sum);
  if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

__global__ void FindNorm(const double* squares, int64_t count, double scale, double* norm) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += squares[i];
  sum = SumBlock(sum);
  if (threadIdx.x == 0) *norm = scale * sqrt(sum);
}

// A block for each parameter.
__global__ void FindRatios(MultiUpdate update) {
  const int64_t end = update.first_chunks[blockIdx.x + 1];
  double values = 0, gradients = 0;
  for (int64_t i = update.first_chunks[blockIdx.x] + threadIdx.x; i < end; i += blockDim.x) {
    values += update.value_squares[i];
    gradients += update.squares[i];
  }
  values = SumBlock(values);
  gradients = SumBlock(gradients);
  if (threadIdx.x == 0) update.ratios[blockIdx.x] = LocalRatio(update.local_eta, values, gradients);
}

template <typename Number>
__device__ bool IsFinite(Number x) {
  return x - x == 0;
}

__device__ bool IsUsable(const PassState& state) { return IsFinite(state.result.loss) && state.result.faulty_unit < 0; }

__global__ void DivideGradients(const UpdateChunk* chunks, LossScale* loss_scale) {
  float* const gradient = chunks[blockIdx.x].gradient;
  const float scale = loss_scale->scale;
  bool finite = true;
  const auto divide = [&]<int kWidth>(int64_t i) {
    auto lanes = LoadLanes<kWidth>(gradient, i);
    for (float& g : lanes.values) {
      g /= scale;
      finite &= IsFinite(g);
    }
    StoreLanes(lanes, gradient, i);
  };
  ForEachOfChunk(chunks[blockIdx.x].count, divide, gradient);
  if (!finite) loss_scale->not_finite = 1;  // whoever writes, it is the same
}

__global__ void StepScale(bool adapts, LossScale* loss_scale, const PassState* state) {
  const uint32_t not_finite = loss_scale->not_finite;
  if (!IsUsable(*state)) {
    loss_scale->not_finite = 0;
    return;
  }
  StepLossScale(adapts, loss_scale);
  if (!adapts) loss_scale->not_finite = not_finite;  // training stops: all later updates are left out, too
}

template <WeightDecay kDecay, typename Formula>
__device__ void UpdateElements(const Formula& formula, const UpdateChunk& chunk, float scale, float rate,
                               float decoupled) {
  float* const data = chunk.data;
  float* const gradient = chunk.gradient;
  float* const history = chunk.history[0];
  float* const second = Formula::kHistories > 1 ? chunk.history[1] : nullptr;
  const auto update = [&]<int kWidth>(int64_t i) {
    auto values = LoadLanes<kWidth>(data, i), remembered = LoadLanes<kWidth>(history, i);
    const auto gradients = LoadLanes<kWidth>(gradient, i);
    Lanes<kWidth, float> more;
    if constexpr (Formula::kHistories > 1) more = LoadLanes<kWidth>(second, i);
    for (int k = 0; k < kWidth; ++k) {
      const float before = values.values[k], x = DecayedValue<kDecay>(before, decoupled);
      const float g = DecayedGradient<kDecay>(scale, gradients.values[k], chunk.decay, before);
      if constexpr (Formula::kHistories > 1) {
        values.values[k] = x - formula(g, rate, remembered.values[k], more.values[k]);
      } else {
        values.values[k] = x - formula(g, rate, remembered.values[k]);
      }
    }
    StoreLanes(values, data, i);
    StoreLanes(remembered, history, i);
    if constexpr (Formula::kHistories > 1) StoreLanes(more, second, i);
  };
  ForEachOfChunk(chunk.count, update, data, gradient, history, second);
}

template <typename Formula>
__global__ void UpdateChunks(Formula formula, MultiUpdate update, const PassState* state) {
  if (!IsUsable(*state) || (update.loss_scale && update.loss_scale->not_finite)) return;
  float scale = update.gradient_scale;
  if (update.largest_norm > 0) {
    const double norm = *update.norm;
    if (!IsFinite(norm)) return;
    if (norm > update.largest_norm) scale *= static_cast<float>(update.largest_norm / norm);
  }
  const UpdateChunk chunk = update.chunks[blockIdx.x];
  const float rate = update.local_eta > 0
                         ? LocalRate(update.local_clips, update.rate, update.ratios[chunk.parameter], scale)
                         : update.rate * chunk.rate;
  const float decoupled = update.decay_rate * chunk.decay_rate * chunk.decay;
  switch (chunk.decay_type) {
    case WeightDecay::kNone:
      return UpdateElements<WeightDecay::kNone>(formula, chunk, scale, rate, decoupled);
    case WeightDecay::kL1:
      return UpdateElements<WeightDecay::kL1>(formula, chunk, scale, rate, decoupled);
    case WeightDecay::kL2:
      return UpdateElements<WeightDecay::kL2>(formula, chunk, scale, rate, decoupled);
    case WeightDecay::kDecoupled:
      return UpdateElements<WeightDecay::kDecoupled>(formula, chunk, scale, rate, decoupled);
  }
}

}  // namespace

void CudaOperations::Update(const UpdateFormula& formula, const MultiUpdate& update) {
  if (update.count == 0) return;
  gpu_.UseHere();
  const unsigned blocks = static_cast<unsigned>(update.count);
  if (update.loss_scale) Launch(queue(), blocks, kThreads, DivideGradients, update.chunks, update.loss_scale);
  if (update.largest_norm > 0 || update.local_eta > 0) {
    Launch(queue(), blocks, kThreads, SumSquares<true>, update.chunks, update.squares);
  }
  if (update.local_eta > 0) {
    Launch(queue(), blocks, kThreads, SumSquares<false>, update.chunks, update.value_squares);
    Launch(queue(), static_cast<unsigned>(update.parameters), kThreads, FindRatios, update);
  }
  if (update.largest_norm > 0) {
    Launch(queue(), 1, kThreads, FindNorm, update.squares, update.count, update.norm_scale, update.norm);
  }
  std::visit(
      [&](const auto& given) {
        using Formula = std::decay_t<decltype(given)>;
        Launch(queue(), blocks, kThreads, UpdateChunks<Formula>, given, update, gpu_.state());
      },
      formula);
  if (update.loss_scale) {
    Launch(queue(), 1, 1, StepScale, update.loss_scale_adapts, update.loss_scale, gpu_.state());
  }
}

void CudaOperations::DivideByLossScale(const MultiUpdate& update) {
  if (update.count == 0) return;
  gpu_.UseHere();
  Launch(queue(), static_cast<unsigned>(update.count), kThreads, DivideGradients, update.chunks, update.loss_scale);
  Launch(queue(), 1, 1, StepScale, update.loss_scale_adapts, update.loss_scale, gpu_.state());
}

}  // namespace crema::cuda
