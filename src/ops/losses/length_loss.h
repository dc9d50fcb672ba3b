// The sizes of differences, or the lengths of their vectors, where what is not known is NaN and does not count, plain
// f32 in CPU memory. Sums are accumulated in double.
#ifndef CREMA_OPS_LOSSES_LENGTH_LOSS_H_
#define CREMA_OPS_LOSSES_LENGTH_LOSS_H_

#include "ops/losses/softmax.h"

namespace crema {

// Of differences d: the sum of |d|, those below `plateau` left out; or, with of_vectors, over all places the sum of
// (s + epsilon)^power, s being `scale` times the sum of d^2 over the classes, 0 where it is below plateau^2. A d that
// is NaN is 0 and has no gradient.
struct LengthLoss {
  ClassAxis axis;
  bool of_vectors = false;
  float scale = 1, epsilon = 0, power = 0.5f, plateau = 0;
  double divisor = 1;  // of the sum; 0: the number of differences that are no NaN by the classes, at least 1

  int64_t count() const { return axis.positions() * axis.classes; }
};
// d = a - b; b null: d = a.
struct LengthInputs {
  const float *a, *b;
};

// normalizer: what the sum was divided by, for Backward. Threaded; allocates nothing.
void LengthLossForward(const LengthLoss& loss, const LengthInputs& inputs, float* normalizer, float* value);
// da, db: null where not wanted.
void LengthLossBackward(const LengthLoss& loss, const float* value_gradient, const LengthInputs& inputs,
                        const float* normalizer, float* da, float* db);

}  // namespace crema

#endif  // CREMA_OPS_LOSSES_LENGTH_LOSS_H_
