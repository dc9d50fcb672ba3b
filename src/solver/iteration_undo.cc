#include "solver/iteration_undo.h"

#include "base/check.h"

namespace crema {

void IterationUndo::Begin(Net* net, Device* device, bool moving_state, const LossWindow& losses,
                          const PlateauState& plateau) {
  net->CopyDataPositions(&records_);
  if (moving_state) {
    if (!moving_state_) moving_state_.emplace(net, device);
    moving_state_->Keep();
  }
  losses_ = losses;
  plateau_ = plateau;
  runs_ = true;
}

bool IterationUndo::TakeBack(Net* net, Device* device, LossWindow* losses, PlateauState* plateau) const {
  CREMA_CHECK(!parameters_change_);
  if (!runs_) return true;
  if (moving_state_) moving_state_->PutBack();
  *losses = losses_;
  *plateau = plateau_;
  return moving_state_ || MovingState(net, device).empty();
}

}  // namespace crema
