#include "ops/normalization/bias.h"

#include <algorithm>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/arrays/vector_math.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 32768;  // elements worth waking a thread for

int64_t Grain(int64_t width) { return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width)); }

CREMA_MULTIVERSION void AddNumbers(int64_t begin, int64_t end, int64_t values, int64_t inner, const float* x,
                                   const float* bias, float* y) {
  for (int64_t row = begin; row < end; ++row) {
    const float number = bias[row % values];
    const float* from = x + row * inner;
    float* to = y + row * inner;
#pragma omp simd
    for (int64_t i = 0; i < inner; ++i) to[i] = from[i] + number;
  }
}

CREMA_MULTIVERSION void AddVectors(int64_t begin, int64_t end, int64_t values, const float* x, const float* bias,
                                   float* y) {
  for (int64_t row = begin; row < end; ++row) {
    const float* from = x + row * values;
    float* to = y + row * values;
#pragma omp simd
    for (int64_t i = 0; i < values; ++i) to[i] = from[i] + bias[i];
  }
}

// Adds rows [begin, end) of `width` floats to sums.
CREMA_MULTIVERSION void SumRows(int64_t begin, int64_t end, int64_t stride, int64_t width, const float* x,
                                float* sums) {
  for (int64_t row = begin; row < end; ++row) {
    const float* from = x + row * stride;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) sums[i] += from[i];
  }
}

// Long columns of single floats: sums of runs of rows are added up, so that rounding does not grow with the length.
void SumColumns(int64_t rows, int64_t stride, int64_t width, const float* x, float* sums) {
  constexpr int64_t kRun = 256, kTile = 64;
  for (int64_t tile = 0; tile < width; tile += kTile) {
    const int64_t tile_width = std::min(kTile, width - tile);
    double total[kTile] = {};
    for (int64_t row = 0; row < rows; row += kRun) {
      float part[kTile] = {};
      SumRows(row, std::min(rows, row + kRun), stride, tile_width, x + tile, part);
      for (int64_t i = 0; i < tile_width; ++i) total[i] += part[i];
    }
    for (int64_t i = 0; i < tile_width; ++i) sums[tile + i] = static_cast<float>(total[i]);
  }
}

}  // namespace

void AddBias(const BiasExtents& extents, const float* x, const float* bias, float* y) {
  const int64_t values = extents.values, inner = extents.inner;
  if (inner == 1) {
    ParallelFor(extents.outer, Grain(values),
                [=](int64_t begin, int64_t end) { AddVectors(begin, end, values, x, bias, y); });
  } else {
    ParallelFor(extents.outer * values, Grain(inner),
                [=](int64_t begin, int64_t end) { AddNumbers(begin, end, values, inner, x, bias, y); });
  }
}

void SumToBias(const BiasExtents& extents, const float* dy, float* gradient) {
  const int64_t outer = extents.outer, values = extents.values, inner = extents.inner;
  if (inner == 1 && values > 1) {
    ParallelFor(values, std::max<int64_t>(64, Grain(outer)), [=](int64_t begin, int64_t end) {
      SumColumns(outer, values, end - begin, dy + begin, gradient + begin);
    });
  } else if (values == 1) {
    gradient[0] = static_cast<float>(Sum(outer * inner, dy));
  } else {
    ParallelFor(values, Grain(outer * inner), [=](int64_t begin, int64_t end) {
      for (int64_t value = begin; value < end; ++value) {
        double sum = 0;
        for (int64_t n = 0; n < outer; ++n) sum += Sum(inner, dy + (n * values + value) * inner);
        gradient[value] = static_cast<float>(sum);
      }
    });
  }
}

}  // namespace crema
