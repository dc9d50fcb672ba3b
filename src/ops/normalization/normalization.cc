#include "ops/normalization/normalization.h"

#include <cmath>

#include "ops/arrays/row_sums.h"
#include "ops/normalization/normalization_formulas.h"

namespace crema {

namespace normalization {

CREMA_MULTIVERSION Sums SumDifferences(int64_t n, const float* x, float origin) {
  return SumInLanes<Sums>(
      n, [&](int64_t i, double& sum, double& squares) __attribute__((always_inline)) {
        const double difference = static_cast<double>(x[i]) - static_cast<double>(origin);
        sum += difference;
        squares += difference * difference;
      });
}

}  // namespace normalization

namespace {

using normalization::InverseLength;
using normalization::Shrinkage;
using normalization::SignOf;
using normalization::Standard;
using normalization::StandardGradient;
using normalization::SumDifferences;
using normalization::Sums;

constexpr int64_t kGrain = 8192;  // elements worth waking a thread for
constexpr int64_t kTile = 128;    // pixels that are worked on side by side
constexpr int64_t kColumns = 32;  // channels, where they lie side by side

CREMA_MULTIVERSION Sums SumProducts(int64_t n, const float* a, const float* b) {
  return SumInLanes<Sums>(
      n, [&](int64_t i, double& sum, double& products) __attribute__((always_inline)) {
        sum += static_cast<double>(a[i]);
        products += static_cast<double>(a[i] * b[i]);
      });
}

CREMA_MULTIVERSION double SumTripleProducts(int64_t n, const float* a, const float* b, const float* c) {
  return SumInLanes<Sums>(
             n, [&](int64_t i, double& products, double&)
                    __attribute__((always_inline)) { products += static_cast<double>(a[i] * b[i] * c[i]); })
      .first;
}

CREMA_MULTIVERSION void MakeStandard(int64_t n, const Standard& standard, const float* x, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = standard(x[i]);
}

CREMA_MULTIVERSION void StandardBack(int64_t n, const StandardGradient& gradient, const float* dy, const float* y,
                                     float* dx) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = gradient(dy[i], y[i]);
}

CREMA_MULTIVERSION Sums SumSizes(int64_t n, const float* x) {
  return SumInLanes<Sums>(
      n, [&](int64_t i, double& sizes, double&)
             __attribute__((always_inline)) { sizes += static_cast<double>(std::abs(x[i])); });
}

// y = factor * scale * x, with one scale for all or one for each.
CREMA_MULTIVERSION void Stretch(int64_t n, float factor, const float* scale, bool each, const float* x, float* y) {
  if (each) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = factor * scale[i] * x[i];
  } else {
    const float by = factor * scale[0];
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = by * x[i];
  }
}

// dx = factor * scale * dy + of_x * x
CREMA_MULTIVERSION void StretchBack(int64_t n, float factor, const float* scale, bool each, const float* dy, float of_x,
                                    const float* x, float* dx) {
  if (each) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dx[i] = factor * scale[i] * dy[i] + of_x * x[i];
  } else {
    const float by = factor * scale[0];
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dx[i] = by * dy[i] + of_x * x[i];
  }
}

// dx = factor * scale * dy + of_sign * sign of x
CREMA_MULTIVERSION void StretchBackBySign(int64_t n, float factor, const float* scale, bool each, const float* dy,
                                          float of_sign, const float* x, float* dx) {
  const int64_t step = each ? 1 : 0;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = factor * scale[i * step] * dy[i] + of_sign * SignOf(x[i]);
}

// Of one image: `width` <= kTile neighbouring pixels, whose channels lie `stride` apart; scales do so by `step`.
CREMA_MULTIVERSION void ForwardTile(const NormalizeProblem& p, int64_t width, int64_t step, const float* x,
                                    const float* scale, float* y, float* inverse) {
  double sums[kTile] = {};
  float factor[kTile];
  for (int64_t c = 0; c < p.channels; ++c) {
    const float* row = x + c * p.pixels;
    if (p.absolute) {
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) sums[i] += static_cast<double>(std::abs(row[i]));
    } else {
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) sums[i] += static_cast<double>(row[i]) * static_cast<double>(row[i]);
    }
  }
  for (int64_t i = 0; i < width; ++i) factor[i] = InverseLength(p, sums[i]);
  for (int64_t c = 0; c < p.channels; ++c) {
    const float* from = x + c * p.pixels;
    float* to = y + c * p.pixels;
    const float by = scale[c * step];
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) to[i] = factor[i] * by * from[i];
  }
  if (inverse != nullptr) std::copy(factor, factor + width, inverse);
}

