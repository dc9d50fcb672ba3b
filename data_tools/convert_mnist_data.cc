// convert_mnist_data: MNIST's files (and those of its kin) to a database for Data layers.
#include <sstream>

#include "data/convert/convert_mnist.h"
#include "data_tools/dataset_flags.h"
#include "data_tools/program.h"

namespace crema::tools {

namespace {

int Run(const CommandLine& line) {
  const std::string& database = line.arguments[2];
  const DatasetTarget target = TargetOf(line, database);
  ProgressLine progress("images");
  const MnistConversion done =
      ConvertMnist(line.arguments[0], line.arguments[1], target.database, target.replace, &progress);
  std::ostringstream text;
  text << database << ": " << done.records << " records of 1x" << done.height << "x" << done.width << ", labels "
       << done.min_label << " to " << done.max_label << "\n"
       << progress.Summary();
  if (done.min_label > 0) {
    text << "\nwarning: labels start at " << done.min_label
         << ", not 0: a classifier needs num_output: " << done.max_label + 1 << " for them, with classes 0 to "
         << done.min_label - 1 << " unused";
  }
  progress.Say(text.str());
  return kExitSuccess;
}

}  // namespace

Command ProgramCommand() {
  return {
      .name = "convert_mnist_data",
      .summary = "convert MNIST's files to an LMDB that Data layers read",
      .usage = "[flags] IMAGES_FILE LABELS_FILE DB",
      .flags = {ForceFlag(), BackendFlag()},
      .examples =
          "  IMAGES_FILE, LABELS_FILE  IDX files as MNIST, Fashion-MNIST and EMNIST have them, plain or .gz\n"
          "  DB                        folder to write; it appears only when the conversion is complete\n\n"
          "examples:\n"
          "  convert_mnist_data train-images-idx3-ubyte train-labels-idx1-ubyte mnist_train_lmdb\n"
          "  convert_mnist_data --force t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz mnist_test_lmdb\n",
      .arguments = "IMAGES_FILE LABELS_FILE DB",
      .min_arguments = 3,
      .max_arguments = 3,
      .run = Run,
  };
}

}  // namespace crema::tools
