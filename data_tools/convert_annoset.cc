// convert_annoset: images with the objects on them to databases for AnnotatedData layers.
#include <gflags/gflags.h>

#include "crema/error.h"
#include "data/convert/convert_annotated.h"
#include "data_tools/conversion_flags.h"
#include "data_tools/dataset_flags.h"
#include "data_tools/program.h"

DEFINE_string(anno_type, "detection", "what annotations are");
DEFINE_string(label_type, "xml", "format of annotations");
DEFINE_string(label_map_file, "", "classes");
DEFINE_bool(check_label, false, "check for duplicates");
DEFINE_int32(min_dim, 0, "shortest side");
DEFINE_int32(max_dim, 0, "longest side");

namespace crema::tools {

namespace {

AnnotatedConversion AnnotatedConversionOf(const CommandLine& line) {
  if (FLAGS_anno_type == "classification") {
    RejectFlag(line, "--anno_type=classification: images with one class each are what convert_imageset converts");
  }
  ChoiceOf(line, "anno_type", FLAGS_anno_type, {"detection"});
  AnnotatedConversion how;
  using Format = AnnotatedConversion::Format;
  constexpr Format kFormats[] = {Format::kVoc, Format::kText, Format::kYolo};
  how.format = kFormats[ChoiceOf(line, "label_type", FLAGS_label_type, {"xml", "txt", "yolo"})];
  if (!FLAGS_label_map_file.empty()) {
    how.labels = ReadLabelMap(FLAGS_label_map_file, FLAGS_check_label, how.format == Format::kYolo);
  }
  how.images = ConversionOf(line);
  if (FLAGS_max_dim > 0 && FLAGS_min_dim > FLAGS_max_dim) {
    RejectFlag(line, "--min_dim=" + std::to_string(FLAGS_min_dim) +
                         " exceeds --max_dim=" + std::to_string(FLAGS_max_dim) + ": no side can be as both say");
  }
  how.images.min_dim = FLAGS_min_dim;
  how.images.max_dim = FLAGS_max_dim;
  return how;
}

void SayCounts(const AnnotationsConverted& done, ProgressLine* progress) {
  const std::pair<int64_t, const char*> counts[] = {
      {done.objects, "objects"},
      {done.clipped, "of their boxes reached over the border and were cut off there"},
      {done.empty, "objects were left out: their boxes were empty, or outside of the image"},
      {done.other_sizes, "annotations say another size than the image has"},
      {done.turned, "annotations are of images as they are stored; their boxes were turned upright, as Exif says"},
      {done.missing, "images have no file of annotations and were written without objects"},
      {done.bare, "annotations name no object"},
      {done.tiny, "boxes are no larger than a pixel: corners are to be pixels, not shares of the image"}};
  for (const auto& [count, what] : counts) {
    if (count > 0) progress->Say(std::to_string(count) + " " + what);
  }
}

int Run(const CommandLine& line) {
  const AnnotatedConversion how = AnnotatedConversionOf(line);
  const DatasetTarget target = TargetOf(line, line.arguments[2], {line.arguments[1], FLAGS_label_map_file});
  const bool is_yolo = how.format == AnnotatedConversion::Format::kYolo;
  const AnnotatedImageList list = is_yolo ? ReadYoloImageList(line.arguments[1], line.arguments[0])
                                          : ReadAnnotatedImageList(line.arguments[1], line.arguments[0]);
  ProgressLine progress("images");
  const AnnotationsConverted done = ConvertAnnotated(list, how, target, &progress);
  SayBroken(done.images, &progress);
  SayCounts(done, &progress);
  return kExitSuccess;
}

std::vector<Flag> Flags() {
  std::vector<Flag> flags = {
      {.name = "anno_type", .value = "detection", .help = "what annotations are; only boxes of objects are read"},
      {.name = "label_type",
       .value = "xml|txt|yolo",
       .help =
           "PASCAL VOC's XML, \"label xmin ymin xmax ymax\" per line, or Darknet's \"class x y width height\", whose "
           "class 0 becomes label 1"},
      {.name = "label_map_file",
       .value = "FILE",
       .help = "the classes, a text file with a LabelMap, or for yolo one name a line; XML needs it"},
      {.name = "check_label",
       .value = "",
       .help = "stop where a name or a number stands twice in it",
       .needs = {"label_map_file"}},
      Pixels("min_dim", "enlarge images whose shorter side has fewer pixels, keeping the proportions"),
      Pixels("max_dim", "make images smaller whose longer side has more pixels, keeping the proportions")};
  const std::vector<Flag> others = ConversionFlags("at random");
  flags.insert(flags.end(), others.begin(), others.end());
  return flags;
}

}  // namespace

Command ProgramCommand() {
  return {
      .name = "convert_annoset",
      .summary = "images with boxes to an LMDB that AnnotatedData layers read, as SSD's program writes it",
      .usage = "[flags] ROOTFOLDER/ LISTFILE DB",
      .flags = Flags(),
      .examples =
          "  LISTFILE  one \"image annotation\" per line, both below ROOTFOLDER; for yolo one image, whose file .txt\n"
          "            lies in the folder \"labels\" beside \"images\", or beside the image\n"
          "  DB        folder to write; it appears only when the conversion is complete\n\n"
          "  Boxes that reach over the border are cut off there, empty ones left out; both are reported.\n\n"
          "examples:\n"
          "  convert_annoset --label_map_file=labelmap.prototxt --encoded --shuffle VOC2007/ train.txt train_lmdb\n"
          "  convert_annoset --label_type=txt --resize_height=300 --resize_width=300 set/ all.txt "
          "--split=train:0.9,val:0.1 set\n"
          "  convert_annoset --label_type=yolo --label_map_file=coco.names --encode_type=jpg \"\" train.txt "
          "train_lmdb\n",
      .arguments = "ROOTFOLDER, LISTFILE and DB",
      .min_arguments = 3,
      .max_arguments = 3,
      .run = Run,
  };
}

}  // namespace crema::tools