CREMA_MULTIVERSION void BackwardTile(const NormalizeProblem& p, int64_t width, int64_t step, const float* x,
                                     const float* scale, const float* inverse, const float* dy, float* dx) {
  double dot[kTile] = {};
  float of_x[kTile];
  for (int64_t c = 0; c < p.channels; ++c) {
    const float *a = x + c * p.pixels, *b = dy + c * p.pixels;
    const float by = scale[c * step];
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) dot[i] += static_cast<double>(by * (a[i] * b[i]));
  }
  for (int64_t i = 0; i < width; ++i) of_x[i] = Shrinkage(p, dot[i], inverse[i]);
  for (int64_t c = 0; c < p.channels; ++c) {
    const float *a = x + c * p.pixels, *b = dy + c * p.pixels;
    float* to = dx + c * p.pixels;
    const float by = scale[c * step];
    if (p.absolute) {
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) to[i] = inverse[i] * by * b[i] + of_x[i] * SignOf(a[i]);
    } else {
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) to[i] = inverse[i] * by * b[i] + of_x[i] * a[i];
    }
  }
}

// Calls body(offset of the first element, first vector, width) for every tile of pixels.
template <typename Body>
void ForEachTile(const NormalizeProblem& p, const Body& body) {
  const int64_t tiles = (p.pixels + kTile - 1) / kTile;
  ParallelFor(p.images * tiles, std::max<int64_t>(1, kGrain / (p.channels * std::min(p.pixels, kTile))),
              [&](int64_t begin, int64_t end) {
                for (int64_t t = begin; t < end; ++t) {
                  const int64_t image = t / tiles, pixel = t % tiles * kTile;
                  body(image * p.channels * p.pixels + pixel, image * p.pixels + pixel,
                       std::min(kTile, p.pixels - pixel));
                }
              });
}

// Calls body(first, count, scale, whether there is one scale for each) for the pieces of [begin, end) of an image that
// can be treated alike.
template <typename Body>
void ForEachPiece(const NormalizeProblem& p, const float* scale, int64_t begin, int64_t end, const Body& body) {
  if (p.pixels == 1) return body(begin, end - begin, scale + begin, true);
  for (int64_t c = begin / p.pixels; c * p.pixels < end; ++c) {
    const int64_t first = std::max(begin, c * p.pixels);
    body(first, std::min(end, (c + 1) * p.pixels) - first, scale + c, false);
  }
}

// sums[c] = the sum over images of dy * x * inverse, for `width` <= kColumns neighbouring channels of one pixel.
CREMA_MULTIVERSION void SumColumns(const NormalizeProblem& p, int64_t width, const float* x, const float* inverse,
                                   const float* dy, float* sums) {
  double sum[kColumns] = {};
  for (int64_t n = 0; n < p.images; ++n) {
    const float *a = x + n * p.channels, *b = dy + n * p.channels;
    const float factor = inverse[n];
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) sum[c] += static_cast<double>(a[c] * b[c] * factor);
  }
  for (int64_t c = 0; c < width; ++c) sums[c] = static_cast<float>(sum[c]);
}

void ScaleGradient(const NormalizeProblem& p, const float* x, const float* inverse, const float* dy, float* gradient) {
  if (p.pixels == 1 && !p.shared) {
    const int64_t tiles = (p.channels + kColumns - 1) / kColumns;
    ParallelFor(tiles, std::max<int64_t>(1, kGrain / (p.images * kColumns + 1)), [&](int64_t begin, int64_t end) {
      for (int64_t first = begin * kColumns; first < std::min(p.channels, end * kColumns); first += kColumns) {
        SumColumns(p, std::min(kColumns, p.channels - first), x + first, inverse, dy + first, gradient + first);
      }
    });
    return;
  }
  const auto of_plane = [&](int64_t n, int64_t c) {
    const int64_t at = (n * p.channels + c) * p.pixels;
    if (!p.whole) return SumTripleProducts(p.pixels, x + at, dy + at, inverse + n * p.pixels);
    return static_cast<double>(inverse[n]) * SumProducts(p.pixels, x + at, dy + at).second;
  };
  if (!p.shared) {
    ParallelFor(p.channels, std::max<int64_t>(1, kGrain / (p.images * p.pixels + 1)), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        double sum = 0;
        for (int64_t n = 0; n < p.images; ++n) sum += of_plane(n, c);
        gradient[c] = static_cast<float>(sum);
      }
    });
    return;
  }
  constexpr int64_t kMaxParts = 64;
  const int64_t planes = p.images * p.channels, parts = std::min(kMaxParts, planes);
  double sums[kMaxParts] = {}, total = 0;
  ParallelFor(parts, std::max<int64_t>(1, kGrain * parts / (p.count() + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      for (int64_t i = planes * part / parts; i < planes * (part + 1) / parts; ++i) {
        sums[part] += of_plane(i / p.channels, i % p.channels);
      }
    }
  });
  for (int64_t part = 0; part < parts; ++part) total += sums[part];
  gradient[0] = static_cast<float>(total);
}

}  // namespace

