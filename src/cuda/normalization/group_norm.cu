#include "cuda/arrays/lanes.h"
#include "cuda/arrays/row_sums.h"
#include "cuda/operations.h"
#include "ops/normalization/normalization_formulas.h"

namespace crema::cuda {

namespace {

using normalization::GroupNormGradient;
using normalization::Standard;

// Of element i of a row.
__device__ int64_t ChannelOf(const GroupNormProblem& p, int64_t row, int64_t i) {
  SplitOff(&i, p.pixels);
  return p.groups == 1 ? i : row % p.groups * p.channels + i;
}

struct MakeStandard {
  using Sums = normalization::Sums;
  GroupNormProblem p;
  const float *x, *scale, *shift;  // scale and shift may be null
  float* y;
  RowMoments* moments;  // may be null

  __device__ float Origin(int64_t row) const { return x[row * p.width()]; }
  __device__ void Add(int64_t row, int64_t i, float origin, double* sum, double* squares) const {
    const double difference = static_cast<double>(x[row * p.width() + i]) - static_cast<double>(origin);
    *sum += difference;
    *squares += difference * difference;
  }
  __device__ Standard Finish(int64_t, const Sums& sums) const { return normalization::StandardOf(p, sums); }
  __device__ void Keep(int64_t row, const Standard& standard) const {
    if (moments) moments[row] = standard;
  }
  __device__ void Apply(int64_t row, int64_t i, const Standard& standard) const {
    const int64_t at = row * p.width() + i, channel = scale ? ChannelOf(p, row, i) : 0;
    const float value = standard(x[at]);
    y[at] = scale ? value * scale[channel] + (shift ? shift[channel] : 0.0f) : value;
  }
};

struct StandardBack {
  using Sums = normalization::Sums;
  GroupNormProblem p;
  const float *x, *scale;  // scale may be null
  const RowMoments* moments;
  const float* dy;
  float* dx;

  __device__ float Gradient(int64_t row, int64_t i) const {
    return (scale ? scale[ChannelOf(p, row, i)] : 1.0f) * dy[row * p.width() + i];
  }
  __device__ float Origin(int64_t) const { return 0.0f; }
  __device__ void Add(int64_t row, int64_t i, float, double* sum, double* products) const {
    const float gradient = Gradient(row, i);
    const Standard standard{moments[row]};
    *sum += static_cast<double>(gradient);
    *products += static_cast<double>(gradient * standard(x[row * p.width() + i]));
  }
  __device__ GroupNormGradient Finish(int64_t row, const Sums& sums) const {
    return normalization::GroupNormGradientOf(p, sums, moments[row]);
  }
  __device__ void Keep(int64_t, const GroupNormGradient&) const {}
  __device__ void Apply(int64_t row, int64_t i, const GroupNormGradient& gradient) const {
    const int64_t at = row * p.width() + i;
    dx[at] = gradient(Gradient(row, i), x[at]);
  }
};

constexpr unsigned kAcross = 32, kAlong = kThreads / kAcross;  // channels of a block, and threads for each of them

// The sums for a channel: of dy * standard x, and of dy.
struct ScalePair {
  double product = 0, sum = 0;
};

// What the gradients of scales and shifts are made of, and where they go: to the gradients, of which one may be null,
// or, where several blocks have numbers of a channel, parts of them to scratch memory.
struct ScaleGradients {
  GroupNormProblem p;
  const float* x;
  const RowMoments* moments;
  const float* dy;
  float *scale, *shift;
  ScalePair* parts;

