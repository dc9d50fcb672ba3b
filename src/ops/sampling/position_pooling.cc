#include <algorithm>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/sampling/roi_pooling.h"
#include "ops/sampling/roi_pooling_formulas.h"

namespace crema {

namespace {

using roi_pooling::PositionCell;

constexpr int64_t kGrain = 16384;  // elements worth waking a thread for

CREMA_MULTIVERSION float SumCell(const PositionCell& cell, const float* plane, int64_t width) {
  float sum = 0;
  for (int32_t row = cell.rows.begin; row < cell.rows.end; ++row) {
    const float* line = plane + row * width;
#pragma omp simd reduction(+ : sum)
    for (int32_t c = cell.columns.begin; c < cell.columns.end; ++c) sum += line[c];
  }
  return sum;
}

CREMA_MULTIVERSION void AddToCell(const PositionCell& cell, float value, float* plane, int64_t width) {
  for (int32_t row = cell.rows.begin; row < cell.rows.end; ++row) {
    float* line = plane + row * width;
#pragma omp simd
    for (int32_t c = cell.columns.begin; c < cell.columns.end; ++c) line[c] += value;
  }
}

}  // namespace

void PositionPoolingForward(const RoiPoolingProblem& p, const float* x, const float* regions, float* y) {
  if (p.outputs() == 0) return;
  const int64_t cells = p.pooled_height * p.pooled_width, plane = p.height * p.width;
  // The work on a region depends on it; as much as for an image at most.
  const int64_t work = std::min(plane, 4 * cells);
  ParallelFor(p.regions * cells, std::max<int64_t>(1, kGrain / (p.channels * work / cells + 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t number = i / cells, at = i % cells;
                  const PositionCell cell(p, regions + number * kRegionNumbers, at / p.pooled_width,
                                          at % p.pooled_width);
                  for (int64_t channel = 0; channel < p.channels; ++channel) {
                    const float* from = x + ((cell.image * p.channels + channel) * cells + at) * plane;
                    float& mean = y[(number * p.channels + channel) * cells + at];
                    mean = cell.empty() ? 0.0f : SumCell(cell, from, p.width) / cell.area();
                  }
                }
              });
}

void PositionPoolingBackward(const RoiPoolingProblem& p, const float* regions, const float* dy, float* dx) {
  const int64_t cells = p.pooled_height * p.pooled_width, plane = p.height * p.width;
  const int64_t work = plane + p.regions;
  ParallelFor(p.images * p.channels * cells, std::max<int64_t>(1, kGrain / (work + 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t at = i % cells, channel = i / cells % p.channels, image = i / cells / p.channels;
                  float* to = dx + i * plane;
                  std::fill_n(to, plane, 0.0f);
                  for (int64_t number = 0; number < p.regions; ++number) {
                    const float* region = regions + number * kRegionNumbers;
                    if (roi_pooling::ImageOf(p, region) != image) continue;
                    const PositionCell cell(p, region, at / p.pooled_width, at % p.pooled_width);
                    if (cell.empty()) continue;
                    AddToCell(cell, dy[(number * p.channels + channel) * cells + at] / cell.area(), to, p.width);
                  }
                }
              });
}

}  // namespace crema
