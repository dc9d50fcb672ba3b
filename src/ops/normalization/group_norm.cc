#include "ops/normalization/group_norm.h"

#include "ops/arrays/row_sums.h"
#include "ops/normalization/normalization_formulas.h"

namespace crema {

namespace {

using normalization::GroupNormGradient;
using normalization::Standard;
using normalization::Sums;

constexpr int64_t kGrain = 8192;  // elements worth waking a thread for
constexpr int64_t kPart = 128;    // vectors whose gradients are summed in floats
constexpr float kOne = 1.0f;

// As SumInLanes, for terms that do not cancel: adds short runs up in floats, and those in double.
template <typename Term>
CREMA_INLINE Sums SumInRuns(int64_t n, const Term& term) {
  constexpr int kLanes = 16, kRun = 32 * kLanes;
  Sums total;
  int64_t i = 0;
  while (i + kLanes <= n) {
    float first[kLanes] = {}, second[kLanes] = {};
    for (const int64_t end = std::min(n - n % kLanes, i + kRun); i < end; i += kLanes) {
#pragma omp simd
      for (int lane = 0; lane < kLanes; ++lane) term(i + lane, first[lane], second[lane]);
    }
    float a[4], b[4];
#pragma omp simd
    for (int lane = 0; lane < 4; ++lane) {
      a[lane] = (first[lane] + first[lane + 8]) + (first[lane + 4] + first[lane + 12]);
      b[lane] = (second[lane] + second[lane + 8]) + (second[lane + 4] + second[lane + 12]);
    }
    total.first += static_cast<double>((a[0] + a[2]) + (a[1] + a[3]));
    total.second += static_cast<double>((b[0] + b[2]) + (b[1] + b[3]));
  }
  float first = 0, second = 0;
  for (; i < n; ++i) term(i, first, second);
  total.first += static_cast<double>(first);
  total.second += static_cast<double>(second);
  return total;
}

// Of dy and of dy * standard x.
CREMA_MULTIVERSION Sums SumPlain(int64_t n, const Standard& standard, const float* x, const float* dy) {
  return SumInRuns(
      n, [&](int64_t i, float& sum, float& products) __attribute__((always_inline)) {
        sum += dy[i];
        products += dy[i] * standard(x[i]);
      });
}

// The same of scale * dy; and of_scale[i] += dy * standard x, of_shift[i] += dy. One function whether those are wanted
// or not, so that a compiler cannot round dx differently.
CREMA_MULTIVERSION Sums SumScaledAndAdd(int64_t n, const Standard& standard, const float* scale, const float* x,
                                        const float* dy, float* of_scale, float* of_shift) {
  return SumInRuns(
      n, [&](int64_t i, float& sum, float& products) __attribute__((always_inline)) {
        const float g = dy[i], product = g * standard(x[i]);
        sum += scale[i] * g;
        products += scale[i] * product;
        of_scale[i] += product;
        of_shift[i] += g;
      });
}

CREMA_MULTIVERSION void Map(int64_t n, const Standard& standard, float scale, float shift, const float* x, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = standard(x[i]) * scale + shift;
}

// With a scale for each; shift may be null.
CREMA_MULTIVERSION void MapEach(int64_t n, const Standard& standard, const float* scale, const float* shift,
                                const float* x, float* y) {
  if (shift == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = standard(x[i]) * scale[i];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = standard(x[i]) * scale[i] + shift[i];
  }
}

CREMA_MULTIVERSION void MapBack(int64_t n, const GroupNormGradient& gradient, float scale, const float* x,
                                const float* dy, float* dx) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = gradient(scale * dy[i], x[i]);
}

CREMA_MULTIVERSION void MapBackEach(int64_t n, const GroupNormGradient& gradient, const float* scale, const float* x,
                                    const float* dy, float* dx) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = gradient(scale[i] * dy[i], x[i]);
}

