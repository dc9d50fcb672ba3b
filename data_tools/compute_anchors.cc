// compute_anchors: anchors for the layers of YOLO, like the objects of a database.
#include <gflags/gflags.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/number_text.h"
#include "crema/error.h"
#include "data/databases/annotated_record.h"
#include "data/transforms/anchors.h"
#include "data_tools/dataset_flags.h"
#include "data_tools/program.h"

DEFINE_int32(count, 9, "anchors");
DEFINE_string(input, "", "size of the net's input");
DEFINE_bool(keep_proportions, false, "images lie within a border");
DEFINE_int32(cell, 0, "pixels of a cell");

namespace crema::tools {

namespace {

ImageExtent InputOf(const CommandLine& line) {
  const size_t cross = std::min(FLAGS_input.find('x'), FLAGS_input.size());
  ImageExtent input;
  const std::string height = FLAGS_input.substr(0, cross);
  const std::string width = cross < FLAGS_input.size() ? FLAGS_input.substr(cross + 1) : "";
  if (!ParseWhole(height, &input.height) || !ParseWhole(width, &input.width) ||
      std::min(input.height, input.width) < 1 || std::max(input.height, input.width) > 65535) {
    RejectFlag(line, "--input=" + FLAGS_input +
                         ": expected height x width of the net's input in pixels, as in --input=416x416");
  }
  return input;
}

// As they are printed: whole pixels, or hundredths of a cell.
float Rounded(float side) {
  if (FLAGS_cell == 0) return std::max(1.0f, std::round(side));
  return std::max(0.01f, std::round(side * 100) / 100);
}

int Run(const CommandLine& line) {
  const ImageExtent input = InputOf(line);
  const std::string& database = line.arguments[0];
  const auto source = OpenRecordSource(database);
  if (!HoldsAnnotated(*source)) {
    throw UserError("\"" + database +
                    "\" holds no objects, its records have labels only; make a database of boxes "
                    "with convert_annoset");
  }
  ObjectSides objects = SidesOfObjects(*source, input, FLAGS_keep_proportions);
  if (objects.sides.empty()) throw UserError("\"" + database + "\" holds no object that can be learnt");
  const float unit = FLAGS_cell == 0 ? 1.0f : static_cast<float>(FLAGS_cell);
  for (BoxSides& sides : objects.sides) sides = {sides.width / unit, sides.height / unit};
  std::vector<BoxSides> anchors = FindAnchors(objects.sides, FLAGS_count);
  for (BoxSides& sides : anchors) sides = {Rounded(sides.width), Rounded(sides.height)};
  std::string biases;
  for (const BoxSides& sides : anchors) {
    for (const float side : {sides.width, sides.height}) {
      biases += (biases.empty() ? "" : ", ") + FormatNumber(side, "%.6g");
    }
  }
  std::printf("biases: [%s]\n", biases.c_str());
  std::fflush(stdout);
  std::string text = database + ": " + FormatCount(objects.sides.size()) +
                     " objects, which the likest anchor overlaps by " +
                     FormatNumber(MeanOverlap(objects.sides, anchors), "%.3f") + " in the mean";
  if (objects.left_out > 0)
    text += "; " + FormatCount(static_cast<uint64_t>(objects.left_out)) + " more cannot be learnt";
  std::fprintf(stderr, "%s\n", text.c_str());
  return kExitSuccess;
}

}  // namespace

Command ProgramCommand() {
  return {
      .name = "compute_anchors",
      .summary = "anchors for the layers of YOLO, like the objects of a database",
      .usage = "--input=HxW [flags] DB",
      .flags = {{.name = "input", .value = "HxW", .help = "height and width of the net's input", .required = true},
                {.name = "count", .value = "N", .help = "anchors, of all grids together", .min = 1, .max = 100},
                {.name = "keep_proportions",
                 .value = "",
                 .help = "images keep their proportions, within a border, as resize_mode:\n"
                         "FIT_LARGE_SIZE_AND_PAD has it"},
                {.name = "cell",
                 .value = "N",
                 .help = "count in cells of so many pixels, as RegionLoss of YOLOv2 does; 0: in pixels",
                 .min = 0,
                 .max = 65535}},
      .examples =
          "  DB  an LMDB of images with boxes, as convert_annoset writes it\n\n"
          "examples:\n"
          "  compute_anchors --input=416x416 voc_train_lmdb\n"
          "  compute_anchors --input=416x416 --count=5 --cell=32 voc_train_lmdb\n\n"
          "Prints the `biases` of Yolov3 and Yolov3DetectionOutput, or with --cell of RegionLoss and\n"
          "YoloDetectionOutput: width and height of each anchor, the smallest first. The usual mask of three\n"
          "grids of three: 6 7 8 of the coarsest, 3 4 5, 0 1 2 of the finest.\n",
      .arguments = "DB",
      .min_arguments = 1,
      .max_arguments = 1,
      .run = Run,
  };
}

}  // namespace crema::tools
