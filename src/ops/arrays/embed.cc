#include "ops/arrays/embed.h"

#include <algorithm>
#include <cstring>

#include "base/multiversion.h"
#include "base/parallel.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 32768;  // elements worth waking a thread for

CREMA_MULTIVERSION void LookUp(int64_t begin, int64_t end, int64_t width, const float* index, const float* table,
                               const float* bias, float* y) {
  for (int64_t i = begin; i < end; ++i) {
    const float* row = table + static_cast<int64_t>(index[i]) * width;
    float* to = y + i * width;
    if (bias == nullptr) {
      std::memcpy(to, row, width * sizeof *to);
      continue;
    }
#pragma omp simd
    for (int64_t k = 0; k < width; ++k) to[k] = row[k] + bias[k];
  }
}

// Rows [begin, end) of the table.
CREMA_MULTIVERSION void Scatter(int64_t begin, int64_t end, int64_t indices, int64_t width, const float* index,
                                const float* dy, float* table) {
  std::memset(table + begin * width, 0, (end - begin) * width * sizeof *table);
  for (int64_t i = 0; i < indices; ++i) {
    const int64_t row = static_cast<int64_t>(index[i]);
    if (row < begin || row >= end) continue;
    const float* from = dy + i * width;
    float* to = table + row * width;
#pragma omp simd
    for (int64_t k = 0; k < width; ++k) to[k] += from[k];
  }
}

}  // namespace

int64_t FindBadIndex(const EmbedProblem& problem, const float* index) {
  for (int64_t i = 0; i < problem.indices; ++i) {
    if (!IsRow(problem, index[i])) return i;
  }
  return -1;
}

void EmbedForward(const EmbedProblem& problem, const float* index, const float* table, const float* bias, float* y) {
  ParallelFor(problem.indices, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, problem.width)),
              [&](int64_t begin, int64_t end) { LookUp(begin, end, problem.width, index, table, bias, y); });
}

void EmbedBackward(const EmbedProblem& problem, const float* index, const float* dy, float* table_gradient) {
  const int64_t work = (problem.rows + problem.indices) * problem.width;
  const int64_t grain = std::max<int64_t>(1, problem.rows * kGrain / std::max<int64_t>(1, work));
  ParallelFor(problem.rows, grain, [&](int64_t begin, int64_t end) {
    Scatter(begin, end, problem.indices, problem.width, index, dy, table_gradient);
  });
}

}  // namespace crema
