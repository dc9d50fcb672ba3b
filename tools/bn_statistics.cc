// crema bn_statistics: what layers that normalise by the batch see of the training data.
#include <gflags/gflags.h>

#include <iostream>

#include "base/output_path.h"
#include "base/progress_line.h"
#include "crema/error.h"
#include "inference/batch_statistics.h"
#include "solver/snapshots/snapshot.h"
#include "tools/commands.h"
#include "tools/flags.h"

DECLARE_string(output);
DECLARE_string(weights);
DECLARE_bool(force);
DECLARE_int32(iterations);

namespace crema::tools {

namespace {

[[noreturn]] void Fail(const CommandLine& line, const std::string& message) {
  throw UserError(Location{line.program}, message);
}

uint64_t BatchesOf(const CommandLine& line, Net& net) {
  if (line.has("iterations")) return static_cast<uint64_t>(FLAGS_iterations);
  const DataExtent extent = ExtentOf(net);
  if (extent.epoch == 0) {
    Fail(line,
         "the data layers of the net do not know how many records there are; say how many batches to run with "
         "--iterations=N");
  }
  return (extent.epoch + extent.batch - 1) / extent.batch;
}

int Run(const CommandLine& line) {
  if (!FLAGS_output.ends_with(".caffemodel")) {
    Fail(line, "--output=" + FLAGS_output + ": expected a name that ends in .caffemodel");
  }
  CheckOutputFile(FLAGS_output, FLAGS_force, CommaList(line, "weights", FLAGS_weights));
  ApplyThreads();
  NetOptions options = NetOptionsOf(line);
  options.phase = TRAIN;
  options.backward = false;
  options.keep_all = true;
  options.needs_data = true;
  options.context.device = &DeviceOf(line);
  Net net(ReadModel(line), options);
  PrepareNet(line, net);
  BatchStatistics statistics(net);
  const uint64_t batches = BatchesOf(line, net);
  {
    ProgressLine progress("batches");
    progress.SetTotal(static_cast<int64_t>(batches));
    for (uint64_t i = 0; i < batches; ++i) {
      net.Forward();
      statistics.Add();
      progress.Add(1, 0);
    }
  }
  WriteModel(FLAGS_output, statistics.Weights());
  std::cout << FLAGS_output << ": " << statistics.layers() << (statistics.layers() == 1 ? " layer" : " layers")
            << ", statistics of " << batches << (batches == 1 ? " batch" : " batches") << "\n";
  if (const int segnet = statistics.layers_of_segnet(); segnet > 0) {
    std::cout << segnet << " of SegNet (BN): the net that uses these weights has bn_mode: INFERENCE in "
              << (segnet == 1 ? "it" : "them") << "\n";
  }
  return kExitSuccess;
}

Command Make() {
  Flag iterations = IterationsFlag("batches to run [the data once]");
  iterations.has_default = false;
  return {
      .name = "bn_statistics",
      .summary = "gather the statistics of training data that BN and BatchNorm use in TEST",
      .usage = "--model=FILE --weights=FILE --output=FILE.caffemodel [flags]",
      .flags = {ModelFlag(), WeightsFlag(true), MissingFlag(),
                Flag{.name = "output",
                     .value = "FILE.caffemodel",
                     .help = "the weights with the statistics",
                     .required = true},
                Flag{.name = "force", .value = "", .help = "replace --output where it exists already"}, iterations,
                LevelFlag(), StageFlag(), ThreadsFlag(), DataThreadsFlag(), GpuFlag()},
      .examples =
          "Runs the net in its TRAIN phase, on its own data and without learning, and takes the mean and the\n"
          "variance of what each layer that normalises by the batch gets. SegNet's BN has them in its slope and\n"
          "bias then, for nets with bn_mode: INFERENCE; of BatchNorm and BN they replace the running ones.\n\n"
          "example:\n"
          "  crema bn_statistics --model=segnet_train.prototxt --weights=segnet_iter_40000.caffemodel \\\n"
          "    --output=segnet_inference.caffemodel\n",
      .run = Run,
  };
}

}  // namespace

const Command& BnStatisticsCommand() {
  static const Command command = Make();
  return command;
}

}  // namespace crema::tools
