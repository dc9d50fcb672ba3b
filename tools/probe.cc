// crema probe: the numbers of one pass on reproducible inputs.
#include "report/probe.h"

#include <iostream>

#include "tools/commands.h"
#include "tools/flags.h"

DEFINE_bool(backward, false, "run a backward pass too");
DEFINE_int32(head, 8, "leading values to print");

namespace crema::tools {

namespace {

int Run(const CommandLine& line) {
  ApplyThreads();
  const NetOptions net_options = NetOptionsOf(line);
  ProbeOptions options;
  options.phase = net_options.phase;
  options.level = net_options.level;
  options.stages = net_options.stages;
  options.shapes = net_options.shapes;
  options.backward = FLAGS_backward;
  options.head = FLAGS_head;
  const WeightsFiles weights = WeightsOf(line, FLAGS_weights);
  if (!FLAGS_weights.empty()) options.weights = weights.layers();
  std::string json;
  RefuseUnused(line, weights, Probe(ReadModel(line), options, &json).weights);
  std::cout << json;
  return kExitSuccess;
}

}  // namespace

const Command& ProbeCommand() {
  static const Command command = {
      .name = "probe",
      .summary = "run one pass on reproducible numbers and print what every blob holds",
      .usage = "--model=FILE [--phase=TRAIN|TEST] [--backward] [flags]",
      .flags =
          {ModelFlag(),
           WeightsFlag(false),
           PhaseFlag("the phase to compile for [TRAIN]"),
           {.name = "backward", .value = "", .help = "also run a backward pass and print parameter gradients"},
           {.name = "head", .value = "N", .help = "leading values of each blob to print", .min = 0, .max = 1000000},
           LevelFlag(),
           StageFlag(),
           ShapeFlag(),
           ThreadsFlag()},
      .examples =
          "examples, from the repository's root:\n"
          "  Every blob and gradient of LeNet, to compare with another program or machine:\n"
          "    crema probe --model=model_zoo/lenet/train_val.prototxt --backward \\\n"
          "      --shape=data=64,1,28,28 --shape=label=64\n"
          "  What a trained net makes of the same input:\n"
          "    crema probe --model=model_zoo/lenet/deploy.prototxt --phase=TEST \\\n"
          "      --weights=model_zoo/lenet/lenet.caffemodel\n\n"
          "No data is read: inputs and, without --weights, parameters are filled with values that\n"
          "depend on the element's index only (docs/commands.md has the formula). JSON to stdout.\n",
      .run = Run,
  };
  return command;
}

}  // namespace crema::tools
