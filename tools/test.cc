// crema test: the mean outputs of a net over batches.
#include <glog/logging.h>

#include "crema/error.h"
#include "report/evaluation.h"
#include "runtime/refuse_inputs.h"
#include "tools/commands.h"
#include "tools/flags.h"

namespace crema::tools {

namespace {

int Run(const CommandLine& line) {
  ApplyThreads();
  NetOptions options = NetOptionsOf(line);
  options.phase = TEST;
  options.backward = false;
  options.context.device = &DeviceOf(line);
  Net net(ReadModel(line), options);
  PrintWarnings(net.warnings());
  RefuseInputs(net, "the net");
  LoadWeightsFlag(line, net);
  LOG(INFO) << "Running for " << FLAGS_iterations << " iterations.";
  Evaluate(net, FLAGS_iterations, [](const std::string& text) { LOG(INFO) << text; });
  return kExitSuccess;
}

}  // namespace

const Command& TestCommand() {
  static const Command command = {
      .name = "test",
      .summary = "score a net: the means of its outputs over batches of its TEST data",
      .usage = "--model=FILE --weights=FILE [flags]",
      .flags = {ModelFlag(), WeightsFlag(true), IterationsFlag("batches to run; a solver's test_iter is not read"),
                LevelFlag(), StageFlag(), PrecisionFlag(), SkipPassesFlag(), ThreadsFlag(), DataThreadsFlag(),
                GpuFlag()},
      .examples =
          "examples, from the repository's root:\n"
          "  Score a trained LeNet on all 10000 test images (100 batches of 100):\n"
          "    crema test --model=model_zoo/lenet/train_val.prototxt \\\n"
          "      --weights=build/fashion_mnist/lenet_iter_10000.caffemodel --iterations=100\n\n"
          "Prints every batch's outputs, then their means, to stderr in Caffe's words.\n",
      .run = Run,
  };
  return command;
}

}  // namespace crema::tools
