// crema test: the mean outputs of a net over batches.
#include <gflags/gflags.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "crema/error.h"
#include "crema/solver.h"
#include "report/evaluation.h"
#include "solver/checks/tested_data.h"
#include "tools/commands.h"
#include "tools/flags.h"

DEFINE_string(ap_version, "Integral", "how precision and recall become average precision");

namespace crema::tools {

namespace {

ApVersion ApVersionOfFlag(const CommandLine& line) {
  const std::optional<ApVersion> version = ApVersionOf(FLAGS_ap_version);
  if (!version) {
    throw UserError(Location{line.program, 0, 0},
                    "--ap_version=" + FLAGS_ap_version + ": 11point, MaxIntegral or Integral was expected");
  }
  return *version;
}

// What to tell where the batches did not read each record as often; empty otherwise, and where it is not known how many
// records there are.
std::string UnevenlyRead(const Net& net, int batches) {
  const std::optional<DataLayer> data = LongestData(net);
  if (!data) return "";
  const auto [epoch, batch] = std::pair(data->extent.epoch, data->extent.batch);
  const uint64_t read = batch * static_cast<uint64_t>(batches);
  if (read % epoch == 0 || static_cast<uint64_t>(batches) == data->batches) return "";
  const uint64_t times = data->batches * batch / epoch, once_more = data->batches * batch % epoch;
  const std::string remedy =
      "--iterations=" + std::to_string(data->batches) + " reads all of them" +
      (times > 1 ? ", each " + std::to_string(times) + " times" : "") +
      (once_more == 0 ? "" : ", the first " + std::to_string(once_more) + (times > 1 ? " once more" : " twice"));
  if (read < epoch) {
    return "these are means of the first " + std::to_string(read) + " of the " + std::to_string(epoch) +
           " records of layer \"" + data->layer + "\"; " + remedy;
  }
  return "these are means of " + std::to_string(read) + " records, but layer \"" + data->layer + "\" has " +
         std::to_string(epoch) + ", some of which count more often than others; " + remedy;
}

int Run(const CommandLine& line) {
  const ApVersion ap_version = ApVersionOfFlag(line);
  ApplyThreads();
  NetOptions options = NetOptionsOf(line);
  options.phase = TEST;
  options.backward = false;
  options.needs_data = true;
  options.context.device = &DeviceOf(line);
  Net net(ReadModel(line), options);
  PrepareNet(line, net);
  LogDevices({options.context.device});
  LOG(INFO) << "Running for " << FLAGS_iterations << " iterations.";
  const Evaluation result = Evaluate(
      net, FLAGS_iterations, [](const std::string& text) { LOG(INFO) << text; }, ap_version);
  const std::string uneven = UnevenlyRead(net, FLAGS_iterations);
  if (!uneven.empty()) LOG(WARNING) << uneven;
  const auto odd = std::find_if(result.outputs.begin(), result.outputs.end(), [](const OutputValue& output) {
    return output.loss_weight != 0 && !std::isfinite(output.value);
  });
  if (odd != result.outputs.end()) {
    throw NotFinite("the loss \"" + odd->name +
                    "\" is not finite: look for such numbers in the data (scale and mean in "
                    "transform_param), or use other weights");
  }
  return kExitSuccess;
}

}  // namespace

const Command& TestCommand() {
  static const Command command = {
      .name = "test",
      .summary = "score a net: the means of its outputs over batches of its TEST data",
      .usage = "--model=FILE --weights=FILE [flags]",
      .flags = {ModelFlag(), WeightsFlag(true), MissingFlag(),
                IterationsFlag("batches to run; a solver's test_iter is not read"),
                Flag{.name = "ap_version",
                     .value = "11point|MaxIntegral|Integral",
                     .help = "of detectors: 11point is that of PASCAL VOC 2007, MaxIntegral of VOC 2012"},
                LevelFlag(), StageFlag(), PrecisionFlag(), SkipPassesFlag(), ThreadsFlag(), DataThreadsFlag(),
                GpuFlag()},
      .examples =
          "examples, from the repository's root:\n"
          "  Score a trained LeNet on all 10000 test images (100 batches of 100):\n"
          "    crema test --model=model_zoo/lenet/train_val.prototxt \\\n"
          "      --weights=model_zoo/lenet/lenet.caffemodel --iterations=100\n\n"
          "Prints every batch's outputs, then their means, to stderr in Caffe's words; of a DetectionEvaluate\n"
          "layer the average precision of each class and their mean. A warning says where the batches leave\n"
          "records out, or read some of them more often than others.\n",
      .run = Run,
  };
  return command;
}

}  // namespace crema::tools
