#include "ops/detection/multibox.h"

#include <algorithm>
#include <functional>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/detection/box_tile.h"
#include "ops/detection/multibox_formulas.h"

namespace crema {

namespace {

constexpr int64_t kNumbers = ObjectRows::kNumbers;
constexpr int64_t kGrain = 16384;  // overlaps or numbers worth waking a thread for
constexpr int64_t kTile = BoxTile::kMost;

// Rows [begin, end) among which all objects of an image are.
struct Rows {
  int64_t begin, end;
};
Rows RowsOf(const MultiBoxProblem& p, const float* objects, int64_t image) {
  Rows rows = {0, p.objects};
  while (rows.begin < rows.end && multibox::ImageOf(p, objects + rows.begin * kNumbers) != image) ++rows.begin;
  while (rows.begin < rows.end && multibox::ImageOf(p, objects + (rows.end - 1) * kNumbers) != image) --rows.end;
  return rows;
}

CREMA_INLINE void LoadPriors(int64_t count, const float* priors, BoxTile* to) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    to->xmin[i] = priors[4 * i];
    to->ymin[i] = priors[4 * i + 1];
    to->xmax[i] = priors[4 * i + 2];
    to->ymax[i] = priors[4 * i + 3];
  }
}

// Of at most kTile priors of one image.
CREMA_MULTIVERSION void FirstMatches(const MultiBoxProblem& p, int64_t image, Rows rows, int64_t count,
                                     const float* priors, const float* objects, int32_t* match, float* overlap) {
  BoxTile tile;
  float shared[kTile], largest[kTile] = {};
  int32_t with[kTile] = {};
  LoadPriors(count, priors, &tile);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const float* object = objects + row * kNumbers;
    if (multibox::ImageOf(p, object) != image) continue;
    OverlapAll(count, tile, multibox::BoxOf(object), shared);
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const bool larger = (shared[i] > multibox::kLeastOverlap) & (shared[i] > largest[i]);
      largest[i] = larger ? shared[i] : largest[i];
      with[i] = larger ? static_cast<int32_t>(row) : with[i];
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    const bool left_out = p.whole_only && !multibox::IsWhole(multibox::BoxAt(priors, i));
    match[i] = multibox::FirstMatch(p, left_out, largest[i], with[i]);
    overlap[i] = left_out ? 0.0f : largest[i];
  }
}

// The greatest rank of the free priors that an object overlaps; 0 where there is none.
CREMA_MULTIVERSION uint64_t BestPrior(const MultiBoxProblem& p, const float* priors, const int32_t* match,
                                      const float* row) {
  const BoundingBox object = multibox::BoxOf(row);
  BoxTile tile;
  float shared[kTile], largest = multibox::kLeastOverlap;
  int64_t best = -1;
  for (int64_t first = 0; first < p.priors; first += kTile) {
    const int64_t count = std::min(kTile, p.priors - first);
    LoadPriors(count, priors + 4 * first, &tile);
    OverlapAll(count, tile, object, shared);
    for (int64_t i = 0; i < count; ++i) {
      if (!(shared[i] > largest) || !multibox::IsFree(match[first + i])) continue;
      largest = shared[i];
      best = first + i;
    }
  }
  return best < 0 ? 0 : suppression::RankOf(largest, best);
}

// The pairs of one image, by falling overlap. A rank in `best` may be that of a prior which another object took since:
// then it is found anew when it is the greatest.
void TakePriors(const MultiBoxProblem& p, int64_t image, const float* priors, const float* objects, uint64_t* best,
                int32_t* match) {
  const Rows rows = RowsOf(p, objects, image);
  while (true) {
    int64_t row = -1;
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      if (multibox::ImageOf(p, objects + r * kNumbers) != image) continue;
      if (best[r] > (row < 0 ? 0 : best[row])) row = r;
    }
    if (row < 0) break;
    int32_t& taken = match[suppression::IndexOf(best[row])];
    if (multibox::IsFree(taken)) {
      taken = static_cast<int32_t>(row);
      best[row] = 0;
    } else {
      best[row] = BestPrior(p, priors, match, objects + row * kNumbers);
    }
  }
  for (int64_t i = 0; i < p.priors; ++i) {
    if (multibox::IsReserved(match[i])) match[i] = multibox::Reserved(match[i]);
  }
}

CREMA_MULTIVERSION void RankPlaces(const MultiBoxProblem& p, int64_t begin, int64_t end, const float* scores,
                                   const int32_t* match, const float* overlap, uint64_t* rank) {
  for (int64_t i = begin; i < end; ++i) {
    const float* of_prior = scores + i * p.classes;
    rank[i] = 0;
    if (!multibox::MayBeNegative(p, match[i], overlap[i])) continue;
    float loss = 0;
    if (p.logistic) {
#pragma omp simd reduction(+ : loss)
      for (int64_t c = 0; c < p.classes; ++c) loss += multibox::LogisticLoss(p, of_prior[c], c);
    } else {
      loss = multibox::SoftmaxLossOf(of_prior[p.background]);
    }
    rank[i] = suppression::RankOf(loss, i % p.priors);
  }
}

