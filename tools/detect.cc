// crema detect: the objects in images.
#include <gflags/gflags.h>

#include <iostream>
#include <limits>
#include <memory>
#include <optional>

#include "base/number_text.h"
#include "crema/error.h"
#include "data/files/label_map.h"
#include "inference/detection_drawer.h"
#include "inference/detection_writer.h"
#include "inference/detector.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/image_flags.h"
#include "tools/image_lines.h"

DEFINE_double(threshold, 0.5, "lowest score of an object");
DEFINE_int32(longer_side, 1000, "most pixels of the longer side");
DEFINE_string(draw, "", "folder of images with objects drawn");

namespace crema::tools {

namespace {

std::vector<std::string> ClassNames(const Detector& detector) {
  if (FLAGS_labels.empty()) return {};
  std::vector<std::string> names = ReadClassNames(FLAGS_labels, static_cast<size_t>(detector.classes()));
  if (static_cast<int>(names.size()) == detector.classes()) return names;
  throw UserError(Location{FLAGS_labels},
                  "names " + std::to_string(names.size()) + " classes, but \"" + detector.objects() + "\" of " +
                      FLAGS_model + " has num_classes: " + std::to_string(detector.classes()) +
                      ", the background among them; give the labels that the net was trained with");
}

void WarnOfLowThreshold(const CommandLine& line, const Detector& detector) {
  if (!line.has("threshold") || !(static_cast<float>(FLAGS_threshold) < detector.scores_above())) return;
  const std::string least = FormatNumber(detector.scores_above());
  std::cerr << FLAGS_model << ": warning: \"" << detector.objects() << "\" has confidence_threshold: " << least
            << " and makes no objects of lower scores, so --threshold=" << FormatNumber(FLAGS_threshold)
            << " shows no more than --threshold=" << least << "; to see more, lower confidence_threshold\n";
}

// A net that is told the sizes of images has no crop: sides are how it is to see them.
FittedSides SidesOf(const ImageRunOptions& options) {
  FittedSides sides;
  if (options.transform.resize_shorter_side() > 0) {
    sides.shorter = static_cast<int>(options.transform.resize_shorter_side());
  }
  sides.longer = FLAGS_longer_side;
  return sides;
}

void WarnOfUnusedSide(const CommandLine& line, const Detector& detector) {
  if (!line.has("longer_side") || detector.fits()) return;
  std::cerr << FLAGS_model
            << ": warning: images are resized to the net's input, so that --longer_side has no effect; it "
            << "is for nets that are told the sizes of images (im_info), and where nothing else says a size\n";
}

void CheckThreshold(const CommandLine& line, float most_score) {
  if (FLAGS_threshold <= most_score) return;
  throw UserError(Location{line.program, 0, 0},
                  "--threshold=" + FormatNumber(FLAGS_threshold) + ": expected a number up to 1, as scores are");
}

int Run(const CommandLine& line) {
  ApplyThreads();
  DetectionOptions options;
  options.format = FormatOf(line);
  constexpr float kMostScore = 21;  // of any net: the logarithm of more cells than a grid has
  CheckThreshold(line, kMostScore);
  const bool skip = SkipsBroken(line);
  const ImageRunOptions run_options = ImageRunOptionsOf(line);
  const auto items = std::make_shared<const ImageFiles>(ImagesOf(line), false);
  Detector detector(ReadScoringNet(line, run_options), *items, run_options, SidesOf(run_options));
  CheckThreshold(line, detector.most_score());
  WarnOfUnusedSide(line, detector);
  options.labels = ClassNames(detector);
  std::optional<DetectionDrawer> drawer;
  if (!FLAGS_draw.empty()) drawer.emplace(FLAGS_draw, *items, options.labels);
  LoadWeights(line, detector.runner());
  WarnOfLowThreshold(line, detector);

  ImageLines lines(line, *items, skip, "objects");
  lines.Print(DetectionHeading(options));
  detector.Run(items, static_cast<float>(FLAGS_threshold), [&](const DetectedImage& image) {
    lines.Print(image.index, image.problem, DetectionLines(options, items->Name(image.index), image));
    if (drawer) drawer->Draw(image);
  });
  lines.Finish();
  return kExitSuccess;
}

Command Make() {
  Command command = {
      .name = "detect",
      .summary = "find objects in images",
      .usage = "--model=FILE --weights=FILE [flags] IMAGE...|DIR|-",
      .flags = ImageFlags(),
      .examples =
          "The net has one Input layer, and a DetectionOutput layer as SSD's nets do, or one of YOLO's, or\n"
          "DetectNet's ClusterDetections, whose scores are logarithms: 1.1 of three cells that agree. IMAGE\n"
          "is an image file, DIR a folder of them (with the folders in it), - reads paths from stdin, one a\n"
          "line. Images are made ready as transform_param in the net's Input layer says, or as the flags do,\n"
          "and resized to the net's input.\n\n"
          "Nets of Faster R-CNN and R-FCN are taken as their authors wrote them: what im_info tells is\n"
          "filled in, images are resized to 600 pixels on the shorter side and at most 1000 on the longer\n"
          "one (--shorter_side, --longer_side; all to one size with --resize), and objects are made of\n"
          "regions, unless the net has a DetectionOutput layer.\n\n"
          "A line tells the image, the class, its score, and the box: left, upper, right and lower side in\n"
          "pixels of the image, cut off at its borders.\n\n"
          "example:\n"
          "  crema detect --model=deploy.prototxt --weights=VGG_VOC0712_SSD_300x300.caffemodel \\\n"
          "    --labels=labelmap_voc.prototxt --mean_value=104,117,123 --threshold=0.6 --draw=seen street.jpg\n"
          "  crema detect --model=faster_rcnn_test.pt --weights=ZF_faster_rcnn_final.caffemodel \\\n"
          "    --labels=voc.txt --mean_value=102.9801,115.9465,122.7717 --threshold=0.8 street.jpg\n",
      .arguments = "IMAGE...|DIR|-",
      .min_arguments = 1,
      .max_arguments = std::numeric_limits<size_t>::max(),
      .run = Run,
  };
  std::erase_if(command.flags, [](const Flag& flag) { return flag.name == "top" || flag.name == "views"; });
  for (Flag& flag : command.flags) {
    if (flag.name == "labels")
      flag.help = "names of the classes: SSD's LabelMap, or one a line, with or without the background first";
    if (flag.name == "batch") flag.help = "images in a pass; 0: 8, or all where they are fewer";
    if (flag.name == "blob") flag.help = "the blob with the objects [the top of the layer that makes objects]";
  }
  command.flags.insert(
      command.flags.begin(),
      {FormatFlag(),
       {.name = "threshold", .value = "F", .help = "lowest score of an object"},
       {.name = "draw", .value = "DIR", .help = "also write each image, with its objects drawn, to DIR/NAME.jpg"}});
  command.flags.push_back({.name = "longer_side",
                           .value = "N",
                           .help = "of nets with im_info: the longer side has at most N pixels",
                           .min = 1,
                           .max = 65535});
  return command;
}

}  // namespace

const Command& DetectCommand() {
  static const Command command = Make();
  return command;
}

}  // namespace crema::tools
