// The numbers of a solver's net as machines exchange them.
#ifndef CREMA_DISTRIBUTED_TRAINING_SOLVER_LAYOUT_H_
#define CREMA_DISTRIBUTED_TRAINING_SOLVER_LAYOUT_H_

#include <span>

#include "crema/distributed.pb.h"
#include "distributed/averaging/round_formula.h"
#include "distributed/protocol/payload.h"
#include "distributed/training/state_layout.h"
#include "solver/training_steps.h"

namespace crema {

// With mode GRADIENT workers have no history of their own; with topologies other than STAR they share one.
StateLayout LayoutOf(const TrainingSteps& steps, const DistributedParameter& settings);

// The update of the solver, outside of its net: the same bits for all who have the same state, on whatever device they
// train. Not thread-safe; does not need the solver any more.
GradientUpdate SharedUpdate(const TrainingSteps& steps);

// Throws EnvironmentError where a snapshot's outer momentum of so many numbers is one of another net; 0: it has none.
void CheckVelocity(const StateLayout& layout, size_t numbers);

// What the net has now, and where the layout has it the outer momentum: this one, or zeros where it is empty. Throws
// EnvironmentError where that is one of another net.
Payload StateOf(const TrainingSteps& steps, const StateLayout& layout, bool with_history,
                std::span<const float> velocity = {});

// Puts a state into the net, with the history where it has one; false where it has none of a worker. Throws
// EnvironmentError where it is not as long as either.
bool SetState(TrainingSteps& steps, const StateLayout& layout, const Payload& state);

// Puts in a state, or what a worker made of one, but for the history, which stays as it is in the net. Throws
// EnvironmentError where it is too short.
void SetValues(TrainingSteps& steps, const StateLayout& layout, const Payload& values);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_TRAINING_SOLVER_LAYOUT_H_
