#include "schema/upgrade.h"

namespace crema {

namespace {

// Early nets froze BatchNorm's statistics by hand, with one `param` per blob; the solver must never touch them.
void FreezeBatchNorm(NetParameter* net) {
  for (LayerParameter& layer : *net->mutable_layer()) {
    if (layer.type() != "BatchNorm" || layer.param_size() != 3) continue;
    for (ParamSpec& param : *layer.mutable_param()) {
      param.set_lr_mult(0);
      param.set_decay_mult(0);
    }
  }
}

template <typename List>
void Remove(List* list, int index) {
  if (index < list->size()) list->erase(list->begin() + index);
}

// Test net k is made of test_net_param, then test_net, then `net`, and has test_iter k. One that takes no batch
// measures nothing, and is left out where the lists agree.
void LeaveOutIdleTests(SolverParameter* solver, const PlaceOf& place, Diagnostics* diagnostics) {
  const bool generic = solver->has_net() || solver->has_net_param();
  const int named = solver->test_net_param_size() + solver->test_net_size(), counts = solver->test_iter_size();
  const int states = solver->test_state_size();
  if ((generic ? named > counts : named != counts) || (states > 0 && states != counts)) return;
  for (int i = 0; i < counts; ++i) {
    if (solver->test_iter(i) != 0) continue;
    diagnostics->Warning(place("test_iter[" + std::to_string(i) + "]"),
                         "test_iter is 0: test net #" + std::to_string(i) + " measures nothing, and is left out");
  }
  for (int i = counts; i-- > 0;) {
    if (solver->test_iter(i) != 0) continue;
    Remove(solver->mutable_test_iter(), i);
    Remove(solver->mutable_test_state(), i);
    const int params = solver->test_net_param_size();
    i < params ? Remove(solver->mutable_test_net_param(), i) : Remove(solver->mutable_test_net(), i - params);
  }
  // Else a second warning would tell the same.
  if (counts > 0 && solver->test_iter_size() == 0) solver->clear_test_interval();
}

}  // namespace

std::vector<LayerOrigin> UpgradeNet(NetParameter* net, const PlaceOf& place, Diagnostics* diagnostics) {
  std::vector<LayerOrigin> origins;
  if (net->layer_size() > 0 && net->layers_size() > 0) {
    const Location first = place("layer"), old = place("layers");
    const bool layers_later = old.line > first.line;
    diagnostics->Error(layers_later ? old : first,
                       "\"layer\" and the old \"layers\" cannot be mixed in one file; write every block as \"layer\"");
    return origins;
  }
  WarnAboutOldTransform(*net, place, diagnostics);
  for (int i = 0; i < net->layer_size(); ++i) origins.push_back({LayerOrigin::Syntax::kCurrent, i});
  if (net->layers_size() > 0) {
    UpgradeV0(net, place, diagnostics, &origins);
    if (diagnostics->has_errors()) return origins;
    UpgradeV1(net, place, diagnostics);
  }
  UpgradeVolumes(net, place, diagnostics, origins);
  UpgradeFields(net, place, diagnostics, origins);
  UpgradePython(net, place, diagnostics, origins);
  UpgradeInput(net, place, diagnostics, &origins);
  FreezeBatchNorm(net);
  return origins;
}

void UpgradeSolver(SolverParameter* solver, const PlaceOf& place, Diagnostics* diagnostics) {
  LeaveOutIdleTests(solver, place, diagnostics);
  if (!solver->has_solver_type()) return;
  static const char* const kNames[] = {"SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"};
  const std::string name = kNames[solver->solver_type()];
  const std::string old = SolverParameter::SolverType_Name(solver->solver_type());
  if (solver->has_type() && solver->type() != name) {
    diagnostics->Error(place("solver_type"), "solver_type: " + old + " contradicts type: \"" + solver->type() +
                                                 "\" at line " + std::to_string(place("type").line) +
                                                 "; remove solver_type, the old name of type");
    return;
  }
  diagnostics->Warning(place("solver_type"),
                       "solver_type: " + old + " is the old syntax; read as type: \"" + name + "\"");
  solver->set_type(name);
  solver->clear_solver_type();
}

}  // namespace crema
