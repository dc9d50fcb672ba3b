// crema time: how long each layer takes.
#include <iostream>

#include "graph/program.h"
#include "report/assumed_inputs.h"
#include "report/probe.h"
#include "report/timing_table.h"
#include "tools/commands.h"
#include "tools/flags.h"

namespace crema::tools {

namespace {

constexpr int kWarmUp = 2;  // passes that create threads and touch memory for the first time

// Extent of the first axis of the net's first blob.
int64_t BatchSize(const Net& net) {
  for (const Node& node : net.compiled().graph.nodes) {
    for (int v : node.tops) {
      const Shape& shape = net.compiled().graph.values[v].spec.shape;
      return shape.axes() > 0 ? shape[0] : 1;
    }
  }
  return 0;
}

int Run(const CommandLine& line) {
  RefuseGpu(line);
  ApplyThreads();
  NetOptions options = NetOptionsOf(line);
  options.backward = options.phase == TRAIN;
  Net net(AssumeInputs(ReadModel(line), options.shapes, false), options);
  PrintWarnings(net.warnings());
  FillInputs(net);
  if (!FLAGS_weights.empty()) LoadWeightsFlag(line, net);
  net.Time(kWarmUp, options.backward);
  const std::vector<LayerTiming> timings = net.Time(FLAGS_iterations, options.backward);
  std::cout << net.name() << ", phase " << Phase_Name(options.phase) << ", medians of " << FLAGS_iterations
            << " passes\n\n"
            << TimingTable(timings, BatchSize(net));
  return kExitSuccess;
}

}  // namespace

const Command& TimeCommand() {
  static const Command command = {
      .name = "time",
      .summary = "measure how long each layer of a net takes, forward and backward",
      .usage = "--model=FILE [flags]",
      .flags = {ModelFlag(), WeightsFlag(false), IterationsFlag("passes to measure, after two that are not"),
                PhaseFlag("TRAIN times backward passes too [TRAIN]"), LevelFlag(), StageFlag(), ShapeFlag(),
                PrecisionFlag(), SkipPassesFlag(), ThreadsFlag(), GpuFlag()},
      .examples =
          "examples, from the repository's root:\n"
          "  What a training iteration of LeNet is made of:\n"
          "    crema time --model=model_zoo/lenet/train_val.prototxt\n"
          "  Classifying one image on one thread:\n"
          "    crema time --model=model_zoo/lenet/deploy.prototxt --phase=TEST \\\n"
          "      --shape=data=1,1,28,28 --threads=1\n\n"
          "Prints a table to stdout: the median time of each layer, its share of the whole, and\n"
          "the kernel that was chosen for it. Data layers read their data and are timed too, unless\n"
          "--shape is given for each of their tops, which leaves them out.\n",
      .run = Run,
  };
  return command;
}

}  // namespace crema::tools
