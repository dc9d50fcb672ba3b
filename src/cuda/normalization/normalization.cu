#include "cuda/arrays/lanes.h"
#include "cuda/arrays/row_sums.h"
#include "cuda/operations.h"
#include "ops/normalization/normalization_formulas.h"

namespace crema::cuda {

namespace {

using normalization::Standard;
using normalization::StandardGradient;

struct MakeStandard {
  using Sums = normalization::Sums;
  MvnProblem problem;
  const float* x;
  float *y, *inverse;  // inverse may be null

  __device__ float Origin(int64_t row) const { return x[row * problem.width]; }
  __device__ void Add(int64_t row, int64_t i, float origin, double* sum, double* squares) const {
    const double difference = static_cast<double>(x[row * problem.width + i]) - static_cast<double>(origin);
    *sum += difference;
    *squares += difference * difference;
  }
  __device__ Standard Finish(int64_t, const Sums& sums) const { return normalization::StandardOf(problem, sums); }
  __device__ void Keep(int64_t row, const Standard& standard) const {
    if (inverse) inverse[row] = standard.inverse;
  }
  __device__ void Apply(int64_t row, int64_t i, const Standard& standard) const {
    y[row * problem.width + i] = standard(x[row * problem.width + i]);
  }
};

struct StandardBack {
  using Sums = normalization::Sums;
  MvnProblem problem;
  const float *y, *inverse, *dy;  // without division y is dy, and inverse is not read
  float* dx;

  __device__ float Origin(int64_t) const { return 0.0f; }
  __device__ void Add(int64_t row, int64_t i, float, double* sum, double* products) const {
    const int64_t at = row * problem.width + i;
    *sum += static_cast<double>(dy[at]);
    *products += static_cast<double>(dy[at]) * static_cast<double>(y[at]);
  }
  __device__ StandardGradient Finish(int64_t row, const Sums& sums) const {
    return normalization::StandardGradientOf(problem, sums, problem.divide ? inverse[row] : 1.0f);
  }
  __device__ void Keep(int64_t, const StandardGradient&) const {}
  __device__ void Apply(int64_t row, int64_t i, const StandardGradient& gradient) const {
    const int64_t at = row * problem.width + i;
    dx[at] = gradient(dy[at], y[at]);
  }
};

// Element i of an image.
__device__ float ScaleOf(const NormalizeProblem& p, const float* scale, int64_t i) {
  if (p.channels == 1) return scale[0];
  SplitOff(&i, p.pixels);
  return scale[i];
}

// What of an element goes into the sum that makes a length.
__device__ double TermOf(const NormalizeProblem& p, float x) {
  const double value = static_cast<double>(x);
  return p.absolute ? fabs(value) : value * value;
}

// What the gradient of a length goes by.
__device__ float DirectionOf(const NormalizeProblem& p, float x) { return p.absolute ? normalization::SignOf(x) : x; }

struct NormalizeImages {
  using Sums = normalization::Sums;
  NormalizeProblem p;
  const float *x, *scale;
  float *y, *inverse;  // inverse may be null

  __device__ int64_t At(int64_t row, int64_t i) const { return row * p.channels * p.pixels + i; }
  __device__ float Origin(int64_t) const { return 0.0f; }
  __device__ void Add(int64_t row, int64_t i, float, double* sum, double*) const { *sum += TermOf(p, x[At(row, i)]); }
  __device__ float Finish(int64_t, const Sums& sums) const { return normalization::InverseLength(p, sums.first); }
  __device__ void Keep(int64_t row, float factor) const {
    if (inverse) inverse[row] = factor;
  }
  __device__ void Apply(int64_t row, int64_t i, float factor) const {
    y[At(row, i)] = factor * ScaleOf(p, scale, i) * x[At(row, i)];
  }
};

struct NormalizeImagesBack {
  using Sums = normalization::Sums;
  NormalizeProblem p;
  const float *x, *scale, *inverse, *dy;
  float* dx;

  __device__ int64_t At(int64_t row, int64_t i) const { return row * p.channels * p.pixels + i; }
  __device__ float Origin(int64_t) const { return 0.0f; }
  __device__ void Add(int64_t row, int64_t i, float, double* dot, double*) const {
    const int64_t at = At(row, i);
    *dot += static_cast<double>(ScaleOf(p, scale, i)) * (static_cast<double>(x[at]) * static_cast<double>(dy[at]));
  }
  __device__ float Finish(int64_t row, const Sums& sums) const {
    return normalization::Shrinkage(p, sums.first, inverse[row]);
  }
  __device__ void Keep(int64_t, float) const {}
  __device__ void Apply(int64_t row, int64_t i, float of_x) const {
    const int64_t at = At(row, i);
    dx[at] = inverse[row] * ScaleOf(p, scale, i) * dy[at] + of_x * DirectionOf(p, x[at]);
  }
};

constexpr unsigned kAcross = 32, kAlong = kThreads / kAcross;  // pixels of a block, and threads for each of them

// The sum over the threads of a pixel or a channel, in all of them; all of the block must call.
__device__ double SumAlong(double value) {
  __shared__ double values[kThreads];
  __syncthreads();  // they may still be read from a call before
  values[threadIdx.x] = value;
  __syncthreads();
  double sum = 0;
  for (unsigned line = 0; line < kAlong; ++line) sum += values[line * kAcross + threadIdx.x % kAcross];
  return sum;
}

// Where a thread is that has some channels of a pixel.
struct PixelPlace {
  bool inside;
  int64_t vector, first;
  unsigned line;