void MvnForward(const MvnProblem& problem, const float* x, float* y, float* inverse) {
  OverRows<Sums>(
      problem.rows, problem.width,
      [&](int64_t row, int64_t begin, int64_t end) {
        const float origin = x[row * problem.width];
        Sums sums = SumDifferences(end - begin, x + row * problem.width + begin, origin);
        sums.origin = origin;
        return sums;
      },
      [&](int64_t row, const Sums& sums, int64_t begin, int64_t end) {
        const Standard standard = normalization::StandardOf(problem, sums);
        const int64_t at = row * problem.width + begin;
        MakeStandard(end - begin, standard, x + at, y + at);
        if (begin == 0 && inverse != nullptr) inverse[row] = standard.inverse;
      });
}

void MvnBackward(const MvnProblem& problem, const float* y, const float* inverse, const float* dy, float* dx) {
  const float* factor = problem.divide ? y : dy;  // of a product that is not used without division
  OverRows<Sums>(
      problem.rows, problem.width,
      [&](int64_t row, int64_t begin, int64_t end) {
        const int64_t at = row * problem.width + begin;
        return SumProducts(end - begin, dy + at, factor + at);
      },
      [&](int64_t row, const Sums& sums, int64_t begin, int64_t end) {
        const int64_t at = row * problem.width + begin;
        const float of_row = problem.divide ? inverse[row] : 1.0f;
        StandardBack(end - begin, normalization::StandardGradientOf(problem, sums, of_row), dy + at, factor + at,
                     dx + at);
      });
}

void NormalizeForward(const NormalizeProblem& problem, const float* x, const float* scale, float* y, float* inverse) {
  const NormalizeProblem p = problem.Simplest();
  if (p.count() == 0) return;
  if (!p.whole) {
    ForEachTile(p, [&](int64_t offset, int64_t vector, int64_t width) {
      ForwardTile(p, width, p.shared ? 0 : 1, x + offset, scale, y + offset, inverse ? inverse + vector : nullptr);
    });
    return;
  }
  const int64_t size = p.channels * p.pixels;
  OverRows<Sums>(
      p.images, size,
      [&](int64_t n, int64_t begin, int64_t end) {
        const float* from = x + n * size + begin;
        return p.absolute ? SumSizes(end - begin, from) : SumDifferences(end - begin, from, 0.0f);
      },
      [&](int64_t n, const Sums& sums, int64_t begin, int64_t end) {
        const float factor = InverseLength(p, p.absolute ? sums.first : sums.second);
        ForEachPiece(p, scale, begin, end, [&](int64_t first, int64_t count, const float* by, bool each) {
          Stretch(count, factor, by, each, x + n * size + first, y + n * size + first);
        });
        if (begin == 0 && inverse != nullptr) inverse[n] = factor;
      });
}

void NormalizeBackward(const NormalizeProblem& problem, const float* x, const float* scale, const float* inverse,
                       const float* dy, float* dx, float* scale_gradient) {
  const NormalizeProblem p = problem.Simplest();
  if (p.count() == 0) {
    if (scale_gradient != nullptr) std::fill(scale_gradient, scale_gradient + problem.scales(), 0.0f);
    return;
  }
  if (scale_gradient != nullptr) ScaleGradient(p, x, inverse, dy, scale_gradient);
  if (dx == nullptr) return;
  if (!p.whole) {
    ForEachTile(p, [&](int64_t offset, int64_t vector, int64_t width) {
      BackwardTile(p, width, p.shared ? 0 : 1, x + offset, scale, inverse + vector, dy + offset, dx + offset);
    });
    return;
  }
  const int64_t size = p.channels * p.pixels;
  OverRows<Sums>(
      p.images, size,
      [&](int64_t n, int64_t begin, int64_t end) {
        Sums dot;
        ForEachPiece(p, scale, begin, end, [&](int64_t first, int64_t count, const float* by, bool each) {
          const float *a = x + n * size + first, *b = dy + n * size + first;
          dot.first +=
              each ? SumTripleProducts(count, a, b, by) : static_cast<double>(by[0]) * SumProducts(count, a, b).second;
        });
        return dot;
      },
      [&](int64_t n, const Sums& dot, int64_t begin, int64_t end) {
        const float of_x = Shrinkage(p, dot.first, inverse[n]);
        const auto back = p.absolute ? StretchBackBySign : StretchBack;
        ForEachPiece(p, scale, begin, end, [&](int64_t first, int64_t count, const float* by, bool each) {
          const int64_t at = n * size + first;
          back(count, inverse[n], by, each, dy + at, of_x, x + at, dx + at);
        });
      });
}

}  // namespace crema
