#include "data_tools/conversion_flags.h"

#include <gflags/gflags.h>

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

}  // namespace

Flag Pixels(const std::string& name, const std::string& help) {
  return {.name = name, .value = "N", .help = help, .min = 0, .max = kMostPixelsPerSide};
}

std::vector<Flag> ConversionFlags(const std::string& how_it_is_split) {
  return {{.name = "gray", .value = "", .help = "store one channel instead of blue, green, red"},
          {.name = "shuffle", .value = "", .help = "put the images in random order"},
          BackendFlag(),
          Pixels("resize_width", "resize to this width; 0: as it is"),
          Pixels("resize_height", "resize to this height; 0: as it is"),
          Pixels("shorter_side", "resize so that the shorter side has N pixels, keeping the proportions"),
          {.name = "check_size", .value = "", .help = "stop where images differ in size"},
          {.name = "encoded", .value = "", .help = "store image files as they are instead of pixels"},
          {.name = "encode_type",
           .value = "jpg|png",
           .help = "store all images so; implies --encoded",
           .may_be_empty = true},
          {.name = "quality",
           .value = "N",
           .help = "of JPEG that is encoded anew",
           .min = 1,
           .max = 100,
           .needs = {"encoded", "encode_type"}},
          {.name = "broken",
           .value = "skip|fail",
           .help = "what becomes of images that cannot be decoded: report and leave out, or stop"},
          SplitFlag(how_it_is_split),
          SeedFlag(),
          ForceFlag(),
          ThreadsFlag()};
}

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

void SayBroken(const ImagesConverted& done, ProgressLine* progress) {
  if (done.broken == 0) return;
  progress->Say(std::to_string(done.broken) + " of " + std::to_string(done.records + done.broken) +
                " images were broken and are left out, as listed above");
}

}  // namespace crema::tools
