// Losses of scores or probabilities against class labels beside SoftmaxLoss (ops/losses/classification.h). Labels are
// class numbers held as floats, one for each position of a ClassAxis, and must be good (FindBadLabel). Sums are
// accumulated in double. f32.
#ifndef CREMA_OPS_LOSSES_LABEL_LOSSES_H_
#define CREMA_OPS_LOSSES_LABEL_LOSSES_H_

#include <cstdint>

#include "ops/losses/softmax.h"

namespace crema {

// Smaller probabilities count as this one in LogLoss and InfogainLoss.
inline constexpr float kLeastProbability = 1e-20f;

// max(0, 1 - x) for the score of the label and max(0, 1 + x) for those of other classes, or their squares: the sum,
// divided by the number of items.
struct HingeLoss {
  int64_t items = 1, classes = 1;
  bool squares = false;
};
void HingeLossForward(const HingeLoss& loss, const float* scores, const float* label, float* value);
void HingeLossBackward(const HingeLoss& loss, const float* value_gradient, const float* scores, const float* label,
                       float* dx);

// The mean of -log(probability of the label) over the items.
struct LogLoss {
  int64_t items = 1, classes = 1;
};
void LogLossForward(const LogLoss& loss, const float* probability, const float* label, float* value);
void LogLossBackward(const LogLoss& loss, const float* value_gradient, const float* probability, const float* label,
                     float* dx);

// The sum of -H[label][c] * log(probability of c) over classes c and the labels that count, divided.
struct InfogainLoss {
  ClassAxis axis;
  LabelRule rule;
  int64_t normalizer = 0;  // what the sum is divided by; 0: the number of labels that count, 1 where none does
};
// infogain: H, classes x classes, a row for each label. *normalizer gets what the sum was divided by, for Backward.
void InfogainLossForward(const InfogainLoss& loss, const float* infogain, const float* probability, const float* label,
                         float* normalizer, float* value);
// With respect to the scores that the probabilities are the softmax of. row_sums: scratch of `classes` floats.
void InfogainLossBackward(const InfogainLoss& loss, const float* value_gradient, const float* normalizer,
                          const float* infogain, const float* probability, const float* label, float* row_sums,
                          float* dx);

}  // namespace crema

#endif  // CREMA_OPS_LOSSES_LABEL_LOSSES_H_
