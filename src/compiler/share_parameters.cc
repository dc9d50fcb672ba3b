#include <map>

#include "compiler/compiler.h"
#include "graph/namesakes.h"

namespace crema {

namespace {

std::string Field(int i) { return "param[" + std::to_string(i) + "]"; }

// Lets `node` use the parameter that an earlier layer named.
void Join(Compilation& c, int n, int blob, const ParamSpec& spec, const ParamRequest& request, GraphParam& shared) {
  Node& node = c.net.graph.nodes[n];
  const Node& owner = c.net.graph.nodes[shared.owner];
  const bool permissive = spec.share_mode() == ParamSpec::PERMISSIVE;
  const std::string both =
      "layer \"" + node.name() + "\" shares parameter \"" + shared.shared_name + "\" of layer \"" + owner.name() + "\"";
  if (permissive ? request.shape.count() != shared.spec.shape.count() : request.shape != shared.spec.shape) {
    c.diagnostics.Error(c.Where(node, Field(blob)),
                        both + ", but needs " + request.shape.ToString() + " where that is " +
                            shared.spec.shape.ToString() +
                            (permissive ? "" : "; share_mode: PERMISSIVE compares only the number of elements"));
    return;
  }
  if (request.learnable != shared.learnable) {
    c.diagnostics.Error(c.Where(node, Field(blob)),
                        both + ", which is learnt in one of them and not in the other; give them names of their own");
    return;
  }
  const auto agree = [&](bool has, float value, bool& shared_has, float& shared_value, const char* name) {
    if (!has) return;
    if (shared_has && shared_value != value) {
      c.diagnostics.Error(c.Where(node, Field(blob)), both + " with another " + name + "; give it in one place only");
    }
    shared_has = true;
    shared_value = value;
  };
  // The rate of what is not learnt is 0 whatever a file says.
  agree(spec.has_lr_mult() && shared.learnable, spec.lr_mult(), shared.has_lr_mult, shared.lr_mult, "lr_mult");
  agree(spec.has_decay_mult(), spec.decay_mult(), shared.has_decay_mult, shared.decay_mult, "decay_mult");
  shared.users.push_back(n);
}

// How parameters lie in the net that they are borrowed from.
void Borrow(const Graph& from, Graph& graph) {
  const std::vector<int> matches = MatchParameters(from, graph);
  for (int i = 0; i < std::ssize(graph.params); ++i) {
    const int lent = matches[i];
    if (lent < 0) continue;
    graph.params[i].borrowed = true;
    graph.params[i].layout = from.params[lent].layout;
  }
}

}  // namespace

void ShareParameters(Compilation& c) {
  Graph& graph = c.net.graph;
  std::map<std::string, int> by_name;
  for (int n = 0; n < static_cast<int>(graph.nodes.size()); ++n) {
    Node& node = graph.nodes[n];
    const std::vector<ParamRequest>& requests = node.setup->params();
    if (node.param->param_size() > static_cast<int>(requests.size())) {
      c.diagnostics.Error(c.Where(node, Field(static_cast<int>(requests.size()))),
                          "layer \"" + node.name() + "\" (" + node.type->name + ") has " +
                              std::to_string(requests.size()) + " parameter(s), but " +
                              std::to_string(node.param->param_size()) + " param blocks are given");
    }
    for (int i = 0; i < static_cast<int>(requests.size()); ++i) {
      const ParamSpec& spec = i < node.param->param_size() ? node.param->param(i) : ParamSpec::default_instance();
      const int next = static_cast<int>(graph.params.size());
      if (!spec.name().empty()) {
        const auto [at, is_new] = by_name.emplace(spec.name(), next);
        if (!is_new) {
          node.params.push_back(at->second);
          Join(c, n, i, spec, requests[i], graph.params[at->second]);
          continue;
        }
      }
      GraphParam param;
      param.owner = n;
      param.owner_index = i;
      param.shared_name = spec.name();
      param.spec = {requests[i].shape, DType::kF32};
      param.filler = requests[i].filler;
      param.learnable = requests[i].learnable;
      param.lr_mult = param.learnable ? spec.lr_mult() : 0;
      param.decay_mult = spec.decay_mult();
      param.has_lr_mult = spec.has_lr_mult();
      param.has_decay_mult = spec.has_decay_mult();
      param.users.push_back(n);
      graph.params.push_back(std::move(param));
      node.params.push_back(next);
    }
  }
  if (c.shared) Borrow(c.shared->graph, graph);
}

}  // namespace crema
