// convert_imageset: images to databases for Data layers.
#include <gflags/gflags.h>

#include <cstdio>
#include <filesystem>

#include "crema/error.h"
#include "data/convert_images.h"
#include "data_tools/dataset_flags.h"

DEFINE_bool(gray, false, "one channel");
DEFINE_bool(shuffle, false, "shuffle");
DEFINE_bool(check_size, false, "check sizes");
DEFINE_bool(encoded, false, "store compressed images");
DEFINE_string(encode_type, "", "format of compressed images");
DEFINE_int32(resize_width, 0, "width");
DEFINE_int32(resize_height, 0, "height");
DEFINE_int32(shorter_side, 0, "shorter side");
DEFINE_int32(quality, 95, "quality of JPEG");
DEFINE_string(broken, "skip", "what becomes of broken images");

namespace crema::tools {

namespace {

constexpr int kMostPixelsPerSide = 32768;

ImageConversion ConversionOf(const CommandLine& line) {
  ImageConversion how;
  how.gray = FLAGS_gray;
  how.shuffle = FLAGS_shuffle;
  how.check_size = FLAGS_check_size;
  how.encoded = FLAGS_encoded || !FLAGS_encode_type.empty();
  if (!FLAGS_encode_type.empty()) {
    how.format = ChoiceOf(line, "encode_type", FLAGS_encode_type, {"jpg", "jpeg", "png"}) < 2 ? ImageFormat::kJpeg
                                                                                              : ImageFormat::kPng;
  }
  how.quality = FLAGS_quality;
  how.resize_height = FLAGS_resize_height;
  how.resize_width = FLAGS_resize_width;
  how.shorter_side = FLAGS_shorter_side;
  if (ChoiceOf(line, "broken", FLAGS_broken, {"skip", "fail"}) == 1) how.broken = ImageConversion::Broken::kFail;
  how.threads = FLAGS_threads;
  return how;
}

ImageList ListOf(const std::vector<std::string>& words) {
  if (words.size() == 3) return ReadImageList(words[1], words[0]);
  if (!std::filesystem::is_directory(words[0])) {
    throw UserError("\"" + words[0] + "\" is no folder; expected FOLDER DB, a folder with one folder of images for " +
                    "each class, or ROOTFOLDER LISTFILE DB");
  }
  size_t skipped = 0;
  ImageList list = ListImageFolder(words[0], &skipped);
  std::fprintf(stderr, "%s: %zu images of %zu classes\n", words[0].c_str(), list.entries.size(), list.labels.size());
  if (skipped > 0) std::fprintf(stderr, "left out: %zu files that are named neither .jpg nor .png\n", skipped);
  return list;
}

int Run(const CommandLine& line) {
  const ImageConversion how = ConversionOf(line);
  const DatasetTarget target = TargetOf(line, line.arguments.back());
  const ImageList list = ListOf(line.arguments);
  ProgressLine progress("images");
  const ImagesConverted done = ConvertImages(list, how, target, &progress);
  if (done.broken > 0) {
    progress.Say(std::to_string(done.broken) + " of " + std::to_string(done.records + done.broken) +
                 " images were broken and are left out, as listed above");
  }
  return kExitSuccess;
}

Flag Pixels(const std::string& name, const std::string& help) {
  return {.name = name, .value = "N", .help = help, .min = 0, .max = kMostPixelsPerSide};
}

const Command& ConvertImageset() {
  static const Command command = {
      .name = "convert_imageset",
      .summary = "images to an LMDB that Data layers read, as Caffe's program writes it",
      .usage = "[flags] ROOTFOLDER/ LISTFILE DB | [flags] FOLDER DB",
      .flags = {{.name = "gray", .value = "", .help = "store one channel instead of blue, green, red"},
                {.name = "shuffle", .value = "", .help = "put the images in random order"},
                BackendFlag(),
                Pixels("resize_width", "resize to this width; 0: as it is"),
                Pixels("resize_height", "resize to this height; 0: as it is"),
                Pixels("shorter_side", "resize so that the shorter side has N pixels, keeping the proportions"),
                {.name = "check_size", .value = "", .help = "stop where images differ in size"},
                {.name = "encoded", .value = "", .help = "store JPEG and PNG as they are instead of pixels"},
                {.name = "encode_type", .value = "jpg|png", .help = "store all images so; implies --encoded"},
                {.name = "quality", .value = "N", .help = "of JPEG that is encoded anew", .min = 1, .max = 100},
                {.name = "broken",
                 .value = "skip|fail",
                 .help = "what becomes of images that cannot be decoded: report and leave out, or stop"},
                SplitFlag("each class alike"),
                SeedFlag(),
                ForceFlag(),
                ThreadsFlag()},
      .examples =
          "  LISTFILE  one \"path label\" per line, paths below ROOTFOLDER, labels from 0\n"
          "  FOLDER    one folder of images (.jpg, .png) for each class; their names are written to DB_labels.txt\n"
          "  DB        folder to write; it appears only when the conversion is complete\n\n"
          "examples:\n"
          "  convert_imageset --resize_height=256 --resize_width=256 --shuffle images/ train.txt train_lmdb\n"
          "  convert_imageset --encoded --shorter_side=256 --split=train:0.9,val:0.1 pets/ pets\n",
      .arguments = "ROOTFOLDER LISTFILE DB, or FOLDER DB",
      .min_arguments = 2,
      .max_arguments = 3,
      .run = Run,
  };
  return command;
}

}  // namespace

}  // namespace crema::tools

int main(int argc, char** argv) {
  return crema::tools::RunCommand(crema::tools::ConvertImageset(), "convert_imageset", {argv + 1, argv + argc});
}