// Part [begin, end) of a row, in pieces that can be treated alike: calls body(begin, end, channel, each), `channel`
// being that of the first element, and, where `each`, the next element's the next.
template <typename Body>
void ForEachPiece(const GroupNormProblem& p, bool scaled, int64_t row, int64_t begin, int64_t end, const Body& body) {
  const int64_t first_channel = row % p.groups * p.channels;
  if (!scaled || p.pixels == 1) return body(begin, end, first_channel + begin, scaled);
  for (int64_t c = begin / p.pixels; c * p.pixels < end; ++c) {
    body(std::max(begin, c * p.pixels), std::min(end, (c + 1) * p.pixels), first_channel + c, false);
  }
}

struct Backward {
  const GroupNormProblem& p;
  const float *x, *scale;
  const RowMoments* moments;
  const float* dy;
  const GroupNormGradients& gradients;
  float* workspace;

  Standard StandardOf(int64_t row) const { return Standard{moments[row]}; }

  // A row of images of one pixel; with a scale `of_scale` and `of_shift` get what its channels add.
  void Row(int64_t row, float* of_scale, float* of_shift) const {
    const int64_t at = row * p.channels, n = p.channels;
    const float *const a = x + at, *const b = dy + at;
    const float* const by = scale == nullptr ? nullptr : scale + row % p.groups * n;
    const Standard standard = StandardOf(row);
    const Sums sums =
        by == nullptr ? SumPlain(n, standard, a, b) : SumScaledAndAdd(n, standard, by, a, b, of_scale, of_shift);
    if (gradients.dx == nullptr) return;
    const GroupNormGradient gradient = normalization::GroupNormGradientOf(p, sums, moments[row]);
    if (by == nullptr) {
      MapBack(n, gradient, 1.0f, a, b, gradients.dx + at);
    } else {
      MapBackEach(n, gradient, by, a, b, gradients.dx + at);
    }
  }

  // Images of one pixel: each part of them adds its channels up while they are in cache.
  void Vectors() const {
    const int64_t parts = (p.images + kPart - 1) / kPart;
    ParallelFor(parts, std::max<int64_t>(1, kGrain / (kPart * p.scales() + 1)), [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        float* const of_scale = workspace + 2 * part * p.scales();
        std::fill(of_scale, of_scale + 2 * p.scales(), 0.0f);
        for (int64_t row = part * kPart * p.groups; row < std::min(p.images, (part + 1) * kPart) * p.groups; ++row) {
          float* const first = of_scale + row % p.groups * p.channels;
          Row(row, first, first + p.scales());
        }
      }
    });
    if (gradients.scale != nullptr || gradients.shift != nullptr) SumUp(parts);
  }

  // One image plane, channel by channel.
  void SumPlane(int64_t plane) const {
    const int64_t at = plane * p.pixels, image = plane / p.scales(), channel = plane % p.scales();
    const Sums sums = SumPlain(p.pixels, StandardOf(plane / p.channels), x + at, dy + at);
    float* const of_image = workspace + 2 * image * p.scales();
    of_image[channel] = static_cast<float>(sums.second);
    of_image[p.scales() + channel] = static_cast<float>(sums.first);
  }
  GroupNormGradient GradientOf(int64_t row) const {
    const int64_t image = row / p.groups, first = row % p.groups * p.channels;
    const float* const of_image = workspace + 2 * image * p.scales();
    Sums sums;
    for (int64_t c = first; c < first + p.channels; ++c) {
      const auto by = static_cast<double>(scale == nullptr ? 1.0f : scale[c]);
      sums.first += by * static_cast<double>(of_image[p.scales() + c]);
      sums.second += by * static_cast<double>(of_image[c]);
    }
    return normalization::GroupNormGradientOf(p, sums, moments[row]);
  }
  void MapPlane(const GroupNormGradient& gradient, int64_t plane) const {
    const int64_t at = plane * p.pixels;
    MapBack(p.pixels, gradient, scale == nullptr ? 1.0f : scale[plane % p.scales()], x + at, dy + at,
            gradients.dx + at);
  }

  void Images() const {
    constexpr int64_t kManyRows = 64;  // enough for any number of threads
    const auto for_each = [&](int64_t count, int64_t size, const auto& body) {
      ParallelFor(count, std::max<int64_t>(1, kGrain / (size + 1)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) body(i);
      });
    };
    if (p.rows() >= kManyRows) {
      for_each(p.rows(), p.width(), [&](int64_t row) {
        for (int64_t c = 0; c < p.channels; ++c) SumPlane(row * p.channels + c);
        if (gradients.dx == nullptr) return;
        const GroupNormGradient gradient = GradientOf(row);
        for (int64_t c = 0; c < p.channels; ++c) MapPlane(gradient, row * p.channels + c);
      });
    } else {
      for_each(p.images * p.scales(), p.pixels, [&](int64_t plane) { SumPlane(plane); });
      if (gradients.dx != nullptr) {
        for_each(p.images * p.scales(), p.pixels,
                 [&](int64_t plane) { MapPlane(GradientOf(plane / p.channels), plane); });
      }
    }
    SumUp(p.images);
  }

  // The gradients of scale and shift, from `count` sums of each channel.
  void SumUp(int64_t count) const {
    ParallelFor(p.scales(), std::max<int64_t>(1, kGrain / (count + 1)), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        double product = 0, sum = 0;
        for (int64_t i = 0; i < count; ++i) {
          product += static_cast<double>(workspace[2 * i * p.scales() + c]);
          sum += static_cast<double>(workspace[(2 * i + 1) * p.scales() + c]);
        }
        if (gradients.scale != nullptr) gradients.scale[c] = static_cast<float>(product);
        if (gradients.shift != nullptr) gradients.shift[c] = static_cast<float>(sum);
      }
    });
  }
};

}  // namespace

