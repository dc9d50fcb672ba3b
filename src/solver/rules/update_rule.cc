#include "solver/rules/update_rule.h"

namespace crema {

const std::vector<UpdateRuleType>& UpdateRuleTypes() {
  static const std::vector<UpdateRuleType> types = {
      {"SGD", {"momentum"}, MakeSgd},
      {"Nesterov", {"momentum"}, MakeNesterov},
      {"AdaGrad", {"delta"}, MakeAdaGrad},
      {"RMSProp", {"rms_decay", "delta"}, MakeRmsProp},
      {"AdaDelta", {"momentum", "delta"}, MakeAdaDelta},
      {"Adam", {"momentum", "momentum2", "delta"}, MakeAdam},
      {"AdamW", {"momentum", "momentum2", "delta"}, MakeAdamW},
  };
  return types;
}

const UpdateRuleType* FindUpdateRule(std::string_view name) {
  for (const UpdateRuleType& type : UpdateRuleTypes()) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

std::string UpdateRuleName(const SolverParameter& solver) {
  if (solver.has_type() || !solver.has_solver_type()) return solver.type();
  switch (solver.solver_type()) {
    case SolverParameter::SGD:
      return "SGD";
    case SolverParameter::NESTEROV:
      return "Nesterov";
    case SolverParameter::ADAGRAD:
      return "AdaGrad";
    case SolverParameter::RMSPROP:
      return "RMSProp";
    case SolverParameter::ADADELTA:
      return "AdaDelta";
    case SolverParameter::ADAM:
      return "Adam";
  }
  return solver.type();
}

}  // namespace crema
