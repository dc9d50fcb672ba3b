// What is allowed in a training, and seldom meant.
#ifndef CREMA_SOLVER_CHECKS_LIKELY_MISTAKES_H_
#define CREMA_SOLVER_CHECKS_LIKELY_MISTAKES_H_

#include <vector>

#include "crema/error.h"
#include "solver/checks/mistake_finder.h"

namespace crema {

// Warnings and notes about a solver and its nets, before they learn.
std::vector<Diagnostic> LikelyMistakes(const TrainedNets& nets);

}  // namespace crema

#endif  // CREMA_SOLVER_CHECKS_LIKELY_MISTAKES_H_
