#include "cuda/losses/labels.h"
#include "cuda/operations.h"
#include "ops/losses/segmentation.h"

namespace crema::cuda {

namespace {

constexpr int64_t kMostBlocks = 1024;
constexpr int kSharedCounts = 2048;  // what a block counts for itself, where there are no more classes

using Count = unsigned long long;  // what atomicAdd takes

// -1: none.
__device__ int64_t ToldClass(const ClassAxis& axis, const float* score) {
  const bool single = axis.classes == 1;
  float highest = single ? 0.5f : score[0];
  int64_t told = 0;
  for (int64_t c = 0; c < axis.classes; ++c) {
    const float own = score[c * axis.inner];
    if (own != own) return -1;
    if (own > highest) {
      highest = own;
      told = single ? 1 : c;
    }
  }
  return told;
}

// counts: those of right pixels by class, then by label, then by class that was told; zeros before. `kShared`: they are
// at most kSharedCounts.
template <bool kShared>
__global__ void __launch_bounds__(kThreads)
    CountPixelsKernel(PixelCounting counting, const float* scores, const float* label, Count* counts) {
  __shared__ unsigned of_block[kShared ? kSharedCounts : 1];
  const ClassAxis& axis = counting.axis;
  const int64_t classes = counting.classes(), positions = axis.outer * axis.inner;
  const auto add = [&](int64_t i) {
    if constexpr (kShared) {
      atomicAdd(of_block + i, 1u);
    } else {
      atomicAdd(counts + i, Count{1});
    }
  };
  if constexpr (kShared) {
    for (int64_t i = threadIdx.x; i < 3 * classes; i += blockDim.x) of_block[i] = 0;
    __syncthreads();
  }
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < positions; i += step) {
    if (!Counts(counting.rule, classes, label[i])) continue;
    const auto own = static_cast<int64_t>(label[i]);
    const int64_t told = ToldClass(axis, scores + labels::FirstOffset(axis, i));
    add(classes + own);
    if (told < 0) continue;
    add(2 * classes + told);
    if (told == own) add(own);
  }
  if constexpr (kShared) {
    __syncthreads();
    for (int64_t i = threadIdx.x; i < 3 * classes; i += blockDim.x) {
      if (of_block[i] > 0) atomicAdd(counts + i, Count{of_block[i]});
    }
  }
}

}  // namespace

void CudaOperations::CountPixels(const PixelCounting& counting, const float* scores, const float* label,
                                 const ClassPixels* before, ClassPixels* after, std::byte* workspace) {
  const int64_t classes = counting.classes();
  auto* const counts = reinterpret_cast<Count*>(workspace);
  ForEach(queue(), 3 * classes, [=] __device__(int64_t i) { counts[i] = 0; });
  const auto blocks =
      static_cast<unsigned>(std::clamp<int64_t>(counting.axis.positions() / (4 * kThreads), 1, kMostBlocks));
  Launch(queue(), blocks, kThreads, 3 * classes <= kSharedCounts ? CountPixelsKernel<true> : CountPixelsKernel<false>,
         counting, scores, label, counts);
  ForEach(queue(), classes, [=] __device__(int64_t c) {
    const ClassPixels* old = before ? before + c : nullptr;
    after[c] = {segmentation::Add(old ? &old->right : nullptr, counts[c]),
                segmentation::Add(old ? &old->labelled : nullptr, counts[classes + c]),
                segmentation::Add(old ? &old->told : nullptr, counts[2 * classes + c])};
  });
}

void CudaOperations::MeasureSegmentation(int64_t classes, const ClassPixels* pixels, float* measures) {
  ForEach(queue(), 1, [=] __device__(int64_t) { segmentation::MeasureAll(classes, pixels, measures); });
}

void CudaOperations::MeasureClass(const ClassPixels* pixels, float* measures) {
  ForEach(queue(), 1, [=] __device__(int64_t) { segmentation::MeasureOne(*pixels, measures); });
}

}  // namespace crema::cuda
