// Update rules: how a gradient changes a parameter. One file a rule; each computes the values that are subtracted.
#ifndef CREMA_SOLVER_UPDATE_RULE_H_
#define CREMA_SOLVER_UPDATE_RULE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "crema/error.h"
#include "crema/solver.pb.h"

namespace crema {

enum class WeightDecay { kNone, kL1, kL2 };

// A run of elements of one parameter and what is done to it in one update.
struct UpdateChunk {
  float* data = nullptr;
  const float* gradient = nullptr;
  float* history[2] = {nullptr, nullptr};  // as many as the rule has
  int64_t count = 0;
  float gradient_scale = 1;  // clipping and 1 / iter_size
  WeightDecay decay_type = WeightDecay::kNone;
  float decay = 0;  // weight_decay * decay_mult
  float rate = 0;   // learning rate * lr_mult * RateFactor
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // Numbers kept for every parameter element: 1 or 2.
  virtual int histories() const { return 1; }
  // Multiplies the rate of the update that ends iteration `iteration` (bias correction).
  virtual float RateFactor(int iteration) const { return 1; }
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

}  // namespace crema

#endif  // CREMA_SOLVER_UPDATE_RULE_H_
