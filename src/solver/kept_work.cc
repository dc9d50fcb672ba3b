// What is kept of a training that fails.
#include <exception>

#include "device/device.h"
#include "solver/solver_impl.h"

namespace crema {

void Solver::Impl::EndInFailure(bool keeps) {
  if (keeps) KeepWork();
  try {
    RemoveUntrainedBest();
  } catch (const std::exception&) {
    // What failed first is what is told.
  }
}

// A GPU would have to be waited for.
bool Solver::Impl::CanTakeBack() const {
  return ranks == 1 && options.role == Role::kAlone && device->type() == DeviceType::kCpu;
}

void Solver::Impl::KeepWork() {
  if (ranks > 1 || hogwild || options.role != Role::kAlone || options.processes || prefix.empty()) return;
  if (param.snapshot() <= 0 && !param.snapshot_after_train()) return;
  if (iteration == 0 || iteration == saved_iteration || parameters_change) return;
  try {
    if (in_iteration && before_iteration) {
      before_iteration->PutBack();
    } else if (in_iteration && !MovingState(net.get(), device).empty()) {
      Warn({}, "the snapshot that follows is not exactly of iteration " + std::to_string(iteration) +
                   ": running statistics and states of recurrent layers have seen records of the batch that failed");
    }
    if (in_iteration) {
      losses = losses_before;
      plateau = plateau_before;
    }
    TrySnapshot();
  } catch (const std::exception&) {
    // What failed first is what is told.
  }
}

}  // namespace crema
