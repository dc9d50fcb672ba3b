// convert_mnist_siamese_data: pairs of MNIST's images to a database for nets that compare two images.
#include <sstream>

#include "data/convert/convert_mnist.h"
#include "data_tools/dataset_flags.h"
#include "data_tools/program.h"

namespace crema::tools {

namespace {

int Run(const CommandLine& line) {
  const std::string& database = line.arguments[2];
  const DatasetTarget target = TargetOf(line, database);
  ProgressLine progress("pairs");
  const MnistConversion done =
      ConvertMnistPairs(line.arguments[0], line.arguments[1], target.database, target.replace, target.seed, &progress);
  std::ostringstream text;
  text << database << ": " << done.records << " pairs of 2x" << done.height << "x" << done.width
       << ", label 1 where both are of one class\n"
       << progress.Summary();
  progress.Say(text.str());
  return kExitSuccess;
}

}  // namespace

Command ProgramCommand() {
  return {
      .name = "convert_mnist_siamese_data",
      .summary = "convert MNIST's files to an LMDB of pairs, for nets with ContrastiveLoss",
      .usage = "[flags] IMAGES_FILE LABELS_FILE DB",
      .flags = {{.name = "seed", .value = "N", .help = "another seed draws other pairs", .min = 0},
                ForceFlag(),
                BackendFlag()},
      .examples =
          "  IMAGES_FILE, LABELS_FILE  IDX files as MNIST, Fashion-MNIST and EMNIST have them, plain or .gz\n"
          "  DB                        folder to write; it appears only when the conversion is complete\n\n"
          "Each record has two channels, one for each image; a Slice layer takes them apart.\n\n"
          "example:\n"
          "  convert_mnist_siamese_data train-images-idx3-ubyte train-labels-idx1-ubyte siamese_train_lmdb\n",
      .arguments = "IMAGES_FILE LABELS_FILE DB",
      .min_arguments = 3,
      .max_arguments = 3,
      .run = Run,
  };
}

}  // namespace crema::tools
