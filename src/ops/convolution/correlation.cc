#include "ops/convolution/correlation.h"

#include <algorithm>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/convolution/correlation_formulas.h"

namespace crema {

namespace {

using Problem = CorrelationProblem;

constexpr int64_t kGrain = 16384;  // products worth waking a thread for
constexpr int64_t kLanes = 32;     // columns whose sums stay in registers
constexpr int64_t kTogether = 8;   // channels of a thread that read the gradients of the result

int64_t PaddedWidth(const Problem& p) { return p.width + 2 * p.pad; }
int64_t PaddedPlane(const Problem& p) { return (p.height + 2 * p.pad) * PaddedWidth(p); }

// Images with zeros around them.
struct Padded {
  float *first, *second;

  Padded(const Problem& p, const float* first_image, const float* second_image, std::byte* workspace)
      : first(reinterpret_cast<float*>(workspace)), second(first + p.images * p.channels * PaddedPlane(p)) {
    const int64_t planes = p.images * p.channels;
    ParallelFor(2 * planes, std::max<int64_t>(1, kGrain / (PaddedPlane(p) + 1)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float* const from = (i < planes ? first_image : second_image) + i % planes * p.plane();
        Pad(p, from, (i < planes ? first : second) + i % planes * PaddedPlane(p));
      }
    });
  }

  static void Pad(const Problem& p, const float* from, float* to) {
    to = std::fill_n(to, p.pad * PaddedWidth(p), 0.0f);
    for (int64_t row = 0; row < p.height; ++row) {
      to = std::fill_n(to, p.pad, 0.0f);
      to = std::copy_n(from + row * p.width, p.width, to);
      to = std::fill_n(to, p.pad, 0.0f);
    }
    std::fill_n(to, p.pad * PaddedWidth(p), 0.0f);
  }
};

// kCount columns of a row of the result; a and b: of the first channel, the first pixels of the windows, which follow
// each other kStride pixels apart, or p.stride where that is 0.
template <int64_t kCount, int64_t kStride, typename Formula>
CREMA_INLINE void SumColumns(const Problem& p, const Formula& formula, const float* a, const float* b, float* y) {
  const int64_t plane = PaddedPlane(p), width = PaddedWidth(p), stride = kStride > 0 ? kStride : p.stride;
  float sums[kCount] = {};
  for (int64_t c = 0; c < p.channels; ++c) {
    for (int64_t j = 0; j < p.kernel; ++j) {
      for (int64_t i = 0; i < p.kernel; ++i) {
        const float *const from = a + c * plane + j * width + i, *const other = b + c * plane + j * width + i;
#pragma omp simd
        for (int64_t x = 0; x < kCount; ++x) sums[x] += formula(from[x * stride], other[x * stride]);
      }
    }
  }
  const float share = p.share();
  for (int64_t x = 0; x < kCount; ++x) y[x] = sums[x] * share;
}

// In blocks of columns that get smaller.
template <int64_t kCount, int64_t kStride, typename Formula>
CREMA_INLINE void SumBlocks(const Problem& p, const Formula& formula, const float* a, const float* b, int64_t x,
                            float* y) {
  for (; x + kCount <= p.columns; x += kCount) {
    SumColumns<kCount, kStride>(p, formula, a + x * p.stride, b + x * p.stride, y + x);
  }
  if constexpr (kCount > 1) {
    if (x < p.columns) SumBlocks<kCount / (kCount > 4 ? 2 : 4), kStride>(p, formula, a, b, x, y);
  }
}

template <int64_t kStride, typename Formula>
CREMA_MULTIVERSION void SumRow(const Problem& p, const float* a, const float* b, float* y) {
  SumBlocks<kLanes, kStride>(p, Formula(), a, b, 0, y);
}

template <typename Formula>
void SumRow(const Problem& p, const float* a, const float* b, float* y) {
  p.stride == 1 ? SumRow<1, Formula>(p, a, b, y) : SumRow<0, Formula>(p, a, b, y);
}

// Pixels that a displacement moves windows down, or across.
int64_t Moved(const Problem& p, int64_t displacement) { return (displacement - p.radius) * p.step; }

// The columns [begin, end) of the result whose window has pixel `at` + column * stride of a row inside of the image.
struct Inside {
  Inside(const Problem& p, int64_t at)
      : begin(std::min(p.columns, at < 0 ? (p.stride - 1 - at) / p.stride : 0)),
        end(at < p.width ? std::clamp((p.width - at + p.stride - 1) / p.stride, begin, p.columns) : begin) {}
  int64_t begin, end;
};

template <typename Gradient>
CREMA_MULTIVERSION void AddRow(int64_t n, int64_t stride, float share, const float* own, const float* other,
                               const float* dy, float* dx) {
  const Gradient gradient;
#pragma omp simd
  for (int64_t x = 0; x < n; ++x) {
    dx[x * stride] += share * dy[x] * gradient(own[x * stride], other[x * stride]);
  }
}

// Some channels [begin, end) of all channels of all images, of the gradient of one image. `displaced`: of the second.
template <typename Gradient>
void BackwardOf(const Problem& p, const Padded& padded, bool displaced, const float* dy, int64_t begin, int64_t end,
                float* dx) {
  const int64_t width = PaddedWidth(p), plane = PaddedPlane(p), image = begin / p.channels;
  const float *const own = displaced ? padded.second : padded.first, *const other =
                                                                         displaced ? padded.first : padded.second;
  std::fill(dx + begin * p.plane(), dx + end * p.plane(), 0.0f);
  for (int64_t d = 0; d < p.displacements(); ++d) {
    const int64_t down = Moved(p, d / p.side()), across = Moved(p, d % p.side());
    const int64_t own_row = p.reach + (displaced ? down : 0), own_column = p.reach + (displaced ? across : 0);
    const int64_t apart = (displaced ? -1 : 1) * (down * width + across);  // from a pixel to the one it meets
    for (int64_t y = 0; y < p.rows; ++y) {
      const float* const gradients = dy + ((image * p.displacements() + d) * p.rows + y) * p.columns;
      for (int64_t j = 0; j < p.kernel; ++j) {
        const int64_t row = own_row + y * p.stride + j;
        if (row < p.pad || row >= p.pad + p.height) continue;
        for (int64_t i = 0; i < p.kernel; ++i) {
          const Inside inside(p, own_column + i - p.pad);
          const int64_t column = own_column + i + inside.begin * p.stride;
          for (int64_t c = begin; c < end; ++c) {
            const int64_t at = c * plane + row * width + column;
            AddRow<Gradient>(inside.end - inside.begin, p.stride, p.share(), own + at, other + at + apart,
                             gradients + inside.begin, dx + (c * p.height + row - p.pad) * p.width + column - p.pad);
          }
        }
      }
    }
  }
}

}  // namespace