void GroupNormForward(const GroupNormProblem& p, const float* x, const float* scale, const float* shift, float* y,
                      RowMoments* moments) {
  OverRows<Sums>(
      p.rows(), p.width(),
      [&](int64_t row, int64_t begin, int64_t end) {
        const float origin = x[row * p.width()];
        Sums sums = normalization::SumDifferences(end - begin, x + row * p.width() + begin, origin);
        sums.origin = origin;
        return sums;
      },
      [&](int64_t row, const Sums& sums, int64_t begin, int64_t end) {
        const Standard standard = normalization::StandardOf(p, sums);
        const float* const from = x + row * p.width();
        float* const to = y + row * p.width();
        ForEachPiece(p, scale != nullptr, row, begin, end, [&](int64_t first, int64_t last, int64_t c, bool each) {
          const float* const by = scale == nullptr ? &kOne : scale + c;
          const float* const plus = shift == nullptr ? nullptr : shift + c;
          if (each) {
            MapEach(last - first, standard, by, plus, from + first, to + first);
          } else {
            Map(last - first, standard, *by, plus == nullptr ? 0.0f : *plus, from + first, to + first);
          }
        });
        if (begin == 0 && moments != nullptr) moments[row] = standard;
      });
}

size_t GroupNormBackwardWorkspace(const GroupNormProblem& p) {
  const int64_t sums = p.pixels == 1 ? (p.images + kPart - 1) / kPart : p.images;
  return static_cast<size_t>(2 * sums * p.scales()) * sizeof(float);
}

void GroupNormBackward(const GroupNormProblem& p, const float* x, const float* scale, const RowMoments* moments,
                       const float* dy, const GroupNormGradients& gradients, std::byte* workspace) {
  const Backward backward{p, x, scale, moments, dy, gradients, reinterpret_cast<float*>(workspace)};
  if (p.pixels == 1) {
    backward.Vectors();
  } else {
    backward.Images();
  }
}

}  // namespace crema
