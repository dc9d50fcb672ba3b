#include "ops/spatial_transform.h"

#include <algorithm>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/spatial_transform_formulas.h"

namespace crema {

namespace {

using spatial_transform::Corners;
using spatial_transform::Map;
using spatial_transform::Normalized;
using spatial_transform::Point;
using spatial_transform::Shares;

constexpr int64_t kGrain = 16384;    // elements worth waking a thread for
constexpr int32_t kElements = 1024;  // of the result that are worked on at a time
constexpr int64_t kTogether = 8;     // channels of a thread that gradients are summed over

// The shares of some positions on one axis.
struct AxisShares {
  float low[kElements], high[kElements], low_in[kElements], high_in[kElements];

  CREMA_INLINE void Set(int32_t k, const Shares& shares) {
    low[k] = shares.low;
    high[k] = shares.high;
    low_in[k] = shares.low_in;
    high_in[k] = shares.high_in;
  }
  CREMA_INLINE Shares At(int32_t k) const { return {low[k], high[k], low_in[k], high_in[k]}; }
};

// Some of these elements that lie side by side in a row.
struct Run {
  int32_t k, count;  // which of them
  int32_t row, column;
};

// Calls body(run) for `count` elements of a plane of the result.
template <typename Body>
void ForEachRun(const SpatialTransform& p, int64_t first, int32_t count, const Body& body) {
  const auto width = static_cast<int32_t>(p.result_width);
  for (int32_t k = 0; k < count;) {
    const auto row = static_cast<int32_t>((first + k) / width), column = static_cast<int32_t>((first + k) % width);
    const Run run = {k, std::min(count - k, width - column), row, column};
    body(run);
    k += run.count;
  }
}

// Where some elements of a plane of the result come from.
struct Sources {
  int32_t count = 0;
  int32_t upper_left[kElements], upper_right[kElements], lower_left[kElements], lower_right[kElements];
  AxisShares down, across;

  CREMA_INLINE Corners CornersOf(const float* x, int32_t k) const {
    return {x[upper_left[k]], x[upper_right[k]], x[lower_left[k]], x[lower_right[k]]};
  }
};

// Elements of one row, side by side: elements k, k + 1, ... of Sources.
CREMA_MULTIVERSION void LocateRow(const SpatialTransform& p, const Map& map, const Run& run, Sources* to) {
  const auto width = static_cast<int32_t>(p.width);
#pragma omp simd
  for (int32_t i = 0; i < run.count; ++i) {
    const Point rows = map.RowsOf(p, run.row, run.column + i), columns = map.ColumnsOf(p, run.row, run.column + i);
    const int32_t k = run.k + i;
    to->upper_left[k] = rows.low * width + columns.low;
    to->upper_right[k] = rows.low * width + columns.high;
    to->lower_left[k] = rows.high * width + columns.low;
    to->lower_right[k] = rows.high * width + columns.high;
    to->down.Set(k, rows.shares);
    to->across.Set(k, columns.shares);
  }
}

void Locate(const SpatialTransform& p, const Map& map, int64_t first, Sources* to) {
  to->count = static_cast<int32_t>(std::min<int64_t>(kElements, p.result_height * p.result_width - first));
  ForEachRun(p, first, to->count, [&](const Run& run) { LocateRow(p, map, run, to); });
}

CREMA_MULTIVERSION void Sample(const Sources& at, const float* x, float* y) {
#pragma omp simd
  for (int32_t k = 0; k < at.count; ++k) y[k] = at.CornersOf(x, k).Value(at.down.At(k), at.across.At(k));
}

// What one channel gives back to x.
void Spread(const Sources& at, const float* dy, float* dx) {
  for (int32_t k = 0; k < at.count; ++k) {
    const Shares down = at.down.At(k), across = at.across.At(k);
    const float above = down.low * dy[k], below = down.high * dy[k];
    dx[at.upper_left[k]] += above * across.low;
    dx[at.upper_right[k]] += above * across.high;
    dx[at.lower_left[k]] += below * across.low;
    dx[at.lower_right[k]] += below * across.high;
  }
}

// Gradients of the loss by where elements come from, in pixels.
struct Slopes {
  float row[kElements], column[kElements];
};

CREMA_MULTIVERSION void AddSlopes(const Sources& at, const float* x, const float* dy, Slopes* slopes) {
#pragma omp simd
  for (int32_t k = 0; k < at.count; ++k) {
    const Corners corners = at.CornersOf(x, k);
    const Shares down = at.down.At(k), across = at.across.At(k);
    slopes->row[k] += dy[k] * corners.SlopeDown(down, across);
    slopes->column[k] += dy[k] * corners.SlopeAcross(down, across);
  }
}

// The gradients of the numbers of one map, by some channels.
struct MapGradient {
  double numbers[kAffineNumbers] = {};

