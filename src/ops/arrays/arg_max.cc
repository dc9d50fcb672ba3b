#include "ops/arrays/arg_max.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "base/multiversion.h"
#include "base/parallel.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 8192;     // elements worth waking a thread for
constexpr int64_t kTile = 128;       // positions of one outer row that are worked on side by side
constexpr int64_t kMostPasses = 32;  // over a row; for more it is sorted
constexpr uint64_t kAboveAll = std::numeric_limits<uint64_t>::max();

// The greatest rank below `bound` of neighbouring classes.
CREMA_MULTIVERSION uint64_t NextRank(int64_t classes, uint64_t bound, const float* x) {
  uint64_t best = 0;
#pragma omp simd reduction(max : best)
  for (int64_t c = 0; c < classes; ++c) {
    const uint64_t rank = formula::RankOf(x[c], static_cast<uint32_t>(c));
    const uint64_t candidate = rank < bound ? rank : 0;
    best = candidate > best ? candidate : best;
  }
  return best;
}

// The same for `width` <= kTile neighbouring positions, whose classes lie `stride` apart.
CREMA_MULTIVERSION void NextRanks(int64_t width, int64_t classes, int64_t stride, const uint64_t* bound, const float* x,
                                  uint64_t* best) {
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) best[i] = 0;
  for (int64_t c = 0; c < classes; ++c, x += stride) {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      const uint64_t rank = formula::RankOf(x[i], static_cast<uint32_t>(c));
      const uint64_t candidate = rank < bound[i] ? rank : 0;
      best[i] = candidate > best[i] ? candidate : best[i];
    }
  }
}

void RankRow(const ArgMaxProblem& problem, const float* x, float* y) {
  if (problem.top_k > kMostPasses) {
    std::vector<uint64_t> ranks(static_cast<size_t>(problem.axis.classes));
    for (size_t c = 0; c < ranks.size(); ++c) ranks[c] = formula::RankOf(x[c], static_cast<uint32_t>(c));
    std::partial_sort(ranks.begin(), ranks.begin() + problem.top_k, ranks.end(), std::greater<>());
    for (int64_t k = 0; k < problem.top_k; ++k) WriteRanked(problem, k, ranks[static_cast<size_t>(k)], x, y);
    return;
  }
  uint64_t rank = kAboveAll;
  for (int64_t k = 0; k < problem.top_k; ++k) {
    rank = NextRank(problem.axis.classes, rank, x);
    WriteRanked(problem, k, rank, x, y);
  }
}

void RankTile(const ArgMaxProblem& problem, int64_t width, const float* x, float* y) {
  uint64_t bound[kTile], best[kTile];
  std::fill(bound, bound + width, kAboveAll);
  for (int64_t k = 0; k < problem.top_k; ++k) {
    NextRanks(width, problem.axis.classes, problem.axis.inner, bound, x, best);
    for (int64_t i = 0; i < width; ++i) WriteRanked(problem, k, best[i], x + i, y + i);
    std::copy(best, best + width, bound);
  }
}

}  // namespace

void ArgMax(const ArgMaxProblem& problem, const float* x, float* y) {
  const ClassAxis& axis = problem.axis;
  const int64_t width = std::min(axis.inner, kTile), tiles = (axis.inner + kTile - 1) / kTile;
  const int64_t work = std::max<int64_t>(1, axis.classes * width * problem.top_k);
  ParallelFor(axis.outer * tiles, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t outer = t / tiles, inner = t % tiles * kTile;
      const float* from = x + outer * axis.classes * axis.inner + inner;
      float* to = y + outer * problem.extent() * axis.inner + inner;
      if (axis.inner == 1) {
        RankRow(problem, from, to);
      } else {
        RankTile(problem, std::min(kTile, axis.inner - inner), from, to);
      }
    }
  });
}

}  // namespace crema
