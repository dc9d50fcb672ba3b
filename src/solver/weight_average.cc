#include "solver/weight_average.h"

#include <algorithm>
#include <utility>

#include "device/host_copies.h"
#include "ops/operations.h"
#include "solver/snapshots/snapshot.h"

namespace crema {

WeightAverage::WeightAverage(const EmaParameter& param, Net& net, Device& device)
    : decay_(param.decay()),
      net_(net),
      device_(device),
      average_(device, net.parameter_block().size_bytes()),
      scratch_(device, net.parameter_block().size_bytes()) {
  Restart();
}

Tensor WeightAverage::Whole(void* data) const {
  return Tensor(static_cast<float*>(data), {Shape{static_cast<int64_t>(net_.parameter_block().size())}});
}

void WeightAverage::Restart() {
  if (average_.bytes() == 0) return;
  device_.UseHere();
  OperationsOf(device_).Copy(net_.parameter_block().data(), average_.data(), average_.bytes());
}

void WeightAverage::Add(int iteration) {
  if (average_.bytes() == 0) return;
  const float first = static_cast<float>(1 + iteration) / static_cast<float>(10 + iteration);
  const float decay = std::min(decay_, first);
  const Tensor average = Whole(average_.data());
  OperationsOf(device_).WeightedSum(decay, average, 1 - decay, Whole(net_.parameter_block().data()), average);
}

void WeightAverage::Exchange() {
  exchanged_ = !exchanged_;
  if (average_.bytes() == 0) return;
  device_.UseHere();
  Operations& ops = OperationsOf(device_);
  float* const parameters = net_.parameter_block().data();
  ops.Copy(parameters, scratch_.data(), scratch_.bytes());
  ops.Copy(average_.data(), parameters, average_.bytes());
  ops.Copy(scratch_.data(), average_.data(), scratch_.bytes());
  net_.ParametersChanged();
}

Tensor WeightAverage::AverageOf(const Parameter& parameter) const {
  const auto at = parameter.data.f32() - net_.parameter_block().data();
  return Tensor(reinterpret_cast<float*>(average_.data()) + at, parameter.data.spec());
}

void WeightAverage::Store(SolverState* state) const {
  for (const Parameter& parameter : std::as_const(net_).parameters()) {
    ToBlob({AverageOf(parameter), parameter.shape, parameter.layout.get(), device_}, state->add_ema());
  }
}

std::vector<std::string> WeightAverage::Load(const SolverState& state, const std::vector<size_t>& places) {
  std::vector<std::string> missing;
  const auto parameters = std::as_const(net_).parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    const auto at = static_cast<int>(std::find(places.begin(), places.end(), i) - places.begin());
    const bool known = at < state.ema_size() && state.ema(at).data_size() == parameter.shape.count();
    if (!known) {
      missing.push_back(parameter.name());
      continue;
    }
    CopyPlainIn(device_, parameter.layout.get(), state.ema(at).data().data(), AverageOf(parameter));
  }
  return missing;
}

}  // namespace crema
