// Layers with parameters that a test net has and the train net has not: weights files fill them, and snapshots keep
// that.
#include <algorithm>
#include <map>
#include <ranges>

#include "graph/program.h"
#include "runtime/missing_weights.h"
#include "runtime/weights.h"
#include "solver/solver_impl.h"

namespace crema {

namespace {

std::vector<const Node*> LayersOfItsOwn(const Net& test_net) {
  const Graph& graph = test_net.compiled().graph;
  std::vector<const Node*> own;
  for (const Node& node : graph.nodes) {
    if (std::ranges::any_of(node.params, [&](int i) { return !graph.params[i].borrowed; })) own.push_back(&node);
  }
  return own;
}

}  // namespace

std::set<std::string> Solver::Impl::LoadIntoTestNets(const std::vector<LayerWeights>& weights) {
  std::set<std::string> loaded;
  for (const auto& test_net : test_nets) {
    std::set<std::string> own;
    for (const Node* node : LayersOfItsOwn(*test_net)) own.insert(node->name());
    std::vector<LayerWeights> of_own;
    std::ranges::copy_if(weights, std::back_inserter(of_own),
                         [&](const LayerWeights& layer) { return own.contains(layer.name); });
    if (of_own.empty()) continue;
    const std::vector<std::string> copied = test_net->LoadWeights(of_own).copied;
    loaded.insert(copied.begin(), copied.end());
  }
  given_to_tests.insert(loaded.begin(), loaded.end());
  return loaded;
}

std::vector<Solver::Impl::TestsLayer> Solver::Impl::GivenToTests() const {
  if (given_to_tests.empty()) return {};
  std::map<std::string, int> written;  // of layers of one name
  for (const Node& node : net->compiled().graph.nodes) {
    if (!node.params.empty()) ++written[node.name()];
  }
  std::vector<TestsLayer> given;
  for (const auto& test_net : test_nets) {
    std::map<std::string, int> numbers;
    for (const Node& node : test_net->compiled().graph.nodes) {
      if (node.params.empty() || !given_to_tests.contains(node.name())) continue;
      if (numbers[node.name()]++ < written[node.name()]) continue;
      ++written[node.name()];
      given.push_back({test_net.get(), &node});
    }
  }
  return given;
}

NetParameter Solver::Impl::ModelToWrite(bool with_gradients) const {
  NetParameter model = net->ToProto(with_gradients);
  for (const TestsLayer& layer : GivenToTests()) *model.add_layer() = WithWeights(*layer.net, *layer.node);
  return model;
}

void Solver::Impl::WarnOfTestsOwnLayers() const {
  for (size_t i = 0; i < test_nets.size(); ++i) {
    const CompiledNet& compiled = test_nets[i]->compiled();
    const Graph& graph = compiled.graph;
    // By any layer that shares it.
    const auto is_filled = [&](int param) {
      return graph.params[param].borrowed || std::ranges::any_of(graph.params[param].users, [&](int user) {
               return given_to_tests.contains(graph.nodes[user].name());
             });
    };
    std::vector<std::string> fresh;
    for (const Node* node : LayersOfItsOwn(*test_nets[i])) {
      if (!std::ranges::all_of(node->params, is_filled)) fresh.push_back(node->name());
    }
    for (const std::string& layer : NeededWeights(*test_nets[i], fresh)) {
      const auto node = std::ranges::find_if(graph.nodes, [&](const Node& one) { return one.name() == layer; });
      Warn(compiled.file.source ? compiled.file.source->Layer(node->index_in_file) : Location{},
           "layer \"" + layer + "\" (" + node->type->name + ") of test net #" + std::to_string(i) +
               " has parameters that the train net has not, and no weights file gave them: tests are of what its "
               "fillers make. Name it as the layer of the train net whose parameters it is to have, share them by a "
               "name (param { name: ... }), or give weights for it when training starts (--weights), which snapshots "
               "keep");
    }
  }
}

void Solver::Impl::CheckTournamentTests(const SolverFile& file) const {
  if (options.role != Role::kCoordinator || param.distributed().mode() != DistributedParameter::TOURNAMENT) return;
  if (test_nets.empty()) return;
  for (const Node* node : LayersOfItsOwn(*test_nets[0])) {
    if (!given_to_tests.contains(node->name())) continue;
    throw UserError(file.source ? file.source->Field("distributed") : Location{},
                    "mode is TOURNAMENT, where workers test, too, with the parameters of the train net: those of layer "
                    "\"" +
                        node->name() +
                        "\", which a weights file gave the test net alone, they have not. Put that layer into the "
                        "train net, too (lr_mult: 0 and a Silence layer behind it keep it as it is), or train in "
                        "another mode");
  }
}

}  // namespace crema
