// compute_image_mean: the mean image of a database, and mean and deviation of its channels.
#include <gflags/gflags.h>

#include <cstdio>

#include "base/output_path.h"
#include "crema/error.h"
#include "data/databases/image_statistics.h"
#include "data/databases/mean_file.h"
#include "data_tools/dataset_flags.h"
#include "data_tools/program.h"

namespace crema::tools {

namespace {

void PrintChannels(const char* field, const std::vector<double>& values) {
  for (const double value : values) std::printf("%s: %.9g\n", field, value);
}

int Run(const CommandLine& line) {
  const std::string database = line.arguments[0], file = line.arguments.size() > 1 ? line.arguments[1] : "";
  if (FLAGS_backend != "lmdb" && FLAGS_backend != "leveldb") {  // which of the two it is, is told when it is opened
    RejectFlag(line, "--backend=" + FLAGS_backend + ": expected lmdb");
  }
  if (line.arguments.size() > 1 && file.empty()) throw UserError("the path of OUTPUT_FILE is empty");
  if (!file.empty()) CheckOutputFile(file, FLAGS_force, {database});
  ProgressLine progress("images");
  const auto source = OpenRecordSource(database);
  const ImageStatistics statistics = ComputeImageStatistics(*source, FLAGS_threads, &progress);
  if (!file.empty() && !statistics.same_size) {
    throw UserError("the images of \"" + database + "\" differ in size, so there is no mean image: leave out \"" +
                    file +
                    "\" and use the means of the channels, or convert the images again with --resize_height and " +
                    "--resize_width");
  }
  if (!file.empty()) WriteMean({statistics.size.shape(), statistics.mean}, file);
  progress.Say(database + ": " + (statistics.same_size ? statistics.size.ToString() : "images of differing sizes") +
               "\n" + progress.Summary());
  PrintChannels("mean_value", statistics.channel_means);
  PrintChannels("std_value", statistics.channel_deviations);
  return kExitSuccess;
}

}  // namespace

Command ProgramCommand() {
  return {
      .name = "compute_image_mean",
      .summary = "the mean image of a database, and mean and standard deviation of its channels",
      .usage = "[flags] INPUT_DB [OUTPUT_FILE]",
      .flags = {{.name = "backend",
                 .value = "lmdb",
                 .help = "format of the database; `db_tool convert` makes an LMDB of a LevelDB"},
                ForceFlag(),
                ThreadsFlag()},
      .examples =
          "  INPUT_DB     an LMDB of images, also encoded ones\n"
          "  OUTPUT_FILE  the mean image, for transform_param { mean_file }; all images must be of one size\n\n"
          "examples:\n"
          "  compute_image_mean train_lmdb mean.binaryproto\n"
          "  compute_image_mean train_lmdb\n\n"
          "Prints a mean_value and a std_value for each channel, as transform_param takes them.\n",
      .arguments = "INPUT_DB [OUTPUT_FILE]",
      .min_arguments = 1,
      .max_arguments = 2,
      .run = Run,
  };
}

}  // namespace crema::tools
