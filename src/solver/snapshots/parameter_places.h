// Which of a net's parameters those are that a snapshot names.
#ifndef CREMA_SOLVER_SNAPSHOTS_PARAMETER_PLACES_H_
#define CREMA_SOLVER_SNAPSHOTS_PARAMETER_PLACES_H_

#include <cstddef>
#include <vector>

#include "crema/net.h"
#include "crema/solver.pb.h"

namespace crema {

// For each name of the state the place of its parameter among the net's, whatever the order of layers: of layers of one
// name the first is the first, and a parameter that several layers use goes by each of their names. Empty where the
// state names none. Throws UserError at `state_path` for one that the net does not have.
std::vector<size_t> ParameterPlaces(const SolverState& state, const std::string& state_path, const Net& net);

}  // namespace crema

#endif  // CREMA_SOLVER_SNAPSHOTS_PARAMETER_PLACES_H_
