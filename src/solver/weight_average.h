// An exponential moving average of a net's parameters (Polyak and Juditsky, "Acceleration of Stochastic Approximation
// by Averaging", 1992), which a solver tests and writes.
#ifndef CREMA_SOLVER_WEIGHT_AVERAGE_H_
#define CREMA_SOLVER_WEIGHT_AVERAGE_H_

#include <string>
#include <vector>

#include "crema/net.h"
#include "crema/solver.pb.h"
#include "device/device.h"

namespace crema {

class WeightAverage {
 public:
  // Of a net that owns its parameters and outlives this; begins with these.
  WeightAverage(const EmaParameter& param, Net& net, Device& device);

  // Takes in the parameters that iteration `iteration` has left, the first one being 0.
  void Add(int iteration);
  // The average becomes the parameters.
  void Restart();
  // Exchanges the average and the parameters; so does a second call, to the same bits.
  void Exchange();
  bool exchanged() const { return exchanged_; }

  // Not while they are exchanged. `places`: of the state's parameters (ParameterPlaces). Load returns which parameters
  // the state knows no average of, or one of another shape: their averages are as they were.
  void Store(SolverState* state) const;
  std::vector<std::string> Load(const SolverState& state, const std::vector<size_t>& places);

 private:
  Tensor Whole(void* data) const;
  // Of a parameter, as it is stored.
  Tensor AverageOf(const Parameter& parameter) const;

  const float decay_;
  Net& net_;
  Device& device_;
  Buffer average_, scratch_;
  bool exchanged_ = false;
};

// The net has the averages for parameters while this lives, or, with Show::kTrained, those that are trained; where
// there is an average.
class ShownParameters {
 public:
  enum class Show { kAverage, kTrained };
  ShownParameters(WeightAverage* average, Show show)
      : average_(average && average->exchanged() != (show == Show::kAverage) ? average : nullptr) {
    if (average_) average_->Exchange();
  }
  ~ShownParameters() {
    if (average_) average_->Exchange();
  }
  ShownParameters(const ShownParameters&) = delete;
  ShownParameters& operator=(const ShownParameters&) = delete;

 private:
  WeightAverage* average_;
};

}  // namespace crema

#endif  // CREMA_SOLVER_WEIGHT_AVERAGE_H_