  __device__ void Add(int64_t image, int64_t channel, int64_t pixel, ScalePair* sums) const {
    const int64_t at = (image * p.scales() + channel) * p.pixels + pixel;
    const Standard standard{moments[image * p.groups + (p.groups == 1 ? 0 : channel / p.channels)]};
    sums->product += static_cast<double>(dy[at] * standard(x[at]));
    sums->sum += static_cast<double>(dy[at]);
  }
  __device__ void Write(int64_t channel, const ScalePair& sums) const {
    if (scale) scale[channel] = static_cast<float>(sums.product);
    if (shift) shift[channel] = static_cast<float>(sums.sum);
  }
  __device__ void Keep(int64_t channel, const ScalePair& sums) const {
    if (parts) {
      parts[channel * gridDim.y + blockIdx.y] = sums;
    } else {
      Write(channel, sums);
    }
  }
};

// Block (x, y) sums part y of its channels up.
__global__ void __launch_bounds__(kThreads) SumChannels(ScaleGradients work) {
  const GroupNormProblem& p = work.p;
  const int64_t n = p.images * p.pixels, step = int64_t{gridDim.y} * kThreads;
  for (int64_t c = blockIdx.x; c < p.scales(); c += gridDim.x) {
    ScalePair sums;
    for (int64_t i = int64_t{blockIdx.y} * kThreads + threadIdx.x; i < n; i += step) {
      int64_t image = i;
      const int64_t pixel = SplitOff(&image, p.pixels);
      work.Add(image, c, pixel, &sums);
    }
    sums.product = SumBlock(sums.product);
    sums.sum = SumBlock(sums.sum);
    if (threadIdx.x == 0) work.Keep(c, sums);
  }
}

// The same for channels that lie side by side, images of one pixel.
__global__ void __launch_bounds__(kThreads) SumChannelsSideBySide(ScaleGradients work) {
  __shared__ double products[kThreads], totals[kThreads];
  const GroupNormProblem& p = work.p;
  const unsigned line = threadIdx.x / kAcross;
  for (int64_t first = int64_t{blockIdx.x} * kAcross; first < p.scales(); first += int64_t{gridDim.x} * kAcross) {
    const int64_t c = first + threadIdx.x % kAcross;
    ScalePair sums;
    for (int64_t n = int64_t{blockIdx.y} * kAlong + line; c < p.scales() && n < p.images; n += gridDim.y * kAlong) {
      work.Add(n, c, 0, &sums);
    }
    __syncthreads();  // they may still be read from the channels before
    products[threadIdx.x] = sums.product;
    totals[threadIdx.x] = sums.sum;
    __syncthreads();
    if (line != 0 || c >= p.scales()) continue;
    for (unsigned other = 1; other < kAlong; ++other) {
      sums.product += products[other * kAcross + threadIdx.x];
      sums.sum += totals[other * kAcross + threadIdx.x];
    }
    work.Keep(c, sums);
  }
}

// The sum of `count` parts for each channel; a block each.
__global__ void __launch_bounds__(kThreads) FinishChannels(int64_t count, ScaleGradients work) {
  ScalePair sums;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    const ScalePair& part = work.parts[blockIdx.x * count + i];
    sums.product += part.product;
    sums.sum += part.sum;
  }
  sums.product = SumBlock(sums.product);
  sums.sum = SumBlock(sums.sum);
  if (threadIdx.x == 0) work.Write(blockIdx.x, sums);
}

}  // namespace

void CudaOperations::GroupNormForward(const GroupNormProblem& problem, const float* x, const float* scale,
                                      const float* shift, float* y, RowMoments* moments) {
  const size_t bytes = RowScratch<MakeStandard>(queue(), problem.rows(), problem.width());
  OverRows(queue(), problem.rows(), problem.width(), MakeStandard{problem, x, scale, shift, y, moments},
           Scratch<normalization::Sums>(bytes));
}

void CudaOperations::GroupNormBackward(const GroupNormProblem& problem, const float* x, const float* scale,
                                       const RowMoments* moments, const float* dy, const GroupNormGradients& gradients,
                                       std::byte*) {
  if (gradients.scale || gradients.shift) {
    const bool side_by_side = problem.pixels == 1;
    constexpr int64_t kMostBlocks = int64_t{1} << 16, kMostPairs = int64_t{1} << 18;
    const int64_t tiles = side_by_side ? (problem.scales() + kAcross - 1) / kAcross : problem.scales();
    const int64_t blocks = std::clamp<int64_t>(tiles, 1, kMostBlocks);
    // Of a few thousand numbers each.
    const int64_t wanted = (int64_t{queue().multiprocessors} * 4 + blocks - 1) / blocks;
    const int64_t numbers = problem.images * problem.pixels * (problem.scales() / blocks);
    const int64_t fitting = kMostPairs / std::max<int64_t>(problem.scales(), 1);
    const int64_t parts = std::max<int64_t>(1, std::min({wanted, numbers / 2048, fitting, int64_t{1024}}));
    ScaleGradients work{problem, x, moments, dy, gradients.scale, gradients.shift, nullptr};
    if (parts > 1) work.parts = Scratch<ScalePair>(static_cast<size_t>(problem.scales() * parts) * sizeof(ScalePair));
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(parts));
    Launch(queue(), grid, kThreads, side_by_side ? SumChannelsSideBySide : SumChannels, work);
    if (parts > 1) Launch(queue(), static_cast<unsigned>(problem.scales()), kThreads, FinishChannels, parts, work);
  }
  if (!gradients.dx) return;
  const size_t bytes = RowScratch<StandardBack>(queue(), problem.rows(), problem.width());
  OverRows(queue(), problem.rows(), problem.width(), StandardBack{problem, x, scale, moments, dy, gradients.dx},
           Scratch<normalization::Sums>(bytes));
}

}  // namespace crema::cuda
