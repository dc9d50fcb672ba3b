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
  if (ranks > 1 || hogwild || options.role != Role::kAlone || options.processes || snapshots->prefix().empty()) return;
  if (param.snapshot() <= 0 && !param.snapshot_after_train()) return;
  if (iteration == 0 || iteration == snapshots->iteration() || undo.parameters_change()) return;
  try {
    if (!undo.TakeBack(net.get(), device, &losses, &plateau)) {
      Warn({}, "the snapshot that follows is not exactly of iteration " + std::to_string(iteration) +
                   ": running statistics and states of recurrent layers have seen records of the batch that failed");
    }
    TrySnapshot();
  } catch (const std::exception&) {
    // What failed first is what is told.
  }
}

}  // namespace crema
