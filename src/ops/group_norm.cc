#include "ops/group_norm.h"

#include "ops/normalization_formulas.h"
#include "ops/row_sums.h"

namespace crema {

namespace {

using normalization::GroupNormGradient;
using normalization::Standard;
using normalization::Sums;

constexpr int64_t kGrain = 8192;  // elements worth waking a thread for
constexpr int64_t kColumns = 32;  // channels whose gradients are summed side by side
constexpr float kOne = 1.0f;

CREMA_MULTIVERSION Sums SumDifferences(int64_t n, const float* x, float origin) {
  return SumInLanes<Sums>(
      n, [&](int64_t i, double& sum, double& squares) __attribute__((always_inline)) {
        const double difference = static_cast<double>(x[i]) - static_cast<double>(origin);
        sum += difference;
        squares += difference * difference;
      });
}

// Of dy and dy * standard x.
CREMA_MULTIVERSION Sums SumGradients(int64_t n, const Standard& standard, const float* x, const float* dy) {
  return SumInLanes<Sums>(
      n, [&](int64_t i, double& sum, double& products) __attribute__((always_inline)) {
        sum += static_cast<double>(dy[i]);
        products += static_cast<double>(dy[i] * standard(x[i]));
      });
}

// The same of scale * dy.
CREMA_MULTIVERSION Sums SumScaledGradients(int64_t n, const Standard& standard, const float* scale, const float* x,
                                           const float* dy) {
  return SumInLanes<Sums>(
      n, [&](int64_t i, double& sum, double& products) __attribute__((always_inline)) {
        const float gradient = scale[i] * dy[i];
        sum += static_cast<double>(gradient);
        products += static_cast<double>(gradient * standard(x[i]));
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

// For `width` <= kColumns neighbouring channels of images of one pixel, from channel `first` of a group on: sums over
// images of dy * standard x and of dy.
CREMA_MULTIVERSION void SumColumns(const GroupNormProblem& p, int64_t group, int64_t first, int64_t width,
                                   const float* x, const RowMoments* moments, const float* dy, double* products,
                                   double* sums) {
  for (int64_t n = 0; n < p.images; ++n) {
    const int64_t row = n * p.groups + group;
    const Standard standard{moments[row]};
    const float *a = x + row * p.channels + first, *b = dy + row * p.channels + first;
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) {
      products[c] += static_cast<double>(b[c] * standard(a[c]));
      sums[c] += static_cast<double>(b[c]);
    }
  }
}

void ScaleGradients(const GroupNormProblem& p, const float* x, const RowMoments* moments, const float* dy,
                    const GroupNormGradients& gradients) {
  const auto keep = [&](int64_t channel, double product, double sum) {
    if (gradients.scale != nullptr) gradients.scale[channel] = static_cast<float>(product);
    if (gradients.shift != nullptr) gradients.shift[channel] = static_cast<float>(sum);
  };
  if (p.pixels == 1) {
    const int64_t of_group = (p.channels + kColumns - 1) / kColumns;
    ParallelFor(p.groups * of_group, std::max<int64_t>(1, kGrain / (p.images * kColumns + 1)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t group = i / of_group, first = i % of_group * kColumns;
                    const int64_t width = std::min(kColumns, p.channels - first);
                    double products[kColumns] = {}, sums[kColumns] = {};
                    SumColumns(p, group, first, width, x, moments, dy, products, sums);
                    for (int64_t c = 0; c < width; ++c) keep(group * p.channels + first + c, products[c], sums[c]);
                  }
                });
    return;
  }
  ParallelFor(p.scales(), std::max<int64_t>(1, kGrain / (p.images * p.pixels + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      Sums total;
      for (int64_t n = 0; n < p.images; ++n) {
        const int64_t at = (n * p.scales() + c) * p.pixels;
        const Standard standard{moments[n * p.groups + c / p.channels]};
        const Sums sums = SumGradients(p.pixels, standard, x + at, dy + at);
        total.first += sums.first;
        total.second += sums.second;
      }
      keep(c, total.second, total.first);
    }
  });
}

}  // namespace

void GroupNormForward(const GroupNormProblem& p, const float* x, const float* scale, const float* shift, float* y,
                      RowMoments* moments) {
  OverRows<Sums>(
      p.rows(), p.width(),
      [&](int64_t row, int64_t begin, int64_t end) {
        const float origin = x[row * p.width()];
        Sums sums = SumDifferences(end - begin, x + row * p.width() + begin, origin);
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

void GroupNormBackward(const GroupNormProblem& p, const float* x, const float* scale, const RowMoments* moments,
                       const float* dy, const GroupNormGradients& gradients) {
  if (gradients.scale != nullptr || gradients.shift != nullptr) ScaleGradients(p, x, moments, dy, gradients);
  if (gradients.dx == nullptr) return;
  OverRows<Sums>(
      p.rows(), p.width(),
      [&](int64_t row, int64_t begin, int64_t end) {
        const Standard standard{moments[row]};
        const float *a = x + row * p.width(), *b = dy + row * p.width();
        Sums total;
        ForEachPiece(p, scale != nullptr, row, begin, end, [&](int64_t first, int64_t last, int64_t c, bool each) {
          if (each) {
            total = SumScaledGradients(last - first, standard, scale + c, a + first, b + first);
            return;
          }
          const Sums sums = SumGradients(last - first, standard, a + first, b + first);
          const auto by = static_cast<double>(scale == nullptr ? 1.0f : scale[c]);
          total.first += by * sums.first;
          total.second += by * sums.second;
        });
        return total;
      },
      [&](int64_t row, const Sums& sums, int64_t begin, int64_t end) {
        const GroupNormGradient gradient = normalization::GroupNormGradientOf(p, sums, moments[row]);
        const float *a = x + row * p.width(), *b = dy + row * p.width();
        float* const to = gradients.dx + row * p.width();
        ForEachPiece(p, scale != nullptr, row, begin, end, [&](int64_t first, int64_t last, int64_t c, bool each) {
          if (each) {
            MapBackEach(last - first, gradient, scale + c, a + first, b + first, to + first);
          } else {
            MapBack(last - first, gradient, scale == nullptr ? 1.0f : scale[c], a + first, b + first, to + first);
          }
        });
      });
}

}  // namespace crema