size_t CorrelationWorkspace(const CorrelationProblem& problem) {
  return static_cast<size_t>(2 * problem.images * problem.channels * PaddedPlane(problem)) * sizeof(float);
}

void CorrelationForward(const CorrelationProblem& problem, const float* first, const float* second, float* y,
                        std::byte* workspace) {
  const Problem& p = problem;
  const Padded padded(p, first, second, workspace);
  const int64_t work = p.columns * p.channels * p.kernel * p.kernel;
  ParallelFor(p.images * p.displacements() * p.rows, std::max<int64_t>(1, kGrain / (work + 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t n = begin; n < end; ++n) {
                  const int64_t row = n % p.rows, d = n / p.rows % p.displacements();
                  const int64_t image = n / p.rows / p.displacements() * p.channels * PaddedPlane(p);
                  const int64_t at = image + (p.reach + row * p.stride) * PaddedWidth(p) + p.reach;
                  const int64_t apart = Moved(p, d / p.side()) * PaddedWidth(p) + Moved(p, d % p.side());
                  const float *const a = padded.first + at, *const b = padded.second + at + apart;
                  float* const to = y + n * p.columns;
                  p.subtract ? SumRow<correlation::Subtract>(p, a, b, to) : SumRow<correlation::Multiply>(p, a, b, to);
                }
              });
}

void CorrelationBackward(const CorrelationProblem& problem, const float* first, const float* second, const float* dy,
                         float* first_gradient, float* second_gradient, std::byte* workspace) {
  const Problem& p = problem;
  const Padded padded(p, first, second, workspace);
  const int64_t groups = (p.channels + kTogether - 1) / kTogether;
  const int64_t work = kTogether * p.displacements() * p.rows * p.columns * p.kernel * p.kernel;
  ParallelFor(2 * p.images * groups, std::max<int64_t>(1, kGrain / (work + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const bool displaced = n % 2 == 1;
      float* const dx = displaced ? second_gradient : first_gradient;
      if (!dx) continue;
      const int64_t image = n / 2 / groups, channel = n / 2 % groups * kTogether;
      const int64_t at = image * p.channels + channel,
                    last = image * p.channels + std::min(channel + kTogether, p.channels);
      p.subtract ? BackwardOf<correlation::SubtractGradient>(p, padded, displaced, dy, at, last, dx)
                 : BackwardOf<correlation::MultiplyGradient>(p, padded, displaced, dy, at, last, dx);
    }
  });
}

}  // namespace crema
