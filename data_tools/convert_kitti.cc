// convert_kitti: images with KITTI's text files of objects to the two databases of a DetectNet.
#include "data/convert/convert_kitti.h"

#include <gflags/gflags.h>

#include <string>

#include "crema/error.h"
#include "data_tools/dataset_flags.h"
#include "data_tools/program.h"

DEFINE_int32(pad_width, 0, "width after padding");
DEFINE_int32(pad_height, 0, "height after padding");
DEFINE_int32(resize_width, 0, "width");
DEFINE_int32(resize_height, 0, "height");
DEFINE_int32(min_box_size, 0, "smallest side of boxes");
DEFINE_string(custom_classes, "", "names of classes");
DEFINE_bool(shuffle, false, "shuffle");
DEFINE_string(encode_type, "png", "format of images");
DEFINE_int32(quality, 95, "quality of JPEG");
DEFINE_string(broken, "skip", "what becomes of broken images");

namespace crema::tools {

namespace {

KittiConversion ConversionOf(const CommandLine& line) {
  KittiConversion conversion;
  conversion.images = line.arguments[0];
  conversion.labels = line.arguments[1];
  ImageConversion& how = conversion.how;
  how.pad_width = FLAGS_pad_width;
  how.pad_height = FLAGS_pad_height;
  how.resize_width = FLAGS_resize_width;
  how.resize_height = FLAGS_resize_height;
  how.size_remedy = "; give --pad_width and --pad_height, which hold the largest image";
  how.shuffle = FLAGS_shuffle;
  const size_t format = ChoiceOf(line, "encode_type", FLAGS_encode_type, {"png", "jpg", "raw"});
  how.encoded = format < 2;
  how.format = format == 0 ? ImageFormat::kPng : ImageFormat::kJpeg;
  how.quality = FLAGS_quality;
  if (ChoiceOf(line, "broken", FLAGS_broken, {"skip", "fail"}) == 1) how.broken = ImageConversion::Broken::kFail;
  how.threads = FLAGS_threads;
  conversion.min_side = static_cast<float>(FLAGS_min_box_size);
  if (line.has("custom_classes")) {
    try {
      conversion.classes = CustomKittiClasses(FLAGS_custom_classes);
    } catch (const UserError& error) {
      RejectFlag(line, "--custom_classes=" + FLAGS_custom_classes + ": " + error.diagnostics().front().message +
                           "; give names, from that which is not to count on: dontcare,car,person");
    }
  }
  return conversion;
}

int Run(const CommandLine& line) {
  const KittiConversion conversion = ConversionOf(line);
  const DatasetTarget target = TargetOf(line, line.arguments[2], {line.arguments[0], line.arguments[1]});
  ProgressLine progress("images");
  const KittiConverted done = ConvertKitti(conversion, target, &progress);
  if (done.images.broken > 0) {
    progress.Say(std::to_string(done.images.broken) + " images were broken and are left out, as listed above");
  }
  progress.Say(std::to_string(done.objects) + " objects, " + std::to_string(done.ignored) +
               " more of class 0, which do not count; labels are 1 x " + std::to_string(done.most_rows) + " x 16");
  return kExitSuccess;
}

Flag Side(const std::string& name, const std::string& help) {
  constexpr int kMostPixelsPerSide = 32768;
  return {.name = name, .value = "N", .help = help, .min = 0, .max = kMostPixelsPerSide};
}

}  // namespace

Command ProgramCommand() {
  return {
      .name = "convert_kitti",
      .summary = "images with KITTI's text files of objects to the two LMDBs of a DetectNet, as DIGITS makes them",
      .usage = "[flags] IMAGES/ LABELS/ DB",
      .flags = {Side("pad_width", "put black at the right of images so that they have this width"),
                Side("pad_height", "put black below images so that they have this height"),
                Side("resize_width", "resize to this width, after padding"),
                Side("resize_height", "resize to this height, after padding"),
                Side("min_box_size", "objects with a shorter side do not count; DIGITS takes 25 for validation"),
                {.name = "custom_classes",
                 .value = "NAME,...",
                 .help = "classes, numbered from 0, which does not count; without it those of DIGITS"},
                {.name = "shuffle", .value = "", .help = "put the images in random order"},
                {.name = "encode_type", .value = "png|jpg|raw", .help = "store images so; raw: pixels"},
                {.name = "quality", .value = "N", .help = "of JPEG", .min = 1, .max = 100, .needs = {"encode_type"}},
                {.name = "broken",
                 .value = "skip|fail",
                 .help = "what becomes of images that cannot be decoded: report and leave out, or stop"},
                SeedFlag(),
                ForceFlag(),
                ThreadsFlag()},
      .examples =
          "  IMAGES  folder with the images, at any depth\n"
          "  LABELS  folder with a text file for each, 000001.txt for 000001.png: a line for each object\n"
          "  DB      folder to write: DB/features has the images, DB/labels the objects, in the same order\n\n"
          "examples:\n"
          "  convert_kitti --pad_width=1248 --pad_height=384 --shuffle train/images train/labels train_db\n"
          "  convert_kitti --pad_width=1248 --pad_height=384 --min_box_size=25 val/images val/labels val_db\n",
      .arguments = "IMAGES, LABELS and DB",
      .min_arguments = 3,
      .max_arguments = 3,
      .run = Run,
  };
}

}  // namespace crema::tools
