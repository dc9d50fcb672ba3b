// Centres of classes, which follow the vectors of their class (Wen et al., "A Discriminative Feature Learning Approach
// for Deep Face Recognition", 2016).
#ifndef CREMA_OPS_LOSSES_CLASS_CENTERS_H_
#define CREMA_OPS_LOSSES_CLASS_CENTERS_H_

#include "ops/arrays/embed.h"

namespace crema {

// By EmbedProblem: `indices` vectors with a label each, `rows` centres. gradient[c] = weight * *factor / (1 + n) * the
// sum of centers[c] - x[i] over the n vectors of class c, in their order. Labels must be good. Overwrites all of it.
// Threaded; allocates nothing.
void CenterGradient(const EmbedProblem& problem, float weight, const float* factor, const float* label, const float* x,
                    const float* centers, float* gradient);

}  // namespace crema

#endif  // CREMA_OPS_LOSSES_CLASS_CENTERS_H_
