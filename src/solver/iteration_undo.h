// What is kept of the time before an iteration, for one that fails.
#ifndef CREMA_SOLVER_ITERATION_UNDO_H_
#define CREMA_SOLVER_ITERATION_UNDO_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "crema/net.h"
#include "device/device.h"
#include "solver/loss_window.h"
#include "solver/moving_state.h"
#include "solver/rules/rates.h"

namespace crema {

// An iteration begins, ends its passes, changes parameters and ends. As long as no parameter has changed it can be
// taken back. One that failed stays as far as it came, until the next one ends.
class IterationUndo {
 public:
  // Keeps where the data layers of `net` are, and what is given. With `moving_state` also its running statistics and
  // the states of its recurrent layers, which waits for the device.
  void Begin(Net* net, Device* device, bool moving_state, const LossWindow& losses, const PlateauState& plateau);
  void EndPasses() { passes_done_ = true; }
  // From here on some parameters may be of before the iteration and some of behind it.
  void ChangeParameters() { parameters_change_ = true; }
  // All parameters are of behind it.
  void EndUpdate() { passes_done_ = parameters_change_ = false; }
  void End() { runs_ = false; }

  // Whether its passes are over, and what follows them is on its way.
  bool passes_done() const { return passes_done_; }
  bool parameters_change() const { return parameters_change_; }
  // Where the data layers were before it, in their order; null where no iteration has begun that has not ended.
  const std::vector<uint64_t>* records() const { return runs_ ? &records_ : nullptr; }
  // Puts back what was kept, where no parameter has changed, but for the positions of data layers. False where the
  // moving state was not, though `net` has one.
  bool TakeBack(Net* net, Device* device, LossWindow* losses, PlateauState* plateau) const;

 private:
  bool runs_ = false, passes_done_ = false, parameters_change_ = false;
  LossWindow losses_{1};
  PlateauState plateau_;
  std::vector<uint64_t> records_;
  std::optional<MovingState> moving_state_;
};

}  // namespace crema

#endif  // CREMA_SOLVER_ITERATION_UNDO_H_
