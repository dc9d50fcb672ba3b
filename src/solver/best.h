// Which test was the best, and whether it is worth going on: the solver's `best`.
#ifndef CREMA_SOLVER_BEST_H_
#define CREMA_SOLVER_BEST_H_

#include <optional>
#include <string>
#include <vector>

#include "crema/files.h"
#include "crema/net.h"
#include "crema/observer.h"
#include "crema/solver.pb.h"

namespace crema {

// Early stopping as in Prechelt, "Early Stopping - But When?", 1998, with the criterion UP_s for s = patience.
class Best {
 public:
  // Throws UserError at best.output where the net has no such output, or one of several numbers.
  Best(const SolverFile& file, const Net& test_net);

  // What the output says in a test, and whether that is better than all before; not remembered yet.
  float ValueIn(const TestResult& result) const;
  bool IsBetter(float value) const;
  // Remembers a test; `written`: its parameters are kept as the best ones.
  void Add(int iteration, float value, bool written);
  // Whether the patience is over.
  bool exhausted() const { return param_.patience() > 0 && state_.tests_since() >= param_.patience(); }

  const std::string& output() const { return param_.output(); }
  bool has_value() const { return state_.has_value(); }
  const BestState& state() const { return state_; }
  void Restore(const BestState& state) { state_ = state; }

 private:
  BestParameter param_;
  bool higher_ = true;
  BestState state_;
};

}  // namespace crema

#endif  // CREMA_SOLVER_BEST_H_
