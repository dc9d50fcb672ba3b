// convert_imageset: images to databases for Data layers.
#include <gflags/gflags.h>

#include <cstdio>
#include <filesystem>

#include "crema/error.h"
#include "data/convert/convert_images.h"
#include "data/files/class_names.h"
#include "data/files/image_folder.h"
#include "data_tools/conversion_flags.h"
#include "data_tools/dataset_flags.h"
#include "data_tools/program.h"

DEFINE_int32(label_count, 0, "numbers that follow each path");
DEFINE_string(labels, "", "names of the classes");

namespace crema::tools {

namespace {

ImageList ListOf(const CommandLine& line) {
  const std::vector<std::string>& words = line.arguments;
  if (words.size() == 3) {
    if (!FLAGS_labels.empty()) {
      RejectFlag(line,
                 "--labels=" + FLAGS_labels + " numbers the folders of FOLDER DB; the lines of a list have numbers");
    }
    return ReadImageList(words[1], words[0], static_cast<size_t>(FLAGS_label_count));
  }
  if (FLAGS_label_count > 0) {
    RejectFlag(line, "--label_count=" + std::to_string(FLAGS_label_count) +
                         " is for lists, ROOTFOLDER LISTFILE DB; a FOLDER with one folder for each class has classes "
                         "only");
  }
  if (!std::filesystem::is_directory(words[0])) {
    throw UserError("\"" + words[0] + "\" is no folder; expected FOLDER DB, a folder with one folder of images for " +
                    "each class, or ROOTFOLDER LISTFILE DB");
  }
  LeftOut left_out;
  ImageList list = ListImageFolder(words[0], &left_out);
  std::fprintf(stderr, "%s: %zu images of %zu classes\n", words[0].c_str(), list.entries.size(), list.labels.size());
  if (left_out.others > 0) {
    std::fprintf(stderr, "left out: %zu %s (.jpg, .png, .bmp, ...)\n", left_out.others,
                 left_out.others == 1 ? "file that is not named as an image" : "files that are not named as images");
  }
  if (!left_out.loose.empty()) {
    std::fprintf(stderr, "left out: %zu images that lie in no folder of a class, as \"%s\"\n", left_out.loose.size(),
                 left_out.loose[0].c_str());
  }
  if (!FLAGS_labels.empty()) NumberClassesAs(ReadClassList(FLAGS_labels), &list);
  return list;
}

int Run(const CommandLine& line) {
  const ImageConversion how = ConversionOf(line);
  // Below ROOTFOLDER, which may be /, there may be more than what the list names.
  const DatasetTarget target = TargetOf(line, line.arguments.back(), {line.arguments[line.arguments.size() - 2]});
  const ImageList list = ListOf(line);
  ProgressLine progress("images");
  const ImagesConverted done = ConvertImages(list, how, target, &progress);
  SayBroken(done, &progress);
  return kExitSuccess;
}

std::vector<Flag> Flags() {
  std::vector<Flag> flags = ConversionFlags("each class alike, at random with --label_count");
  flags.insert(flags.begin(), {.name = "label_count",
                               .value = "N",
                               .help = "N numbers follow each path of LISTFILE: the labels of its record",
                               .min = 0,
                               .max = kMaxLabelCount});
  flags.insert(flags.begin() + 1, LabelsFlag("folders"));
  return flags;
}

}  // namespace

Command ProgramCommand() {
  return {
      .name = "convert_imageset",
      .summary = "images to an LMDB that Data layers read, as Caffe's program writes it",
      .usage = "[flags] ROOTFOLDER/ LISTFILE DB | [flags] FOLDER DB",
      .flags = Flags(),
      .examples =
          "  LISTFILE  one \"path label\" per line, paths below ROOTFOLDER, labels from 0; with --label_count\n"
          "            \"path number number ...\", for several targets and those that are no classes\n"
          "  FOLDER    one folder of images for each class, numbered in the order of their names, or as --labels\n"
          "            says; the names are written to DB_labels.txt\n"
          "  DB        folder to write; it appears only when the conversion is complete\n\n"
          "examples:\n"
          "  convert_imageset --resize_height=256 --resize_width=256 --shuffle images/ train.txt train_lmdb\n"
          "  convert_imageset --encoded --shorter_side=256 --split=train:0.9,val:0.1 pets/ pets\n"
          "  convert_imageset --labels=pets_labels.txt more_pets/ more_pets\n"
          "  convert_imageset --label_count=4 --encoded images/ boxes.txt boxes_lmdb\n",
      .arguments = "ROOTFOLDER LISTFILE DB, or FOLDER DB",
      .min_arguments = 2,
      .max_arguments = 3,
      .run = Run,
  };
}

}  // namespace crema::tools
