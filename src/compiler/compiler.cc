#include "compiler/compiler.h"

#include <algorithm>
#include <string_view>

#include "base/listed.h"
#include "base/stopwatch.h"

namespace crema {

const std::vector<Pass>& Passes() {
  static const std::vector<Pass> passes = {
      {"select_layers", "keep the layers of this phase, level and stages", SelectLayers},
      {"resolve_blobs", "turn blob names into values", ResolveBlobs},
      {"infer_shapes", "check every layer and learn its shapes", InferShapes},
      {"share_parameters", "join parameters of one name", ShareParameters},
      {"find_gradients", "decide which gradients are of use", FindGradients},
      {"fuse_layers", "let chains of layers run as one", FuseLayers, true},
      {"choose_layouts", "decide which images lie channels last", ChooseLayouts, true},
      {"lay_out_weights", "decide which weights may lie as their kernel wants", LayOutWeights, true},
      {"split_batch", "run chains of layers on a few items of the batch at a time", SplitBatch, true},
      {"choose_kernels", "choose kernels, workspace and saved tensors", ChooseKernels},
      {"choose_recompute", "decide what runs again in the backward pass", ChooseRecompute},
      {"schedule", "lay out the steps", Schedule},
      {"plan_memory", "place every tensor in one arena", PlanMemory},
  };
  return passes;
}

namespace {

bool Skipped(const Pass& pass, const NetOptions& options) {
  return std::find(options.skip_passes.begin(), options.skip_passes.end(), pass.name) != options.skip_passes.end();
}

void CheckSkipped(const NetOptions& options) {
  for (const std::string& name : options.skip_passes) {
    std::vector<std::string_view> optional;
    for (const Pass& pass : Passes()) {
      if (pass.optional) optional.push_back(pass.name);
    }
    if (std::find(optional.begin(), optional.end(), name) == optional.end()) {
      throw UserError("there is no pass \"" + name +
                      "\" that can be skipped; these can: " + Listed(optional, {.most = kAllNames}));
    }
  }
}

}  // namespace

std::unique_ptr<CompiledNet> Compile(const NetFile& file, const NetOptions& options, const CompiledNet* shared) {
  CheckSkipped(options);
  auto net = std::make_unique<CompiledNet>();
  net->file = file;
  net->warnings = file.warnings;
  Compilation c{options, *net, shared};
  for (const Pass& pass : Passes()) {
    const Stopwatch watch;
    if (!pass.optional || !Skipped(pass, options)) pass.run(c);
    net->pass_seconds.emplace_back(pass.name, watch.Seconds());
    c.diagnostics.ThrowIfErrors();
    net->graph.Verify();
  }
  VerifyMemory(c);
  const auto& skipped = options.skip_passes;
  const bool halves = options.precision == Precision::kBF16 || options.precision == Precision::kFP16;
  if (halves && std::find(skipped.begin(), skipped.end(), "choose_layouts") != skipped.end()) {
    c.diagnostics.Warning({},
                          "only images that lie channels last have 16 bits, and choose_layouts, which brings them "
                          "there, is left out; going on in f32");
  }
  for (const Diagnostic& d : c.diagnostics.list()) net->warnings.push_back(d);
  return net;
}

}  // namespace crema
