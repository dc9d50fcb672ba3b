// A solver's update outside of its net: the same for all who have the same numbers, whatever device their nets are on.
#ifndef CREMA_SOLVER_RULES_PLAIN_UPDATE_H_
#define CREMA_SOLVER_RULES_PLAIN_UPDATE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "crema/net.h"
#include "crema/solver.pb.h"
#include "solver/rules/updater.h"

namespace crema {

// Numbers lie as TrainingSteps reads them: the trained values, and what the update rule remembers. Not thread-safe.
class PlainUpdate {
 public:
  // Of `parameters` those that are trained count: their names, shapes and multipliers. Neither must outlive this. The
  // solver must have passed CheckSolver.
  PlainUpdate(const SolverParameter& solver, std::span<const Parameter> parameters);
  PlainUpdate(const PlainUpdate&) = delete;
  PlainUpdate& operator=(const PlainUpdate&) = delete;

  int64_t trained_count() const { return count_; }
  int64_t history_count() const { return count_ == 0 ? 0 : histories_ * count_; }

  // The end of `iteration` by gradients as TrainingSteps::Gradients gives them: clipping and update on the CPU, bit for
  // bit what TrainingSteps::Update does there. Changes `values` and `history`; throws NotFinite, and then changes
  // nothing, where the norm of the gradients is needed and is not finite.
  void Apply(int iteration, const float* gradients, float* values, float* history);

 private:
  const SolverParameter solver_;
  const int64_t count_, histories_;
  std::vector<float> values_, gradients_;
  std::vector<Parameter> parameters_;  // of these
  Updater updater_;
};

}  // namespace crema

#endif  // CREMA_SOLVER_RULES_PLAIN_UPDATE_H_
