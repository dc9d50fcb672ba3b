#include "solver/checks/update_rule_check.h"

#include <algorithm>
#include <cmath>

#include "base/listed.h"
#include "base/number_text.h"
#include "base/suggest.h"
#include "solver/rules/update_rule.h"

namespace crema {

namespace {

void CheckLocalRates(const SolverParameter& solver, const std::string& rule, SolverFields& fields) {
  fields.Word("larc_policy", solver.larc_policy(), {"scale", "clip"});
  if (!(solver.larc_eta() > 0 && std::isfinite(solver.larc_eta()))) {
    fields.Error("larc_eta", "larc_eta is " + FormatNumber(solver.larc_eta()) + " but must be above 0");
  }
  if (solver.larc() && rule != "SGD" && rule != "Nesterov") {
    fields.Error("larc", "larc is for solver types \"SGD\" and \"Nesterov\", and type is \"" + rule +
                             "\", whose updates do not grow with the gradient; remove it, or change type");
  }
  for (const char* field : {"larc_policy", "larc_eta"}) {
    if (fields.Has(field) && !solver.larc()) {
      fields.Warn(field, std::string(field) + " has no effect without larc: true");
    }
  }
}

void CheckMomentumPolicy(const SolverParameter& solver, const std::string& rule, SolverFields& fields) {
  const std::string& policy = solver.momentum_policy();
  fields.Word("momentum_policy", policy, {"fixed", "poly", "opt"});
  fields.Range("max_momentum", solver.max_momentum(), 0, 1);
  fields.NotNegative("momentum_power", solver.momentum_power());
  if (policy != "fixed" && rule != "SGD" && rule != "Nesterov") {
    fields.Error("momentum_policy", "momentum_policy is for solver types \"SGD\" and \"Nesterov\", and type is \"" +
                                        rule + "\"; remove it, or change type");
  }
  if (policy == "opt" && fields.Has("momentum")) {
    fields.Warn("momentum", "momentum has no effect with momentum_policy: \"opt\"");
  }
  if (fields.Has("max_momentum") && policy == "fixed")
    fields.Warn("max_momentum", "max_momentum has no effect without momentum_policy");
  if (fields.Has("momentum_power") && policy != "poly") {
    fields.Warn("momentum_power", "momentum_power has no effect without momentum_policy: \"poly\"");
  }
}

}  // namespace

void CheckUpdateRule(const SolverParameter& solver, SolverFields& fields) {
  if (solver.has_type() && solver.has_solver_type()) {
    fields.Error("solver_type", "type and solver_type are both set; keep type, solver_type is its old form");
  }
  const std::string name = UpdateRuleName(solver);
  const UpdateRuleType* rule = FindUpdateRule(name);
  if (rule == nullptr) {
    std::vector<std::string> names;
    for (const UpdateRuleType& type : UpdateRuleTypes()) names.push_back(type.name);
    fields.Error("type", "unknown solver type \"" + name + "\"" + DidYouMean(name, names) + "; it may be " +
                             Listed(names, {.most = kAllNames}));
  } else {
    const auto reads = [&](const char* field) {
      return std::find(rule->fields.begin(), rule->fields.end(), field) != rule->fields.end();
    };
    for (const char* field : {"momentum2", "rms_decay", "delta"}) {
      if (fields.Has(field) && !reads(field)) {
        fields.Warn(field, std::string(field) + " is not read by solver type \"" + name + "\"");
      }
    }
    if (!reads("momentum") && solver.momentum() != 0) {
      fields.Error("momentum", "momentum is " + FormatNumber(solver.momentum()) + " but solver type \"" + name +
                                   "\" does not use it; remove it or set it to 0");
    } else {
      fields.Range("momentum", solver.momentum(), 0, 1);
    }
    if (reads("momentum2")) fields.Range("momentum2", solver.momentum2(), 0, 1);
    if (reads("rms_decay")) fields.Range("rms_decay", solver.rms_decay(), 0, 1);
    if (reads("delta") && !(solver.delta() > 0 && std::isfinite(solver.delta()))) {
      fields.Error("delta",
                   "delta is " + FormatNumber(solver.delta()) + " but must be above 0: it keeps a division finite");
    }
  }
  CheckLocalRates(solver, name, fields);
  CheckMomentumPolicy(solver, name, fields);
  fields.NotNegative("weight_decay", solver.weight_decay());
  if (solver.regularization_type() != "L1" && solver.regularization_type() != "L2") {
    fields.Error("regularization_type",
                 "unknown regularization_type \"" + solver.regularization_type() + "\"; it may be L1 or L2");
  } else if (name == "AdamW" && solver.regularization_type() == "L1") {
    fields.Error("regularization_type",
                 "solver type \"AdamW\" takes weight decay from the values themselves, in proportion; remove "
                 "regularization_type, or use type: \"Adam\" for L1");
  }
  // Caffe takes every negative value as "off".
  if (std::isnan(solver.clip_gradients()) || solver.clip_gradients() == 0) {
    fields.Error("clip_gradients",
                 "clip_gradients is " + FormatNumber(solver.clip_gradients()) +
                     ", which would stop all learning; give the largest norm of a gradient, or remove it");
  }
}

}  // namespace crema
