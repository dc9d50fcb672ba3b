#include "ops/arrays/reduction.h"

#include <algorithm>

#include "base/check.h"
#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/arrays/vector_math.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 32768;  // elements worth waking a thread for

int64_t Grain(int64_t width) { return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width)); }

double SumOfTerms(ReducedTerm term, int64_t n, const float* x) {
  return term == ReducedTerm::kValue ? Sum(n, x) : term == ReducedTerm::kSquare ? SumOfSquares(n, x) : AbsSum(n, x);
}

template <ReducedTerm kTerm>
CREMA_MULTIVERSION void TermGradients(int64_t n, float gradient, const float* x, float* dx) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = gradient * formula::TermGradient(kTerm, x[i]);
}

void RowGradient(ReducedTerm term, int64_t n, float gradient, const float* x, float* dx) {
  if (term == ReducedTerm::kValue) {
    std::fill(dx, dx + n, gradient);
  } else if (term == ReducedTerm::kSquare) {
    TermGradients<ReducedTerm::kSquare>(n, gradient, x, dx);
  } else {
    TermGradients<ReducedTerm::kMagnitude>(n, gradient, x, dx);
  }
}

CREMA_MULTIVERSION void Multiples(int64_t n, float factor, const float* x, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = factor * x[i];
}

// A function of rows, which are threaded themselves where there are few.
template <typename Body>
void ForEachRow(int64_t rows, int64_t width, const Body& body) {
  const int64_t few = rows < omp_get_max_threads() ? rows : 0;
  for (int64_t row = 0; row < few; ++row) body(row);
  ParallelFor(rows - few, Grain(width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(row);
  });
}

}  // namespace

void Reduce(const Reduction& reduction, const float* x, float* y) {
  const int64_t inner = reduction.inner, width = reduction.reduced * inner;
  const float factor = reduction.factor;
  CREMA_CHECK(inner == 1 || reduction.term == ReducedTerm::kValue) << "only values are summed over an inner axis";
  ForEachRow(reduction.outer, width, [=](int64_t row) {
    const float* from = x + row * width;
    float* to = y + row * inner;
    if (inner == 1) {
      *to = static_cast<float>(SumOfTerms(reduction.term, width, from) * static_cast<double>(factor));
    } else {
      SumRows(reduction.reduced, inner, from, to);
      if (factor != 1) Multiples(inner, factor, to, to);
    }
  });
}

void ReduceGradient(const Reduction& reduction, const float* dy, const float* x, float* dx) {
  const int64_t inner = reduction.inner, reduced = reduction.reduced;
  const float factor = reduction.factor;
  if (inner != 1) {
    ParallelFor(reduction.outer * reduced, Grain(inner), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        Multiples(inner, factor, dy + row / reduced * inner, dx + row * inner);
    });
    return;
  }
  // Ranges of elements: a few long rows make work for all threads, too.
  ParallelFor(reduction.outer * reduced, kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const int64_t row = i / reduced, stop = std::min(end, (row + 1) * reduced);
      RowGradient(reduction.term, stop - i, factor * dy[row], x == nullptr ? nullptr : x + i, dx + i);
      i = stop;
    }
  });
}

}  // namespace crema
