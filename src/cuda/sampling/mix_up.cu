#include "cuda/arrays/lanes.h"
#include "cuda/arrays/numbers.h"
#include "cuda/operations.h"
#include "ops/arrays/functors.h"
#include "ops/sampling/mix_up_formulas.h"

namespace crema::cuda {

namespace {

// Of neighbouring elements of an image from `first` on, those of the rectangle: bit k for element k.
template <int kWidth>
__device__ unsigned Covered(const MixUpProblem& p, const ImageMix& mix, int64_t first) {
  int64_t rest = first;
  int64_t channel = SplitOff(&rest, p.channels), column = SplitOff(&rest, p.width), line = SplitOff(&rest, p.height);
  unsigned covered = 0;
  CREMA_UNROLL
  for (int k = 0; k < kWidth; ++k) {
    const bool inside = line >= mix.top && line < mix.bottom && column >= mix.left && column < mix.right;
    covered |= static_cast<unsigned>(inside) << k;
    if (++channel < p.channels) continue;
    channel = 0;
    if (++column < p.width) continue;
    column = 0;
    if (++line == p.height) line = 0;
  }
  return covered;
}

// A thread has kWidth neighbouring elements of an image.
template <int kWidth, typename Number>
__global__ void __launch_bounds__(kThreads)
    MixKernel(MixUpProblem p, const ImageMix* mixes, const Number* x, Number* y) {
  constexpr unsigned kAll = (1u << kWidth) - 1;
  const int64_t size = p.image_size(), packs = p.images * size / kWidth, step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < packs; i += step) {
    int64_t image = i;
    const int64_t first = SplitOff(&image, size / kWidth) * kWidth, at = image * size + first;
    const ImageMix mix = mixes[image];
    const int64_t at_other = mix.other * size + first;
    const bool mixed = mix.share < 1;
    const unsigned covered = mixed && mix.cuts() ? Covered<kWidth>(p, mix, first) : 0;
    Lanes<kWidth, Number> numbers = LoadLanes<kWidth>(x, covered == kAll ? at_other : at);
    if (covered != kAll && (covered != 0 || (mixed && !mix.cuts()))) {
      const Lanes<kWidth, Number> others = LoadLanes<kWidth>(x, at_other);
      const formula::WeightedSum blend = {mix.share, 1.0f - mix.share};
      CREMA_UNROLL
      for (int k = 0; k < kWidth; ++k) {
        if (mix.cuts()) {
          if (covered >> k & 1u) numbers.values[k] = others.values[k];
        } else {
          numbers.values[k] =
              Number(blend(static_cast<float>(numbers.values[k]), static_cast<float>(others.values[k])));
        }
      }
    }
    StoreLanes(numbers, y, at);
  }
}

}  // namespace

void CudaOperations::DrawMixes(const MixUpProblem& problem, const RandomStream& random, ImageMix* mixes) {
  const PassState* state = gpu_.state();
  const uint64_t seed = random.seed();
  const auto drawer = static_cast<uint32_t>(random.stream() >> 40);
  ForEach(queue(), problem.images, [=] __device__(int64_t image) {
    mixes[image] = mix_up::DrawMix(problem, RandomStream(seed, StreamId(drawer, state->pass)), image);
  });
}

void CudaOperations::MixImages(const MixUpProblem& problem, const ImageMix* mixes, const Tensor& x, const Tensor& y) {
  if (x.count() == 0) return;
  WithNumber(x.dtype(), [&]<typename Number>(Number* n) {
    constexpr int kWidth = Pack<Number>::kWidth;
    const Number* const from = As(x, n);
    Number* const to = As(y, n);
    if (IsPackAligned(from) && IsPackAligned(to) && problem.image_size() % kWidth == 0) {
      Launch(queue(), BlocksFor(queue(), x.count() / kWidth), kThreads, MixKernel<kWidth, Number>, problem, mixes, from,
             to);
    } else {
      Launch(queue(), BlocksFor(queue(), x.count()), kThreads, MixKernel<1, Number>, problem, mixes, from, to);
    }
  });
}

// Labels that are no class, of which the host learns when the pass is over, get no share.
void CudaOperations::MixLabels(const MixUpProblem& problem, const ImageMix* mixes, const float* label, float* target) {
  ForEach(queue(), problem.images * problem.classes, [=] __device__(int64_t i) {
    int64_t image = i;
    const int64_t c = SplitOff(&image, problem.classes);
    const float own = label[image], other = mixes ? label[mixes[image].other] : own;
    target[i] = mix_up::TargetOf(mixes ? mixes[image].share : 1.0f, own, other, c);
  });
}

}  // namespace crema::cuda
