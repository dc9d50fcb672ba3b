// Which test was the best, and whether it is worth going on: the solver's `best`.
#ifndef CREMA_SOLVER_SNAPSHOTS_BEST_H_
#define CREMA_SOLVER_SNAPSHOTS_BEST_H_

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
  // Throws UserError at best.output where the net has no such output, or one of several numbers. Warns where it is made
  // neither of a loss nor of a measure.
  Best(const SolverFile& file, const Net& test_net, std::vector<Diagnostic>* warnings);

  // A test whose parameters could not be written.
  struct Lost {
    int iteration = 0;
    float value = 0;
  };

  // What the output says in a test, and whether that is better than in the one whose parameters are kept, so that these
  // are to be written over; not remembered yet.
  float ValueIn(const TestResult& result) const;
  bool IsBetter(float value) const;
  // Remembers a test; `written`: its parameters are kept as the best ones. One that is better than all before renews
  // the patience, written or not.
  void Add(int iteration, float value, bool written);
  // Of the test that was added last, as not written: its parameters are kept after all.
  void AddWritten(int iteration, float value);
  // Whether the patience is over.
  bool exhausted() const { return param_.patience() > 0 && state_.tests_since() >= param_.patience(); }

  const std::string& output() const { return param_.output(); }
  // Of the test whose parameters are kept.
  bool has_value() const { return state_.has_value(); }
  // For snapshots, and from one: of a test of the same output.
  const BestState& state() const { return state_; }
  void Restore(const BestState& state);
  // The best of all tests, where it is better than that.
  std::optional<Lost> lost() const;

 private:
  bool IsBetterThan(float other, float value) const { return higher_ ? value > other : value < other; }
  void ForgetLost();

  BestParameter param_;
  bool higher_ = true;
  BestState state_;
};

}  // namespace crema

#endif  // CREMA_SOLVER_SNAPSHOTS_BEST_H_
