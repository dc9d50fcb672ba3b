// debug_info: how large the numbers are that a net computes with.
#ifndef CREMA_SOLVER_MEAN_SIZES_H_
#define CREMA_SOLVER_MEAN_SIZES_H_

#include "crema/net.h"
#include "crema/observer.h"

namespace crema {

// Of the last forward and backward pass of a net with keep_all and keep_gradients. `passes`: how many the gradients of
// parameters are the sum of, over iter_size and ranks; told is their mean, as updates use it. Gradients of tops are
// those of the last pass, with precision FP16 times the loss scale.
MeanSizes MeanSizesOf(const Net& net, int iteration, int passes);

}  // namespace crema

#endif  // CREMA_SOLVER_MEAN_SIZES_H_
