#include "compiler/compiler.h"

namespace crema {

void LayOutWeights(Compilation& c) {
  if (!c.options.backward || c.options.keep_all) return;
  Graph& graph = c.net.graph;
  for (const Node& node : graph.nodes) {
    for (size_t i = 0; i < node.params.size(); ++i) {
      GraphParam& param = graph.params[node.params[i]];
      param.may_lay_out = node.param_grads[i] && param.users.size() == 1 && !param.borrowed;
    }
  }
}

}  // namespace crema
