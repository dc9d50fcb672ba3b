#include "ops/sampling/spatial_transform.h"

#include <algorithm>

#include "base/independent_loop.h"
#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/sampling/bilinear.h"
#include "ops/sampling/spatial_transform_formulas.h"

namespace crema {

namespace {

using bilinear::AddSlopes;
using bilinear::kElements;
using bilinear::Sample;
using bilinear::Slopes;
using bilinear::Sources;
using bilinear::Spread;
using spatial_transform::Map;
using spatial_transform::Normalized;

constexpr int64_t kGrain = 16384;  // elements worth waking a thread for
constexpr int64_t kTogether = 8;   // channels of a thread that gradients are summed over

// Some elements of Sources that lie side by side in a row.
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

// Elements of one row, side by side: elements k, k + 1, ... of Sources.
CREMA_MULTIVERSION void LocateRow(const SpatialTransform& p, const Map& map, const Run& run, Sources* to) {
  const auto width = static_cast<int32_t>(p.width);
  CREMA_INDEPENDENT
  for (int32_t i = 0; i < run.count; ++i) {
    to->Set(run.k + i, map.RowsOf(p, run.row, run.column + i), map.ColumnsOf(p, run.row, run.column + i), width);
  }
}

void Locate(const SpatialTransform& p, const Map& map, int64_t first, Sources* to) {
  to->count = static_cast<int32_t>(std::min<int64_t>(kElements, p.result_height * p.result_width - first));
  ForEachRun(p, first, to->count, [&](const Run& run) { LocateRow(p, map, run, to); });
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
    if (dx) Spread(at, channels, {dy + first, result}, {dx, plane});
    if (gradient) AddSlopes(at, channels, {x, plane}, {dy + first, result}, &slopes);
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
      const int64_t c = image * p.channels;
      Sample(at, p.channels, {x + c * plane, plane}, {y + c * result + first, result});
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
