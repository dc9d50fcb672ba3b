// What forward passes change beside the parameters that are trained.
#ifndef CREMA_SOLVER_MOVING_STATE_H_
#define CREMA_SOLVER_MOVING_STATE_H_

#include <optional>
#include <utility>
#include <vector>

#include "crema/net.h"
#include "device/device.h"

namespace crema {

// Running statistics and the states of recurrent layers, so that a pass that does not count can be taken back.
class MovingState {
 public:
  // Of a net that outlives this; its memory must not move.
  MovingState(Net* net, Device* device);

  bool empty() const { return kept_.empty(); }
  // As it is now. Waits for the device.
  void Keep();
  // As it was kept last.
  void PutBack() const;

 private:
  Net& net_;
  Device& device_;
  std::vector<std::pair<Tensor, std::vector<char>>> kept_;
};

// While it lives the net is as `before` was kept last; then as it was when this was made. Null: nothing is done.
class ShownMovingState {
 public:
  ShownMovingState(const MovingState* before) {  // NOLINT: a state is one
    if (!before) return;
    now_.emplace(*before);
    now_->Keep();
    before->PutBack();
  }
  ~ShownMovingState() {
    if (now_) now_->PutBack();
  }
  ShownMovingState(const ShownMovingState&) = delete;
  ShownMovingState& operator=(const ShownMovingState&) = delete;

 private:
  std::optional<MovingState> now_;
};

}  // namespace crema

#endif  // CREMA_SOLVER_MOVING_STATE_H_
