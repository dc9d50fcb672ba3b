#include "ops/losses/label_margin.h"

#include <algorithm>

#include "base/parallel.h"
#include "ops/losses/label_margin_formulas.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 16384;  // elements worth waking a thread for

CREMA_MULTIVERSION void AddRows(int64_t begin, int64_t end, int64_t width, const float* factor, const float* x,
                                float* y) {
  for (int64_t row = begin; row < end; ++row) {
    const float times = factor[row];
#pragma omp simd
    for (int64_t k = row * width; k < (row + 1) * width; ++k) y[k] += times * x[k];
  }
}

}  // namespace

void ApplyMargin(const LabelMargin& margin, uint64_t pass, const float* label, const float* squares, float* scores,
                 const MarginTape& tape) {
  const float lambda = margin::Lambda(margin, pass);
  if (tape.lambda) *tape.lambda = lambda;
  for (int64_t row = 0; row < margin.rows; ++row) {
    float& own = scores[row * margin.classes + static_cast<int64_t>(label[row])];
    const margin::Score score = margin::Apply(margin, lambda, squares ? squares[row] : 1.0f, own);
    own = score.value;
    if (tape.slope) tape.slope[row] = score.slope;
    if (tape.pull) tape.pull[row] = score.pull;
  }
}

void MarginGradient(const LabelMargin& margin, const float* label, const MarginTape& tape, float* gradient,
                    float* multiples) {
  for (int64_t row = 0; row < margin.rows; ++row) {
    float& own = gradient[row * margin.classes + static_cast<int64_t>(label[row])];
    if (multiples) multiples[row] = own * tape.pull[row];
    own *= tape.slope[row];
  }
}

void AddScaledRows(int64_t rows, int64_t width, const float* factor, const float* x, float* y) {
  ParallelFor(rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width)),
              [&](int64_t begin, int64_t end) { AddRows(begin, end, width, factor, x, y); });
}

}  // namespace crema