// Of one image. Returns how many matches it has.
int64_t LabelImage(const MultiBoxProblem& p, const float* objects, const int32_t* match, uint64_t* rank, float* label) {
  const float without = multibox::LabelWithoutObject(p);
  int64_t matches = 0;
  for (int64_t i = 0; i < p.priors; ++i) {
    matches += match[i] >= 0;
    label[i] = match[i] >= 0 ? multibox::LabelOf(p, objects, match[i]) : without;
  }
  if (!p.mines) return matches;
  uint64_t* const end = std::partition(rank, rank + p.priors, [](uint64_t r) { return r > 0; });
  const int64_t negatives = multibox::Negatives(p, matches, end - rank);
  if (negatives == 0) return matches;
  std::nth_element(rank, rank + negatives - 1, end, std::greater<>());
  for (int64_t i = 0; i < negatives; ++i) label[suppression::IndexOf(rank[i])] = static_cast<float>(p.background);
  return matches;
}

CREMA_MULTIVERSION void ClassTargets(int64_t places, int64_t classes, const float* label, float* target) {
  for (int64_t i = 0; i < places; ++i, target += classes) {
#pragma omp simd
    for (int64_t c = 0; c < classes; ++c) target[c] = multibox::ClassTarget(label[i], c);
  }
}

}  // namespace

void MatchPriors(const MultiBoxProblem& problem, const float* priors, const float* objects, uint64_t* best,
                 int32_t* match, float* overlap) {
  const int64_t tiles = (problem.priors + kTile - 1) / kTile;
  const int64_t of_tile = kTile * std::max<int64_t>(1, problem.objects / std::max<int64_t>(1, problem.images));
  ParallelFor(problem.images * tiles, std::max<int64_t>(1, kGrain / of_tile), [&](int64_t begin, int64_t end) {
    Rows rows = {0, 0};
    for (int64_t t = begin; t < end; ++t) {
      const int64_t image = t / tiles, first = t % tiles * kTile, at = image * problem.priors + first;
      if (t == begin || first == 0) rows = RowsOf(problem, objects, image);
      FirstMatches(problem, image, rows, std::min(kTile, problem.priors - first), priors + 4 * first, objects,
                   match + at, overlap + at);
    }
  });
  ParallelFor(problem.objects, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, problem.priors)),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  const float* object = objects + row * kNumbers;
                  const int64_t image = multibox::ImageOf(problem, object);
                  best[row] = image < 0 ? 0 : BestPrior(problem, priors, match + image * problem.priors, object);
                }
              });
  ParallelFor(problem.images, std::max<int64_t>(1, kGrain / problem.priors), [&](int64_t begin, int64_t end) {
    for (int64_t image = begin; image < end; ++image) {
      TakePriors(problem, image, priors, objects, best, match + image * problem.priors);
    }
  });
}

void RankNegatives(const MultiBoxProblem& problem, const float* scores, const int32_t* match, const float* overlap,
                   uint64_t* rank) {
  const int64_t of_place = problem.logistic ? problem.classes : 8;  // a logarithm is worth some numbers
  ParallelFor(problem.places(), std::max<int64_t>(1, kGrain / of_place),
              [&](int64_t begin, int64_t end) { RankPlaces(problem, begin, end, scores, match, overlap, rank); });
}

void MakeMultiBoxTargets(const MultiBoxProblem& problem, const MultiBoxMatches& matches,
                         const MultiBoxTargets& targets) {
  const int64_t priors = problem.priors, grain = std::max<int64_t>(1, kGrain / priors);
  int64_t count = 0;
  ParallelFor(problem.images, grain, [&](int64_t begin, int64_t end) {
    int64_t counted = 0;
    for (int64_t image = begin; image < end; ++image) {
      const int64_t first = image * priors;
      uint64_t* const rank = problem.mines ? matches.rank + first : nullptr;
      counted += LabelImage(problem, matches.objects, matches.match + first, rank, targets.label + first);
    }
#pragma omp atomic
    count += counted;
  });
  *targets.share = multibox::Share(problem, count);
  if (targets.location) {
    ParallelFor(problem.places(), kGrain / 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        multibox::WriteLocation(problem, matches, targets, i, i % priors);
      }
    });
  }
  if (!targets.class_target) return;
  ParallelFor(problem.places(), std::max<int64_t>(1, kGrain / problem.classes), [&](int64_t begin, int64_t end) {
    ClassTargets(end - begin, problem.classes, targets.label + begin, targets.class_target + begin * problem.classes);
  });
}

}  // namespace crema
