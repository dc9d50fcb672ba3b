// convert_cifar_data: CIFAR-10 and CIFAR-100 to databases for Data layers.
#include <gflags/gflags.h>

#include "data/convert/convert_cifar.h"
#include "data_tools/dataset_flags.h"
#include "data_tools/program.h"

DEFINE_bool(coarse, false, "superclasses");
DEFINE_bool(bgr, false, "blue, green, red");

namespace crema::tools {

namespace {

int Run(const CommandLine& line) {
  if (line.arguments.size() > 2) FLAGS_backend = line.arguments[2];
  const DatasetTarget target = TargetOf(line, line.arguments[1]);
  ProgressLine progress("images");
  const std::string written = ConvertCifar({.input = line.arguments[0],
                                            .output = target.database,
                                            .coarse = FLAGS_coarse,
                                            .bgr = FLAGS_bgr,
                                            .replace = target.replace},
                                           &progress);
  progress.Say(written + progress.Summary());
  return kExitSuccess;
}

}  // namespace

Command ProgramCommand() {
  return {
      .name = "convert_cifar_data",
      .summary = "convert the binary version of CIFAR-10 or CIFAR-100 to LMDBs that Data layers read",
      .usage = "[flags] INPUT_FOLDER OUTPUT_FOLDER [DB_TYPE]",
      .flags = {{.name = "coarse", .value = "", .help = "of CIFAR-100: the 20 superclasses, not the 100 classes"},
                {.name = "bgr",
                 .value = "",
                 .help = "store blue, green, red as convert_imageset does, not red, green, blue as Caffe's program"},
                ForceFlag(),
                BackendFlag()},
      .examples =
          "  INPUT_FOLDER   data_batch_1.bin to data_batch_5.bin and test_batch.bin, or train.bin and test.bin\n"
          "  OUTPUT_FOLDER  gets cifar10_train_lmdb, cifar10_test_lmdb and cifar10_labels.txt, or cifar100_...\n"
          "                 (the labels where batches.meta.txt, or CIFAR-100's *_label_names.txt, is there)\n"
          "  DB_TYPE        lmdb, as --backend\n\n"
          "example:\n"
          "  convert_cifar_data cifar-10-batches-bin build lmdb\n",
      .arguments = "INPUT_FOLDER OUTPUT_FOLDER [DB_TYPE]",
      .min_arguments = 2,
      .max_arguments = 3,
      .run = Run,
  };
}

}  // namespace crema::tools
