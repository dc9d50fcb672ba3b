#include "compiler/compiler.h"

#include <chrono>

namespace crema {

const std::vector<Pass>& Passes() {
  static const std::vector<Pass> passes = {
      {"select_layers", "keep the layers of this phase, level and stages", SelectLayers},
      {"resolve_blobs", "turn blob names into values", ResolveBlobs},
      {"infer_shapes", "check every layer and learn its shapes", InferShapes},
      {"share_parameters", "join parameters of one name", ShareParameters},
      {"find_gradients", "decide which gradients are of use", FindGradients},
      {"choose_kernels", "choose kernels, workspace and saved tensors", ChooseKernels},
      {"schedule", "lay out the steps", Schedule},
      {"plan_memory", "place every tensor in one arena", PlanMemory},
  };
  return passes;
}

std::unique_ptr<CompiledNet> Compile(const NetFile& file, const NetOptions& options) {
  auto net = std::make_unique<CompiledNet>();
  net->file = file;
  net->warnings = file.warnings;
  Compilation c{options, *net, {}};
  for (const Pass& pass : Passes()) {
    const auto start = std::chrono::steady_clock::now();
    pass.run(c);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    net->pass_seconds.emplace_back(pass.name, seconds.count());
    c.diagnostics.ThrowIfErrors();
    net->graph.Verify();
  }
  for (const Diagnostic& d : c.diagnostics.list()) net->warnings.push_back(d);
  return net;
}

}  // namespace crema
