#include "ops/losses/classification.h"

#include <algorithm>

#include "base/parallel.h"
#include "ops/arrays/vector_math.h"
#include "ops/losses/label_formulas.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 8192;  // values worth waking a thread for

// `score`: of class 0 at one position.
bool IsAmongTop(const AccuracyProblem& problem, const float* score, int64_t expected) {
  const int64_t inner = problem.axis.inner;
  const float own = score[expected * inner];
  int64_t others = -1;  // its own score is found, too
  for (int64_t c = 0; c < problem.axis.classes && others < problem.top_k; ++c) {
    others += labels::IsHigher(score[c * inner], own);
  }
  return others < problem.top_k;
}

}  // namespace

void SoftmaxLossForward(const SoftmaxLoss& loss, const float* probability, const float* label, float* value) {
  double sum = 0, share = 0;
  for (int64_t i = 0; i < loss.axis.positions(); ++i) {
    if (labels::IsIgnored(loss.rule, label[i])) continue;
    sum += labels::LossTerm(loss, probability, i, label[i]);
    share += static_cast<double>(labels::Share(loss, label[i]));
  }
  *value = static_cast<float>(sum / labels::Normalizer(loss, share));
}

void SoftmaxLossTerms(const SoftmaxLoss& loss, const float* probability, const float* label, float* terms) {
  const int64_t positions = loss.axis.positions();
  ParallelFor(positions, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const bool counts = !labels::IsIgnored(loss.rule, label[i]);
      terms[i] = counts ? static_cast<float>(labels::LossTerm(loss, probability, i, label[i])) : 0.0f;
    }
  });
}

void SoftmaxLossBackward(const SoftmaxLoss& loss, const float* value_gradient, const float* probability,
                         const float* label, float* dx) {
  const ClassAxis& axis = loss.axis;
  const float* const divided_by = loss.divides_by_labels ? nullptr : loss.class_weight;
  const double shares = loss.normalizer > 0 ? 0 : WeighLabels(loss.rule, divided_by, axis.positions(), label);
  const float scale = static_cast<float>(*value_gradient / labels::Normalizer(loss, shares));
  // Then all places are scaled alike, and only the label's class is more than that.
  const bool plain = !loss.class_weight && loss.smoothing == 0 && loss.focal_gamma == 0 && !loss.weights.given();
  if (plain) Scale(axis.positions() * axis.classes, scale, probability, dx);
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, axis.classes * axis.inner));
  ParallelFor(axis.outer, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * axis.inner; i < end * axis.inner; ++i) {
      const int64_t first = labels::FirstOffset(axis, i);
      if (labels::IsIgnored(loss.rule, label[i])) {
        for (int64_t c = 0; c < axis.classes; ++c) dx[first + c * axis.inner] = 0;
        continue;
      }
      const auto own = static_cast<int64_t>(label[i]);
      if (plain) {
        dx[first + own * axis.inner] -= scale;
        continue;
      }
      const float focal = labels::FocalGradientFactor(loss.focal_gamma, probability[first + own * axis.inner]);
      const float weighted = scale * labels::WeightOf(loss, i, label[i]) * focal;
      for (int64_t c = 0; c < axis.classes; ++c) {
        const float target = labels::Target(loss.smoothing, axis.classes, c == own);
        dx[first + c * axis.inner] = labels::Gradient(weighted, probability[first + c * axis.inner], target);
      }
    }
  });
}

void Accuracy(const AccuracyProblem& problem, const float* scores, const float* label, float* share, float* of_class,
              float* labels_of_class) {
  const ClassAxis& axis = problem.axis;
  if (of_class) {
    Fill(axis.classes, 0, of_class);
    Fill(axis.classes, 0, labels_of_class);
  }
  int64_t right = 0, counted = 0;
  for (int64_t i = 0; i < axis.positions(); ++i) {
    if (labels::IsIgnored(problem.rule, label[i])) continue;
    const int64_t expected = static_cast<int64_t>(label[i]);
    const float* score = scores + labels::FirstOffset(axis, i);
    const bool found = IsAmongTop(problem, score, expected);
    right += found;
    ++counted;
    if (!of_class) continue;
    labels_of_class[expected] += 1;
    if (found) of_class[expected] += 1;
  }
  *share = counted == 0 ? 0.0f : static_cast<float>(right) / static_cast<float>(counted);
  if (!of_class) return;
  for (int64_t c = 0; c < axis.classes; ++c) of_class[c] /= labels_of_class[c] > 0 ? labels_of_class[c] : 1.0f;
}

}  // namespace crema
