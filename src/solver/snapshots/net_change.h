// Whether a net computes what it did when a snapshot was written.
#ifndef CREMA_SOLVER_SNAPSHOTS_NET_CHANGE_H_
#define CREMA_SOLVER_SNAPSHOTS_NET_CHANGE_H_

#include <string>

#include "crema/net.h"
#include "crema/net.pb.h"

namespace crema {

// What a net computes, as SolverState.train_net says.
NetParameter ComputationOf(const Net& net);

struct NetChange {
  std::string text;  // a sentence about a layer, such as `layer "act" is of type TanH, and was ReLU`; empty: no change
  std::string layer;
};

// The first change. Where data comes from, what parameters begin with, how fast each learns and which engine computes
// are none.
NetChange ChangeOf(const NetParameter& before, const NetParameter& now);

}  // namespace crema

#endif  // CREMA_SOLVER_SNAPSHOTS_NET_CHANGE_H_