  void Add(const SpatialTransform& p, const Slopes& slopes, const Run& run) {
    double rows[3] = {}, columns[3] = {};
    for (int32_t i = 0; i < run.count; ++i) {
      const double across = Normalized(run.column + i, p.result_width);
      rows[1] += across * slopes.row[run.k + i];
      rows[2] += slopes.row[run.k + i];
      columns[1] += across * slopes.column[run.k + i];
      columns[2] += slopes.column[run.k + i];
    }
    rows[0] = rows[2] * Normalized(run.row, p.result_height);
    columns[0] = columns[2] * Normalized(run.row, p.result_height);
    for (int i = 0; i < 3; ++i) {
      numbers[i] += rows[i] * static_cast<double>(p.height) / 2;
      numbers[3 + i] += columns[i] * static_cast<double>(p.width) / 2;
    }
  }
};

int64_t Groups(const SpatialTransform& p) { return (p.channels + kTogether - 1) / kTogether; }

// Some channels of one image, of which this thread alone knows. dx and gradient may be null.
void BackwardOf(const SpatialTransform& p, const Map& map, int64_t channels, const float* x, const float* dy, float* dx,
                MapGradient* gradient) {
  const int64_t plane = p.height * p.width, result = p.result_height * p.result_width;
  Sources at;
  Slopes slopes;
  if (dx) std::fill_n(dx, channels * plane, 0.0f);
  if (gradient) *gradient = {};
  for (int64_t first = 0; first < result; first += kElements) {
    Locate(p, map, first, &at);
    std::fill_n(slopes.row, at.count, 0.0f);
    std::fill_n(slopes.column, at.count, 0.0f);
    for (int64_t c = 0; c < channels; ++c) {
      const float* const gradients = dy + c * result + first;
      if (dx) Spread(at, gradients, dx + c * plane);
      if (gradient) AddSlopes(at, x + c * plane, gradients, &slopes);
    }
    if (gradient) ForEachRun(p, first, at.count, [&](const Run& run) { gradient->Add(p, slopes, run); });
  }
}

}  // namespace

void SpatialTransformForward(const SpatialTransform& problem, const float* x, const float* theta, float* y) {
  const SpatialTransform& p = problem;
  const int64_t plane = p.height * p.width, result = p.result_height * p.result_width;
  const int64_t parts = (result + kElements - 1) / kElements;
  const int64_t work = p.channels * std::min<int64_t>(result, kElements);
  ParallelFor(p.images * parts, std::max<int64_t>(1, kGrain / (work + 1)), [&](int64_t begin, int64_t end) {
    Sources at;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / parts, first = i % parts * kElements;
      Locate(p, Map(p, theta + image * p.learnt), first, &at);
      for (int64_t c = image * p.channels; c < (image + 1) * p.channels; ++c) {
        Sample(at, x + c * plane, y + c * result + first);
      }
    }
  });
}

size_t SpatialTransformWorkspace(const SpatialTransform& problem) {
  return static_cast<size_t>(problem.images * Groups(problem)) * sizeof(MapGradient);
}

void SpatialTransformBackward(const SpatialTransform& problem, const float* x, const float* theta, const float* dy,
                              float* dx, float* dtheta, std::byte* workspace) {
  const int64_t plane = problem.height * problem.width, result = problem.result_height * problem.result_width;
  const int64_t groups = Groups(problem);
  auto* const gradients = reinterpret_cast<MapGradient*>(workspace);
  ParallelFor(problem.images * groups, std::max<int64_t>(1, kGrain / (kTogether * (plane + result) + 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t image = i / groups, channel = i % groups * kTogether;
                  const int64_t at = image * problem.channels + channel;
                  BackwardOf(problem, Map(problem, theta + image * problem.learnt),
                             std::min(kTogether, problem.channels - channel), x + at * plane, dy + at * result,
                             dx ? dx + at * plane : nullptr, dtheta ? gradients + i : nullptr);
                }
              });
  if (!dtheta) return;
  for (int64_t image = 0; image < problem.images; ++image) {
    for (int i = 0; i < kAffineNumbers; ++i) {
      if (problem.place[i] < 0) continue;
      double sum = 0;
      for (int64_t k = 0; k < groups; ++k) sum += gradients[image * groups + k].numbers[i];
      dtheta[image * problem.learnt + problem.place[i]] = static_cast<float>(sum);
    }
  }
}

}  // namespace crema
