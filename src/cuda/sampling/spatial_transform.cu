#include "cuda/arrays/lanes.h"
#include "cuda/arrays/reduce.h"
#include "cuda/operations.h"
#include "ops/sampling/spatial_transform_formulas.h"

namespace crema::cuda {

namespace {

using bilinear::Corners;
using bilinear::Point;
using spatial_transform::ColumnsNear;
using spatial_transform::Map;
using spatial_transform::Normalized;
using spatial_transform::Range;
using spatial_transform::RowsNear;

constexpr int kTogether = 8;        // channels of a thread, which have their places in common
constexpr int64_t kMostParts = 64;  // of an image, whose gradients are summed apart

__host__ __device__ int64_t GroupsOf(int64_t channels) { return (channels + kTogether - 1) / kTogether; }

struct Place {
  int32_t row, column;
};

__device__ Place PlaceOf(int64_t in_plane, int64_t width) {
  const auto column = static_cast<int32_t>(SplitOff(&in_plane, width));
  return {static_cast<int32_t>(in_plane), column};
}

// Where an element of the result comes from.
struct Source {
  Point down, across;

  __device__ Source(const SpatialTransform& p, const Map& map, const Place& place)
      : down(map.RowsOf(p, place.row, place.column)), across(map.ColumnsOf(p, place.row, place.column)) {}

  // Of a plane.
  __device__ Corners CornersOf(const float* x, int64_t width) const {
    const float *const upper = x + down.low * width, *const lower = x + down.high * width;
    return {upper[across.low], upper[across.high], lower[across.low], lower[across.high]};
  }
};

// An element of an image's planes, and the first of the channels in which a thread has it.
struct Element {
  int64_t image, in_plane, channel;
  Place place;

  __device__ Element(int64_t at, int64_t channels, int64_t height, int64_t width)
      : image(at),
        in_plane(SplitOff(&image, height * width)),
        channel(SplitOff(&image, GroupsOf(channels)) * kTogether),
        place(PlaceOf(in_plane, width)) {}
};

// One element of the result, in some channels.
struct Sample {
  SpatialTransform p;
  const float *x, *theta;
  float* y;

  __device__ void operator()(int64_t at) const {
    const int64_t result = p.result_height * p.result_width, plane = p.height * p.width;
    const Element e(at, p.channels, p.result_height, p.result_width);
    const Source source(p, Map(p, theta + e.image * p.learnt), e.place);
    const float* from = x + (e.image * p.channels + e.channel) * plane;
    float* to = y + (e.image * p.channels + e.channel) * result + e.in_plane;
    for (int64_t c = e.channel; c < e.channel + kTogether && c < p.channels; ++c, from += plane, to += result) {
      *to = source.CornersOf(from, p.width).Value(source.down.shares, source.across.shares);
    }
  }
};

// Gathers what the elements of the result give to one of x, in some channels, row by row, so that sums have one order.
struct Gather {
  SpatialTransform p;
  const float *theta, *dy;
  float* dx;