  __device__ explicit PixelPlace(const NormalizeProblem& p) : line(threadIdx.x / kAcross) {
    vector = int64_t{blockIdx.x} * kAcross + threadIdx.x % kAcross;
    inside = vector < p.images * p.pixels;
    int64_t image = inside ? vector : 0;
    const int64_t pixel = SplitOff(&image, p.pixels);
    first = image * p.channels * p.pixels + pixel;
  }
};

__global__ void __launch_bounds__(kThreads)
    NormalizePixels(NormalizeProblem p, const float* x, const float* scale, float* y, float* inverse) {
  const PixelPlace place(p);
  double sum = 0;
  for (int64_t c = place.line; place.inside && c < p.channels; c += kAlong) {
    sum += TermOf(p, x[place.first + c * p.pixels]);
  }
  const float factor = normalization::InverseLength(p, SumAlong(sum));
  if (!place.inside) return;
  if (inverse && place.line == 0) inverse[place.vector] = factor;
  for (int64_t c = place.line; c < p.channels; c += kAlong) {
    const int64_t at = place.first + c * p.pixels;
    y[at] = factor * scale[p.shared ? 0 : c] * x[at];
  }
}

__global__ void __launch_bounds__(kThreads) NormalizePixelsBack(NormalizeProblem p, const float* x, const float* scale,
                                                                const float* inverse, const float* dy, float* dx) {
  const PixelPlace place(p);
  double dot = 0;
  for (int64_t c = place.line; place.inside && c < p.channels; c += kAlong) {
    const int64_t at = place.first + c * p.pixels;
    dot += static_cast<double>(scale[p.shared ? 0 : c]) * (static_cast<double>(x[at]) * static_cast<double>(dy[at]));
  }
  dot = SumAlong(dot);
  if (!place.inside) return;
  const float factor = inverse[place.vector], of_x = normalization::Shrinkage(p, dot, factor);
  for (int64_t c = place.line; c < p.channels; c += kAlong) {
    const int64_t at = place.first + c * p.pixels;
    dx[at] = factor * scale[p.shared ? 0 : c] * dy[at] + of_x * DirectionOf(p, x[at]);
  }
}

// What the gradient of scales is made of.
struct ScaleTerms {
  NormalizeProblem p;
  const float *x, *inverse, *dy;

  __device__ double Of(int64_t at, int64_t vector) const {
    return static_cast<double>(dy[at]) * static_cast<double>(x[at]) * static_cast<double>(inverse[vector]);
  }
};

// Where the sums of scales go: to the gradient, or, where more than one block has numbers of a scale, parts of them to
// scratch memory.
struct ScaleSums {
  double* parts;
  float* gradient;

  __device__ void Keep(int64_t index, double sum) const {
    if (parts) {
      parts[index * gridDim.y + blockIdx.y] = sum;
    } else {
      gradient[index] = static_cast<float>(sum);
    }
  }
};

// Block (x, y) sums part y of its channels up. With one scale all of the block go into one sum.
__global__ void __launch_bounds__(kThreads) SumScales(ScaleTerms terms, ScaleSums sums) {
  const NormalizeProblem& p = terms.p;
  const int64_t n = p.images * p.pixels, step = int64_t{gridDim.y} * kThreads;
  double sum = 0;
  for (int64_t c = blockIdx.x; c < p.channels; c += gridDim.x) {
    for (int64_t i = int64_t{blockIdx.y} * kThreads + threadIdx.x; i < n; i += step) {
      int64_t image = i;
      const int64_t pixel = SplitOff(&image, p.pixels);
      sum += terms.Of((image * p.channels + c) * p.pixels + pixel, p.whole ? image : i);
    }
    if (p.shared) continue;
    sum = SumBlock(sum);
    if (threadIdx.x == 0) sums.Keep(c, sum);
    sum = 0;
  }
  if (!p.shared) return;
  sum = SumBlock(sum);
  if (threadIdx.x == 0) sums.Keep(blockIdx.x, sum);
}

// The same for channels that lie side by side, images of one pixel.
__global__ void __launch_bounds__(kThreads) SumScalesSideBySide(ScaleTerms terms, ScaleSums sums) {
  const NormalizeProblem& p = terms.p;
  const unsigned line = threadIdx.x / kAcross;
  for (int64_t first = int64_t{blockIdx.x} * kAcross; first < p.channels; first += int64_t{gridDim.x} * kAcross) {
    const int64_t c = first + threadIdx.x % kAcross;
    double sum = 0;
    for (int64_t n = int64_t{blockIdx.y} * kAlong + line; c < p.channels && n < p.images; n += gridDim.y * kAlong) {
      sum += terms.Of(n * p.channels + c, n);
    }
    sum = SumAlong(sum);
    if (line == 0 && c < p.channels) sums.Keep(c, sum);
  }
}

// gradient[i] = the sum of `count` parts; a block each.
__global__ void __launch_bounds__(kThreads) FinishScales(int64_t count, const double* parts, float* gradient) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) sum += parts[blockIdx.x * count + i];
  sum = SumBlock(sum);
  if (threadIdx.x == 0) gradient[blockIdx.x] = static_cast<float>(sum);
}

}  // namespace

