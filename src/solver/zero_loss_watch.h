// Notices losses that are 0 from the first iteration on, of data whose labels do not count, or do not reach them, and
// such as are below 0 of targets that are none.
#ifndef CREMA_SOLVER_ZERO_LOSS_WATCH_H_
#define CREMA_SOLVER_ZERO_LOSS_WATCH_H_

#include <set>
#include <string>

#include "crema/net.h"

namespace crema {

// Watches the first 20 iterations of a training, unless it begins with a snapshot, and all for losses below 0, and says
// once what it saw.
class ZeroLossWatch {
 public:
  // After the passes of each iteration, counted from 0: its loss, and the net with its outputs. A notice behind the
  // last one that is watched, where the loss, or one of its terms, was 0 in all; else empty.
  std::string Look(int iteration, float loss, const Net& net);
  // The same of the iterations so far, where training ends before.
  std::string End();
  // After the passes of each iteration: a notice where this is below 0 by a SigmoidCrossEntropyLoss, which no target
  // from 0 to 1 makes so; else empty.
  std::string LookBelowZero(float loss, const Net& net);

 private:
  static constexpr int kTold = -1;

  bool told_below_zero_ = false;
  int watched_ = 0;                   // iterations; kTold: no more
  bool zero_loss_ = true;             // in all of them
  std::set<std::string> zero_terms_;  // outputs that add to the loss and were 0 in all of them
};

}  // namespace crema

#endif  // CREMA_SOLVER_ZERO_LOSS_WATCH_H_
