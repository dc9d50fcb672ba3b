// The loss of pairs of one kind against all others of a batch (Song et al., "Deep Metric Learning via Lifted Structured
// Feature Embedding", 2016), plain f32 in CPU memory. Sums are accumulated in double.
#ifndef CREMA_OPS_LOSSES_LIFTED_STRUCTURE_H_
#define CREMA_OPS_LOSSES_LIFTED_STRUCTURE_H_

#include <cstdint>

namespace crema {

// With D the distances of vectors, half the mean over the pairs (i, j) of equal labels of max(0, J)^2, J = D(i, j) +
// log(exp(l(i)) + exp(l(j))), l(i) = log(the sum of exp(margin - D(i, k)) over all k of another label than i); 0 where
// there are no such pairs.
struct LiftedStructure {
  int64_t items = 1, width = 1;
  float margin = 1;
};
// What Forward keeps for Backward.
struct LiftedTape {
  float* distance;   // items x items: squared
  float* rows;       // four numbers of each item: see lifted_structure_formulas.h
  float* all_pairs;  // how many (i, j) with i other than j have equal labels, at least 1
};
inline constexpr int kLiftedRows = 4;

// Threaded; allocates nothing.
void LiftedStructureForward(const LiftedStructure& loss, const float* x, const float* label, const LiftedTape& tape,
                            float* value);
// weights: scratch of items x items numbers. Vectors at one place have no slope.
void LiftedStructureBackward(const LiftedStructure& loss, const float* value_gradient, const float* x,
                             const float* label, const LiftedTape& tape, float* weights, float* dx);

}  // namespace crema

#endif  // CREMA_OPS_LOSSES_LIFTED_STRUCTURE_H_
