// Update rules: how a gradient changes a parameter. One file a rule; each computes the values that are subtracted.
#ifndef CREMA_SOLVER_RULES_UPDATE_RULE_H_
#define CREMA_SOLVER_RULES_UPDATE_RULE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "crema/solver.pb.h"
#include "ops/updates/update.h"

namespace crema {

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // Numbers kept for every parameter element: 1 or 2.
  virtual int histories() const { return 1; }
  // Multiplies the rate of the update that ends iteration `iteration` (bias correction).
  virtual float RateFactor(int iteration) const { return 1; }
  // What the updates that follow take for `momentum`, where momentum_policy is read.
  virtual void SetMomentum(float momentum) {}
  // Whether weight decay is WeightDecay::kDecoupled.
  virtual bool decouples_decay() const { return false; }
  virtual UpdateFormula formula() const = 0;
  // Thread-safe on disjoint chunks.
  virtual void Update(const UpdateChunk& chunk) const = 0;
};

// What the table of rules knows of one.
struct UpdateRuleType {
  std::string name;                 // `type` in the solver file
  std::vector<std::string> fields;  // of SolverParameter, those it reads
  std::unique_ptr<UpdateRule> (*make)(const SolverParameter& solver);
};

const std::vector<UpdateRuleType>& UpdateRuleTypes();
// Null if there is none of this name.
const UpdateRuleType* FindUpdateRule(std::string_view name);
// `type`, or the old `solver_type` where only that is set.
std::string UpdateRuleName(const SolverParameter& solver);

// Each in its own file.
std::unique_ptr<UpdateRule> MakeSgd(const SolverParameter& solver);
std::unique_ptr<UpdateRule> MakeNesterov(const SolverParameter& solver);
std::unique_ptr<UpdateRule> MakeAdaGrad(const SolverParameter& solver);
std::unique_ptr<UpdateRule> MakeRmsProp(const SolverParameter& solver);
std::unique_ptr<UpdateRule> MakeAdaDelta(const SolverParameter& solver);
std::unique_ptr<UpdateRule> MakeAdam(const SolverParameter& solver);
std::unique_ptr<UpdateRule> MakeAdamW(const SolverParameter& solver);

}  // namespace crema

#endif  // CREMA_SOLVER_RULES_UPDATE_RULE_H_
