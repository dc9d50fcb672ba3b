// debug_info: how large the numbers are that a net computes with.
#ifndef CREMA_SOLVER_MEAN_SIZES_H_
#define CREMA_SOLVER_MEAN_SIZES_H_

#include "crema/net.h"
#include "crema/observer.h"

namespace crema {

// Of the last forward and backward pass of a net with keep_all and keep_gradients. Gradients are as they lie there: of
// parameters the sum over iter_size, of tops those of the last of these passes, with precision FP16 times the loss
// scale.
MeanSizes MeanSizesOf(const Net& net, int iteration);

}  // namespace crema

#endif  // CREMA_SOLVER_MEAN_SIZES_H_
