#include "ops/losses/label_losses.h"

#include <algorithm>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/arrays/sums.h"
#include "ops/arrays/vector_math.h"
#include "ops/losses/label_formulas.h"
#include "ops/losses/loss_formulas.h"

namespace crema {

namespace {

int64_t Grain(int64_t width) {
  constexpr int64_t kGrain = 8192;  // elements worth waking a thread for
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width));
}

CREMA_MULTIVERSION double HingeRows(bool squares, int64_t rows, int64_t classes, const float* scores,
                                    const float* label) {
  const formula::HingeTerm term = {squares};
  double sum = 0;
  for (int64_t i = 0; i < rows; ++i, scores += classes) {
    const auto own = static_cast<int64_t>(label[i]);
    double of_row = 0;
#pragma omp simd reduction(+ : of_row)
    for (int64_t c = 0; c < classes; ++c) of_row += term(scores[c], c == own);
    sum += of_row;
  }
  return sum;
}

CREMA_MULTIVERSION void HingeGradientRows(bool squares, float scale, int64_t rows, int64_t classes, const float* scores,
                                          const float* label, float* dx) {
  const formula::HingeTerm term = {squares};
  for (int64_t i = 0; i < rows; ++i, scores += classes, dx += classes) {
    const auto own = static_cast<int64_t>(label[i]);
#pragma omp simd
    for (int64_t c = 0; c < classes; ++c) dx[c] = scale * term.Gradient(scores[c], c == own);
  }
}

CREMA_INLINE double InfogainOf(int64_t classes, int64_t stride, const float* infogain, const float* probability) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t c = 0; c < classes; ++c) sum += infogain[c] * formula::ProbabilityLoss(probability[c * stride]);
  return sum;
}

// Positions [begin, end).
CREMA_MULTIVERSION double InfogainSum(const InfogainLoss& loss, int64_t begin, int64_t end, const float* infogain,
                                      const float* probability, const float* label) {
  const ClassAxis axis = loss.axis;
  double sum = 0;
  for (int64_t i = begin; i < end; ++i) {
    if (labels::IsIgnored(loss.rule, label[i])) continue;
    const float* row = infogain + static_cast<int64_t>(label[i]) * axis.classes;
    const float* first = probability + labels::FirstOffset(axis, i);
    sum += axis.inner == 1 ? InfogainOf(axis.classes, 1, row, first) : InfogainOf(axis.classes, axis.inner, row, first);
  }
  return sum;
}

// At one position; `row`: the label's of H.
CREMA_INLINE void InfogainGradientOf(int64_t classes, int64_t stride, float scale, float row_sum, const float* row,
                                     const float* probability, float* dx) {
#pragma omp simd
  for (int64_t c = 0; c < classes; ++c) dx[c * stride] = scale * (probability[c * stride] * row_sum - row[c]);
}

CREMA_MULTIVERSION void InfogainGradient(const InfogainLoss& loss, float scale, int64_t begin, int64_t end,
                                         const float* infogain, const float* row_sums, const float* probability,
                                         const float* label, float* dx) {
  const ClassAxis axis = loss.axis;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t first = labels::FirstOffset(axis, i);
    if (labels::IsIgnored(loss.rule, label[i])) {
      for (int64_t c = 0; c < axis.classes; ++c) dx[first + c * axis.inner] = 0;
      continue;
    }
    const auto own = static_cast<int64_t>(label[i]);
    const float* row = infogain + own * axis.classes;
    if (axis.inner == 1) {
      InfogainGradientOf(axis.classes, 1, scale, row_sums[own], row, probability + first, dx + first);
    } else {
      InfogainGradientOf(axis.classes, axis.inner, scale, row_sums[own], row, probability + first, dx + first);
    }
  }
}

}  // namespace

void HingeLossForward(const HingeLoss& loss, const float* scores, const float* label, float* value) {
  const double sum = SumBlocks(loss.items, loss.classes, [&](int64_t begin, int64_t end) {
    return HingeRows(loss.squares, end - begin, loss.classes, scores + begin * loss.classes, label + begin);
  });
  *value = static_cast<float>(sum / static_cast<double>(loss.items));
}

void HingeLossBackward(const HingeLoss& loss, const float* value_gradient, const float* scores, const float* label,
                       float* dx) {
  const float scale = *value_gradient / static_cast<float>(loss.items);
  ParallelFor(loss.items, Grain(loss.classes), [&](int64_t begin, int64_t end) {
    const int64_t first = begin * loss.classes;
    HingeGradientRows(loss.squares, scale, end - begin, loss.classes, scores + first, label + begin, dx + first);
  });
}

void LogLossForward(const LogLoss& loss, const float* probability, const float* label, float* value) {
  const double sum = SumBlocks(loss.items, 1, [&](int64_t begin, int64_t end) {
    double of_block = 0;
    for (int64_t i = begin; i < end; ++i) {
      of_block += formula::ProbabilityLoss(probability[i * loss.classes + static_cast<int64_t>(label[i])]);
    }
    return of_block;
  });
  *value = static_cast<float>(sum / static_cast<double>(loss.items));
}

void LogLossBackward(const LogLoss& loss, const float* value_gradient, const float* probability, const float* label,
                     float* dx) {
  const float scale = *value_gradient / static_cast<float>(loss.items);
  Fill(loss.items * loss.classes, 0, dx);
  for (int64_t i = 0; i < loss.items; ++i) {
    const int64_t at = i * loss.classes + static_cast<int64_t>(label[i]);
    dx[at] = scale * formula::ProbabilityLossGradient(probability[at]);
  }
}

void InfogainLossForward(const InfogainLoss& loss, const float* infogain, const float* probability, const float* label,
                         float* normalizer, float* value) {
  const int64_t positions = loss.axis.positions();
  const double divisor = loss.normalizer > 0 ? static_cast<double>(loss.normalizer)
                                             : std::max(1.0, WeighLabels(loss.rule, nullptr, positions, label));
  const double sum = SumBlocks(positions, loss.axis.classes, [&](int64_t begin, int64_t end) {
    return InfogainSum(loss, begin, end, infogain, probability, label);
  });
  *normalizer = static_cast<float>(divisor);
  *value = static_cast<float>(sum / divisor);
}

void InfogainLossBackward(const InfogainLoss& loss, const float* value_gradient, const float* normalizer,
                          const float* infogain, const float* probability, const float* label, float* row_sums,
                          float* dx) {
  const int64_t classes = loss.axis.classes;
  ParallelFor(classes, Grain(classes), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      row_sums[row] = static_cast<float>(Sum(classes, infogain + row * classes));
  });
  const float scale = *value_gradient / *normalizer;
  ParallelFor(loss.axis.positions(), Grain(classes), [&](int64_t begin, int64_t end) {
    InfogainGradient(loss, scale, begin, end, infogain, row_sums, probability, label, dx);
  });
}

}  // namespace crema
