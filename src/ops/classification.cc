#include "ops/classification.h"

#include "ops/label_formulas.h"
#include "ops/vector_math.h"

namespace crema {

namespace {

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
  const CrossEntropy sum =
      CrossEntropyForward(loss.axis, loss.rule, loss.class_weight, loss.smoothing, probability, label);
  const double weight =
      loss.divides_by_labels ? WeighLabels(loss.rule, nullptr, loss.axis.positions(), label) : sum.weight;
  *value = static_cast<float>(sum.loss / labels::Normalizer(loss, weight));
}

void SoftmaxLossBackward(const SoftmaxLoss& loss, const float* value_gradient, const float* probability,
                         const float* label, float* dx) {
  const float* const divided_by = loss.divides_by_labels ? nullptr : loss.class_weight;
  const double weight = loss.normalizer > 0 ? 0 : WeighLabels(loss.rule, divided_by, loss.axis.positions(), label);
  const float scale = static_cast<float>(*value_gradient / labels::Normalizer(loss, weight));
  CrossEntropyBackward(loss.axis, loss.rule, loss.class_weight, loss.smoothing, scale, probability, label, dx);
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
