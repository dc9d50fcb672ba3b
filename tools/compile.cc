// crema compile: checks a net and shows what becomes of it.
#include <algorithm>
#include <iostream>

#include "base/listed.h"
#include "base/suggest.h"
#include "compiler/compiler.h"
#include "crema/error.h"
#include "crema/layer.h"
#include "device/device.h"
#include "report/assumed_inputs.h"
#include "report/dump.h"
#include "tools/commands.h"
#include "tools/flags.h"

DEFINE_string(dump, "shapes", "what to print");
DEFINE_bool(explain, false, "say why kernels were passed over");
DEFINE_bool(list_layers, false, "list the layer types");

namespace crema::tools {

namespace {

[[noreturn]] void Fail(const CommandLine& line, const std::string& message) {
  throw UserError(Location{line.program, 0, 0}, message);
}

std::string DumpOf(const CompiledNet& net) {
  if (FLAGS_dump == "graph") return DumpGraph(net);
  if (FLAGS_dump == "shapes") return DumpShapes(net);
  if (FLAGS_dump == "plan") return DumpPlan(net, FLAGS_explain);
  if (FLAGS_dump == "dot") return DumpDot(net);
  return DumpJson(net);
}

void CheckFlags(const CommandLine& line) {
  const std::vector<std::string> dumps = {"graph", "shapes", "plan", "dot", "json"};
  if (std::find(dumps.begin(), dumps.end(), FLAGS_dump) == dumps.end()) {
    Fail(line, "--dump=" + FLAGS_dump + ": expected graph, shapes, plan, dot or json" + DidYouMean(FLAGS_dump, dumps));
  }
  if (FLAGS_explain && !line.has("dump")) gflags::SetCommandLineOption("dump", "plan");
  if (FLAGS_explain && FLAGS_dump != "plan")
    Fail(line, "--explain belongs to --dump=plan, not to --dump=" + FLAGS_dump);
  if (FLAGS_model.empty()) Fail(line, "--model=FILE is missing (or --list_layers)");
}

int ListLayers() {
  for (const LayerType* type : LayerTypes()) {
    std::string text = type->name;
    if (!type->reads.empty()) text.resize(std::max<size_t>(text.size() + 2, 26), ' ');
    std::cout << text << Listed(type->reads, {.most = kAllNames}) << "\n";
  }
  return kExitSuccess;
}

int Run(const CommandLine& line) {
  if (FLAGS_list_layers) {
    if (line.given.size() > 1) Fail(line, "--list_layers stands alone");
    return ListLayers();
  }
  CheckFlags(line);
  NetOptions options = NetOptionsOf(line);
  options.backward = options.phase == TRAIN;
  options.context.device = &DeviceOf(line);
  const auto net = Compile(AssumeInputs(ReadModel(line), options.shapes, true), options);
  PrintWarnings(net->warnings);
  std::cout << DumpOf(*net);
  return kExitSuccess;
}

}  // namespace

const Command& CompileCommand() {
  Flag model = ModelFlag();
  model.required = false;  // --list_layers needs none
  static const Command command = {
      .name = "compile",
      .summary = "check a net and show what becomes of it, without running it",
      .usage = "--model=FILE [--phase=TRAIN|TEST] [--dump=WHAT] [flags] | --list_layers",
      .flags = {model,
                PhaseFlag("the phase to compile for [TRAIN]"),
                LevelFlag(),
                StageFlag(),
                PrecisionFlag(),
                MemoryLimitFlag(),
                SkipPassesFlag(),
                ShapeFlag(),
                {.name = "gpu",
                 .value = "ID",
                 .help = "compile for this GPU, as `crema device_query` counts them [the CPU]",
                 .may_be_empty = true},
                {.name = "dump",
                 .value = "shapes|graph|plan|dot|json",
                 .help = "shapes: a table with parameters, operations and memory; graph: values, parameters and "
                         "gradients; plan: steps, kernels and the memory of every tensor; dot: a drawing for Graphviz; "
                         "json: layers and shapes for programs"},
                {.name = "explain",
                 .value = "",
                 .help = "with --dump=plan, which it chooses where none is given: why other kernels were passed over, "
                         "which layers could not run as one, and the time each pass took"},
                {.name = "list_layers", .value = "", .help = "list the layer types and the messages they read"}},
      .examples =
          "examples, from the repository's root:\n"
          "  Shapes, parameters and memory of LeNet while it trains, without its data:\n"
          "    crema compile --model=model_zoo/lenet/train_val.prototxt \\\n"
          "      --shape=data=64,1,28,28\n"
          "  A drawing of the deployed net:\n"
          "    crema compile --model=model_zoo/lenet/deploy.prototxt --phase=TEST --dump=dot \\\n"
          "      | dot -Tsvg > lenet.svg\n"
          "  Which kernels were chosen, and why:\n"
          "    crema compile --model=model_zoo/lenet/deploy.prototxt --phase=TEST --explain\n\n"
          "No memory is allocated for the net, so nets larger than this machine can be looked at.\n",
      .run = Run,
  };
  return command;
}

}  // namespace crema::tools
