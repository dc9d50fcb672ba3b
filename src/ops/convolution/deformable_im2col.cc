#include "ops/convolution/deformable_im2col.h"

#include <algorithm>

#include "base/independent_loop.h"
#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/convolution/deformable_im2col_formulas.h"
#include "ops/sampling/bilinear.h"

namespace crema {

namespace {

using bilinear::kElements;
using bilinear::Planes;
using bilinear::Slopes;
using bilinear::Sources;
using Problem = DeformableIm2colProblem;

constexpr int64_t kGrain = 16384;     // elements worth waking a thread for
constexpr int64_t kSampledWith = 64;  // channels that share what is known of their sources
constexpr int64_t kGatheredWith = 8;  // the same of gradients, of which a thread owns whole planes
constexpr int64_t kBuffered = 4;      // of these, whose gradients are copied at a time

// Some windows, [first, first + count), at one place of the window, of one group.
struct Piece {
  int64_t group, place, first;
  int32_t count;

  // In arrays of groups x places x `numbers` x windows.
  int64_t At(const Problem& p, int64_t numbers) const {
    return (group * p.places() + place) * numbers * p.windows() + first;
  }
  // Of a channel, in the columns.
  int64_t Columns(const Problem& p, int64_t channel) const { return channel * Stride(p) + place * p.windows() + first; }
  // From a channel to the next.
  static int64_t Stride(const Problem& p) { return p.places() * p.windows(); }
};

int64_t Pieces(const Problem& p) { return (p.windows() + kElements - 1) / kElements; }  // of a place

// Piece `i` of a group.
Piece PieceOf(const Problem& p, int64_t group, int64_t i) {
  const int64_t first = i % Pieces(p) * kElements;
  return {group, i / Pieces(p), first, static_cast<int32_t>(std::min<int64_t>(kElements, p.windows() - first))};
}

// Windows side by side in one row, whose elements of Sources begin at k.
struct Row {
  int32_t k, count;
  int64_t row, column;
};

template <bool kFades>
CREMA_MULTIVERSION void LocateRow(const Problem& p, int64_t place, const Row& at, const float* down,
                                  const float* across, Sources* to) {
  const int64_t i = place / p.columns.kernel, j = place % p.columns.kernel;
  const auto width = static_cast<int32_t>(p.columns.input);
  CREMA_INDEPENDENT
  for (int32_t n = 0; n < at.count; ++n) {
    const int32_t k = at.k + n;
    to->Set(k, deformable::PointOf(p.rows, kFades, at.row, i, down[k]),
            deformable::PointOf(p.columns, kFades, at.column + n, j, across[k]), width);
  }
}

CREMA_MULTIVERSION void Weigh(const float* factors, Sources* to) {
#pragma omp simd
  for (int32_t k = 0; k < to->count; ++k) {
    to->down.low[k] *= factors[k];
    to->down.high[k] *= factors[k];
  }
}

// Shares are those of a column's element, factor and all, where `factors` is given.
void Locate(const Problem& p, const Piece& piece, const float* offsets, const float* factors, Sources* to) {
  to->count = piece.count;
  const float *const down = offsets + piece.At(p, 2) + p.first_down(), *const across =
                                                                           offsets + piece.At(p, 2) + p.first_across();
  for (int32_t k = 0; k < piece.count;) {
    const int64_t row = (piece.first + k) / p.columns.output, column = (piece.first + k) % p.columns.output;
    const auto count = static_cast<int32_t>(std::min<int64_t>(piece.count - k, p.columns.output - column));
    const Row at = {k, count, row, column};
    p.fades ? LocateRow<true>(p, piece.place, at, down, across, to)
            : LocateRow<false>(p, piece.place, at, down, across, to);
    k += count;
  }
  if (factors) Weigh(factors + piece.At(p, 1), to);
}

CREMA_MULTIVERSION void FillOutside(const Sources& at, float value, const float* x, float* y) {
  CREMA_INDEPENDENT
  for (int32_t k = 0; k < at.count; ++k) {
    const bool inside = bilinear::IsInside(at.down.At(k)) & bilinear::IsInside(at.across.At(k));
    y[k] = inside ? x[k] : value;
  }
}

// Calls body(first, count, gradients) for channels [begin, end), some at a time, with the gradients of what was sampled
// of them; 0 for what lies outside: there the columns' may be infinite or no numbers.
template <typename Body>
void WithSampledGradients(const Problem& p, const Sources& at, const Piece& piece, const float* columns, int64_t begin,
                          int64_t end, const Body& body) {
  float buffer[kBuffered * kElements];
  for (int64_t first = begin; first < end; first += kBuffered) {
    const int64_t count = std::min(kBuffered, end - first);
    for (int64_t i = 0; i < count; ++i) {
      FillOutside(at, 0, columns + piece.Columns(p, first + i), buffer + i * kElements);
    }
    body(first, count, Planes<const float>{buffer, kElements});
  }
}

CREMA_MULTIVERSION void Multiply(int32_t n, const float* factors, const float* x, float* y) {
#pragma omp simd
  for (int32_t k = 0; k < n; ++k) y[k] = factors[k] * x[k];
}

// Channels [begin, end) of a group.
struct Channels {
  int64_t group, begin, end;
};

// Calls body(channels, i) for all pieces of all groups, with `together` channels at a time.
template <typename Body>
void ForEachPiece(const Problem& p, int64_t together, const Body& body) {
  const int64_t parts = (p.group_channels() + together - 1) / together, pieces = p.places() * Pieces(p);
  const int64_t work = std::min(together, p.group_channels()) * std::min<int64_t>(kElements, p.windows());
  ParallelFor(p.groups * parts * pieces, std::max<int64_t>(1, kGrain / (work + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const int64_t group = n / pieces / parts, first = group * p.group_channels(), of_group = n / pieces % parts;
      const int64_t channel = first + of_group * together;
      body(Channels{group, channel, std::min(channel + together, first + p.group_channels())}, n % pieces);
    }
  });
}

}  // namespace

void DeformableIm2col(const DeformableIm2colProblem& problem, const float* image, const float* offsets,
                      const float* factors, float* columns) {
  ForEachPiece(problem, kSampledWith, [&](const Channels& channels, int64_t i) {
    Sources at;
    const Piece piece = PieceOf(problem, channels.group, i);
    Locate(problem, piece, offsets, factors, &at);
    Sample(at, channels.end - channels.begin, {image + channels.begin * problem.plane(), problem.plane()},
           {columns + piece.Columns(problem, channels.begin), Piece::Stride(problem)});
    if (problem.fades || factors) return;
    for (int64_t c = channels.begin; c < channels.end; ++c) {
      float* const to = columns + piece.Columns(problem, c);
      FillOutside(at, problem.outside, to, to);
    }
  });
}

void DeformableCol2im(const DeformableIm2colProblem& problem, const float* columns, const float* offsets,
                      const float* factors, float* image) {
  const Problem& p = problem;
  const int64_t parts = (p.group_channels() + kGatheredWith - 1) / kGatheredWith, pieces = p.places() * Pieces(p);
  const int64_t work = std::min(kGatheredWith, p.group_channels()) * p.places() * p.windows();
  ParallelFor(p.groups * parts, std::max<int64_t>(1, kGrain / (work + 1)), [&](int64_t begin, int64_t end) {
    Sources at;
    for (int64_t n = begin; n < end; ++n) {
      const int64_t group = n / parts, first = group * p.group_channels() + n % parts * kGatheredWith;
      const int64_t last = std::min(first + kGatheredWith, (group + 1) * p.group_channels());
      std::fill(image + first * p.plane(), image + last * p.plane(), 0.0f);
      for (int64_t i = 0; i < pieces; ++i) {
        const Piece piece = PieceOf(p, group, i);
        Locate(p, piece, offsets, factors, &at);
        WithSampledGradients(p, at, piece, columns, first, last,
                             [&](int64_t c, int64_t count, Planes<const float> gradients) {
                               Spread(at, count, gradients, {image + c * p.plane(), p.plane()});
                             });
      }
    }
  });
}

void DeformableOffsetGradient(const DeformableIm2colProblem& problem, const float* columns, const float* image,
                              const float* offsets, const float* factors, float* offset_gradient,
                              float* factor_gradient) {
  const Problem& p = problem;
  ForEachPiece(p, p.group_channels(), [&](const Channels& channels, int64_t i) {
    Sources at;
    Slopes slopes;
    const Piece piece = PieceOf(p, channels.group, i);
    Locate(p, piece, offsets, nullptr, &at);
    if (offset_gradient) {
      std::fill_n(slopes.row, piece.count, 0.0f);
      std::fill_n(slopes.column, piece.count, 0.0f);
      WithSampledGradients(p, at, piece, columns, channels.begin, channels.end,
                           [&](int64_t c, int64_t count, Planes<const float> gradients) {
                             AddSlopes(at, count, {image + c * p.plane(), p.plane()}, gradients, &slopes);
                           });
      float* const pair = offset_gradient + piece.At(p, 2);
      float *const down = pair + p.first_down(), *const across = pair + p.first_across();
      if (factors) {
        Multiply(piece.count, factors + piece.At(p, 1), slopes.row, down);
        Multiply(piece.count, factors + piece.At(p, 1), slopes.column, across);
      } else {
        std::copy_n(slopes.row, piece.count, down);
        std::copy_n(slopes.column, piece.count, across);
      }
    }
    if (factor_gradient) {
      float* const sums = factor_gradient + piece.At(p, 1);
      std::fill_n(sums, piece.count, 0.0f);
      WithSampledGradients(p, at, piece, columns, channels.begin, channels.end,
                           [&](int64_t c, int64_t count, Planes<const float> gradients) {
                             AddProducts(at, count, {image + c * p.plane(), p.plane()}, gradients, sums);
                           });
    }
  });
}

}  // namespace crema
