// Loss and accuracy of class scores against labels, f32. Labels are class numbers held as floats, one for each position
// of a ClassAxis, and must be good (FindBadLabel).
#ifndef CREMA_OPS_LOSSES_CLASSIFICATION_H_
#define CREMA_OPS_LOSSES_CLASSIFICATION_H_

#include <cstdint>

#include "ops/losses/element_weights.h"
#include "ops/losses/softmax.h"

namespace crema {

// The sum of -target * log(max(probability, FLT_MIN)) over the classes, times the weights of the position and of the
// label's class and (1 - probability of the label) ^ focal_gamma, over the labels that count, divided. The target is
// smoothing / classes, and 1 - smoothing more for the label's class.
struct SoftmaxLoss {
  ClassAxis axis;
  LabelRule rule;
  // What the sum is divided by; 0: the sum of the class weights of the labels that count, 1 where that is 0.
  int64_t normalizer = 0;
  const float* class_weight = nullptr;  // one for each class, on the device; null: 1 for all
  bool divides_by_labels = false;       // where normalizer is 0: by how many labels count instead, whatever they weigh
  float smoothing = 0;                  // in [0, 1]
  float focal_gamma = 0;                // at least 0, 0 where smoothing is not
  ElementWeights weights = {};          // of positions; what is divided by does not depend on them
};
void SoftmaxLossForward(const SoftmaxLoss& loss, const float* probability, const float* label, float* value);
// What each position adds to that sum, before it is divided; 0 where the label does not count.
void SoftmaxLossTerms(const SoftmaxLoss& loss, const float* probability, const float* label, float* terms);
// With respect to the scores: dx = *value_gradient / normalizer * weights * (probability - target), by focal_gamma
// times FocalGradientFactor (ops/losses/label_formulas.h), zero at ignored positions. dx may be probability where
// focal_gamma is 0.
void SoftmaxLossBackward(const SoftmaxLoss& loss, const float* value_gradient, const float* probability,
                         const float* label, float* dx);

struct AccuracyProblem {
  ClassAxis axis;
  LabelRule rule;
  int64_t top_k = 1;
};
// *share = the share of labels that are among the top_k highest scores of their position, a score that equals the
// label's counting as higher, as in Caffe, and a NaN as never right; 0 where no label counts. of_class (may be null)
// gets the same for each class; labels_of_class is then scratch of as many floats.
void Accuracy(const AccuracyProblem& problem, const float* scores, const float* label, float* share, float* of_class,
              float* labels_of_class);

}  // namespace crema

#endif  // CREMA_OPS_LOSSES_CLASSIFICATION_H_