  __device__ void operator()(int64_t at) const {
    const int64_t result = p.result_height * p.result_width, plane = p.height * p.width;
    const Element e(at, p.channels, p.height, p.width);
    const Map map(p, theta + e.image * p.learnt);
    const float* const gradient = dy + (e.image * p.channels + e.channel) * result;
    float sums[kTogether] = {};
    const auto [row, column] = e.place;
    const Range rows = RowsNear(p, map, row, column);
    for (int32_t i = rows.begin; i < rows.end; ++i) {
      const Range by_row = ColumnsNear(p, map.rows, i, row), by_column = ColumnsNear(p, map.columns, i, column);
      const int32_t begin = by_row.begin > by_column.begin ? by_row.begin : by_column.begin;
      const int32_t end = by_row.end < by_column.end ? by_row.end : by_column.end;
      for (int32_t k = begin; k < end; ++k) {
        const Source source(p, map, Place{i, k});
        const float weight = source.down.Of(row) * source.across.Of(column);
        if (weight == 0.0f) continue;
        const float* const from = gradient + i * p.result_width + k;
        CREMA_UNROLL
        for (int c = 0; c < kTogether; ++c) {
          if (e.channel + c < p.channels) sums[c] += weight * from[c * result];
        }
      }
    }
    float* const to = dx + (e.image * p.channels + e.channel) * plane + e.in_plane;
    CREMA_UNROLL
    for (int c = 0; c < kTogether; ++c) {
      if (e.channel + c < p.channels) to[c * plane] = sums[c];
    }
  }
};

// A block sums what a part of an image's elements says of the numbers of its map.
__global__ void __launch_bounds__(kThreads) SumMapGradients(SpatialTransform p, int64_t parts, const float* x,
                                                            const float* theta, const float* dy, double* to) {
  const int64_t result = p.result_height * p.result_width, plane = p.height * p.width;
  int64_t image = blockIdx.x;
  const int64_t part = SplitOff(&image, parts);
  const Map map(p, theta + image * p.learnt);
  double sums[kAffineNumbers] = {};
  for (int64_t i = part * kThreads + threadIdx.x; i < result; i += parts * kThreads) {
    const Place place = PlaceOf(i, p.result_width);
    const Source source(p, map, place);
    float by_row = 0, by_column = 0;
    const float *from = x + image * p.channels * plane, *gradient = dy + image * p.channels * result + i;
    for (int64_t c = 0; c < p.channels; ++c, from += plane, gradient += result) {
      const Corners corners = source.CornersOf(from, p.width);
      by_row += *gradient * corners.SlopeDown(source.down.shares, source.across.shares);
      by_column += *gradient * corners.SlopeAcross(source.down.shares, source.across.shares);
    }
    const float at_row = Normalized(place.row, p.result_height);
    const float at_column = Normalized(place.column, p.result_width);
    sums[0] += at_row * by_row;
    sums[1] += at_column * by_row;
    sums[2] += by_row;
    sums[3] += at_row * by_column;
    sums[4] += at_column * by_column;
    sums[5] += by_column;
  }
  CREMA_UNROLL
  for (int i = 0; i < kAffineNumbers; ++i) {
    const double sum = SumBlock(sums[i]);
    if (threadIdx.x == 0) to[int64_t{blockIdx.x} * kAffineNumbers + i] = sum;
  }
}

// One number of one image's map.
struct FinishMapGradient {
  SpatialTransform p;
  int64_t parts;
  const double* sums;
  float* dtheta;

  __device__ void operator()(int64_t at) const {
    int64_t image = at;
    const auto number = static_cast<int>(SplitOff(&image, kAffineNumbers));
    if (p.place[number] < 0) return;
    double sum = 0;
    for (int64_t i = 0; i < parts; ++i) sum += sums[(image * parts + i) * kAffineNumbers + number];
    const int64_t extent = number < 3 ? p.height : p.width;
    dtheta[image * p.learnt + p.place[number]] = static_cast<float>(sum * 0.5 * static_cast<double>(extent));
  }
};

int64_t PartsOf(const SpatialTransform& p) {
  return std::clamp<int64_t>(p.result_height * p.result_width / (2 * int64_t{kThreads}), 1, kMostParts);
}

}  // namespace

void CudaOperations::SpatialTransformForward(const SpatialTransform& problem, const float* x, const float* theta,
                                             float* y) {
  ForEach(queue(), problem.images * GroupsOf(problem.channels) * problem.result_height * problem.result_width,
          Sample{problem, x, theta, y});
}

size_t CudaOperations::SpatialTransformWorkspace(const SpatialTransform& problem) {
  return static_cast<size_t>(problem.images * PartsOf(problem) * kAffineNumbers) * sizeof(double);
}

void CudaOperations::SpatialTransformBackward(const SpatialTransform& problem, const float* x, const float* theta,
                                              const float* dy, float* dx, float* dtheta, std::byte* workspace) {
  if (problem.images == 0) return;
  if (dx) {
    ForEach(queue(), problem.images * GroupsOf(problem.channels) * problem.height * problem.width,
            Gather{problem, theta, dy, dx});
  }
  if (!dtheta) return;
  auto* const sums = reinterpret_cast<double*>(workspace);
  const int64_t parts = PartsOf(problem);
  Launch(queue(), static_cast<unsigned>(problem.images * parts), kThreads, SumMapGradients, problem, parts, x, theta,
         dy, sums);
  ForEach(queue(), problem.images * kAffineNumbers, FinishMapGradient{problem, parts, sums, dtheta});
}

}  // namespace crema::cuda
