#include "distributed/training/solver_for_workers.h"

#include <set>
#include <string>

#include "distributed/averaging/round_formula.h"
#include "graph/program.h"
#include "solver/nets.h"

namespace crema {

namespace {

// Those that are in this graph only: workers need not have the data of others.
NetParameter LayersOf(const NetParameter& net, const Graph& graph) {
  std::set<int> used;
  for (const Node& node : graph.nodes) {
    if (node.members.empty()) used.insert(node.index_in_file);
  }
  NetParameter kept = net;
  kept.clear_layer();
  kept.clear_debug_info();
  for (const int index : used) *kept.add_layer() = net.layer(index);
  return kept;
}

}  // namespace

SolverParameter SolverForWorkers(const SolverFile& file, const SolverOptions& options, Solver& coordinator) {
  NetPlans plans = PlanNets(file, options, Context{});
  SolverParameter solver = file.solver;
  *solver.mutable_train_net_param() = LayersOf(plans.train.file.net, coordinator.net().compiled().graph);
  NetState& state = *solver.mutable_train_state();
  state.set_level(plans.train.options.level);
  state.clear_stage();
  for (const std::string& stage : plans.train.options.stages) state.add_stage(stage);
  // What only the coordinator does, and what stays with it.
  solver.clear_net();
  solver.clear_net_param();
  solver.clear_train_net();
  solver.clear_test_net();
  solver.clear_test_net_param();
  solver.clear_test_state();
  solver.clear_test_iter();
  if (solver.distributed().mode() == DistributedParameter::TOURNAMENT) {
    // Workers test, too.
    *solver.add_test_net_param() = LayersOf(plans.tests[0].file.net, coordinator.test_net(0).compiled().graph);
    NetState& test_state = *solver.add_test_state();
    test_state.set_level(plans.tests[0].options.level);
    for (const std::string& stage : plans.tests[0].options.stages) test_state.add_stage(stage);
    solver.add_test_iter(file.solver.test_iter(0));
  } else {
    solver.clear_test_interval();
    solver.clear_eval_type();
    solver.clear_ap_version();
  }
  solver.clear_test_initialization();
  solver.clear_test_compute_loss();
  solver.clear_show_per_class_result();
  solver.clear_weights();
  solver.clear_snapshot();
  solver.clear_snapshot_prefix();
  solver.clear_snapshot_keep();
  solver.clear_snapshot_after_train();
  solver.clear_snapshot_format();
  solver.clear_snapshot_diff();
  solver.clear_display();
  solver.clear_average_loss();
  solver.clear_debug_info();
  solver.clear_best();
  // Each worker has a device of its own, and the seed that was drawn or restored.
  solver.clear_solver_mode();
  solver.clear_device_id();
  solver.clear_random_seed();
  DistributedParameter& distributed = *solver.mutable_distributed();
  // Of which the workers' number may be a part.
  if (distributed.mode() == DistributedParameter::ELASTIC) {
    distributed.set_elastic_rate(static_cast<float>(ElasticRate(file.solver.distributed())));
  }
  distributed.clear_security();
  distributed.clear_endpoint();
  distributed.clear_local_workers();
  distributed.clear_expected_workers();
  distributed.clear_min_workers();
  distributed.clear_max_workers();
  distributed.clear_join_timeout_ms();
  return solver;
}

}  // namespace crema