void CudaOperations::MvnForward(const MvnProblem& problem, const float* x, float* y, float* inverse) {
  const size_t bytes = RowScratch<MakeStandard>(queue(), problem.rows, problem.width);
  OverRows(queue(), problem.rows, problem.width, MakeStandard{problem, x, y, inverse},
           Scratch<normalization::Sums>(bytes));
}

void CudaOperations::MvnBackward(const MvnProblem& problem, const float* y, const float* inverse, const float* dy,
                                 float* dx) {
  const size_t bytes = RowScratch<StandardBack>(queue(), problem.rows, problem.width);
  OverRows(queue(), problem.rows, problem.width, StandardBack{problem, problem.divide ? y : dy, inverse, dy, dx},
           Scratch<normalization::Sums>(bytes));
}

void CudaOperations::NormalizeForward(const NormalizeProblem& problem, const float* x, const float* scale, float* y,
                                      float* inverse) {
  const NormalizeProblem p = problem.Simplest();
  if (p.count() == 0) return;
  if (p.whole) {
    const int64_t size = p.channels * p.pixels;
    const size_t bytes = RowScratch<NormalizeImages>(queue(), p.images, size);
    OverRows(queue(), p.images, size, NormalizeImages{p, x, scale, y, inverse}, Scratch<normalization::Sums>(bytes));
    return;
  }
  const auto blocks = static_cast<unsigned>((p.images * p.pixels + kAcross - 1) / kAcross);
  Launch(queue(), blocks, kThreads, NormalizePixels, p, x, scale, y, inverse);
}

void CudaOperations::NormalizeBackward(const NormalizeProblem& problem, const float* x, const float* scale,
                                       const float* inverse, const float* dy, float* dx, float* scale_gradient) {
  const NormalizeProblem p = problem.Simplest();
  if (scale_gradient) {
    const bool side_by_side = p.pixels == 1 && !p.shared;
    constexpr int64_t kMostParts = int64_t{1} << 19;  // there is room for
    const int64_t wanted = int64_t{queue().multiprocessors} * 4;
    const int64_t blocks_x = std::clamp<int64_t>(side_by_side ? (p.channels + kAcross - 1) / kAcross : p.channels, 1,
                                                 p.shared ? wanted : kMostParts);
    const int64_t sums = p.shared ? blocks_x : p.channels;
    // Of a few thousand numbers each.
    const int64_t numbers = p.images * p.pixels * (p.channels / blocks_x);
    const int64_t fitting = std::max<int64_t>(1, kMostParts / std::max<int64_t>(sums, 1));
    const int64_t parts = std::clamp<int64_t>(std::min((wanted + blocks_x - 1) / blocks_x, numbers / 2048), 1,
                                              std::min<int64_t>(fitting, 1024));
    const bool finished = sums == p.scales() && parts == 1;
    double* const of_parts = finished ? nullptr : Scratch<double>(static_cast<size_t>(sums * parts) * sizeof(double));
    const dim3 grid(static_cast<unsigned>(blocks_x), static_cast<unsigned>(parts));
    Launch(queue(), grid, kThreads, side_by_side ? SumScalesSideBySide : SumScales, ScaleTerms{p, x, inverse, dy},
           ScaleSums{of_parts, scale_gradient});
    if (!finished && p.scales() > 0) {
      Launch(queue(), static_cast<unsigned>(p.scales()), kThreads, FinishScales, p.shared ? blocks_x * parts : parts,
             of_parts, scale_gradient);
    }
  }
  if (!dx || p.count() == 0) return;
  if (p.whole) {
    const int64_t size = p.channels * p.pixels;
    const size_t bytes = RowScratch<NormalizeImagesBack>(queue(), p.images, size);
    OverRows(queue(), p.images, size, NormalizeImagesBack{p, x, scale, inverse, dy, dx},
             Scratch<normalization::Sums>(bytes));
    return;
  }
  const auto blocks = static_cast<unsigned>((p.images * p.pixels + kAcross - 1) / kAcross);
  Launch(queue(), blocks, kThreads, NormalizePixelsBack, p, x, scale, inverse, dy, dx);
}

}  // namespace crema::cuda
