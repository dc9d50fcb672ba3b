// Softmax along one axis, and the loss that follows it. Tensors are seen as outer x classes x inner, f32, in CPU
// memory.
#ifndef CREMA_OPS_LOSSES_SOFTMAX_H_
#define CREMA_OPS_LOSSES_SOFTMAX_H_

#include <cstdint>

#include "base/multiversion.h"
#include "crema/tensor.h"

namespace crema {

// A tensor around its class axis.
struct ClassAxis {
  int64_t outer = 1, classes = 1, inner = 1;
  // Above 0: of row `outer` only the first outer % causal + 1 classes count, the others' probability is 0. For
  // SoftmaxForward with inner == 1.
  int64_t causal = 0;

  ClassAxis() = default;
  // axis in [0, shape.axes()).
  ClassAxis(const Shape& shape, int axis)
      : outer(shape.count(0, axis)), classes(shape[axis]), inner(shape.count(axis + 1)) {}

  // Number of distributions, one label each.
  int64_t positions() const { return outer * inner; }
  CREMA_HOST_DEVICE int64_t counted(int64_t row) const {
    return causal > 0 && row % causal < classes ? row % causal + 1 : classes;
  }
};

// y = exp(x - max) / sum(exp(x - max)). y may be x.
void SoftmaxForward(const ClassAxis& axis, const float* x, float* y);
// dx = y * (dy - sum(dy * y)). dx may be dy.
void SoftmaxBackward(const ClassAxis& axis, const float* y, const float* dy, float* dx);

// Labels are class numbers held as floats, one for each position, in outer x inner order.
struct LabelRule {
  bool has_ignore = false;
  int ignore = 0;  // positions with this label do not count
  // Nor those with one of these, which lie in the device's memory.
  const float* also_ignored = nullptr;
  int also_ignored_count = 0;
};

// Index of the first label that is neither a whole number in [0, classes) nor ignored; -1 when all are fine.
int64_t FindBadLabel(const LabelRule& rule, int64_t classes, int64_t labels, const float* label);

// The sum of the weights of the positions that are not ignored.
double WeighLabels(const LabelRule& rule, const float* class_weight, int64_t labels, const float* label);

}  // namespace crema

#endif  // CREMA_OPS_LOSSES_SOFTMAX_H_
