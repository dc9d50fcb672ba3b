#include "tools/image_flags.h"

#include <cmath>
#include <filesystem>
#include <iostream>

#include "base/input_file.h"
#include "base/number_text.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "crema/error.h"
#include "data/files/image_folder.h"
#include "data/files/image_list.h"
#include "image/codec.h"
#include "inference/image_views.h"
#include "tools/flags.h"

DEFINE_string(format, "text", "how results are written");
DEFINE_string(labels, "", "names of the classes");
DEFINE_int32(top, 5, "classes to look at for each image");
DEFINE_string(broken, "skip", "what to do about images that cannot be read");
DEFINE_int32(batch, 0, "images in a pass");
DEFINE_string(blob, "", "the blob that holds the scores");
DEFINE_int32(views, 1, "views of each image");
DEFINE_string(mean_file, "", "mean image to subtract");
DEFINE_string(mean_value, "", "means to subtract");
DEFINE_string(std_value, "", "standard deviations to divide by");
DEFINE_bool(rgb, false, "channels are red, green, blue");
DEFINE_double(scale, 1, "what values are multiplied by");
DEFINE_int32(shorter_side, 0, "pixels of the shorter side");
DEFINE_string(resize, "", "height and width");

namespace crema::tools {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void Fail(const CommandLine& line, const std::string& message) {
  throw UserError(Location{line.program, 0, 0}, message);
}

std::vector<float> Values(const CommandLine& line, const std::string& flag, const std::string& text) {
  std::vector<float> values;
  for (const std::string& part : CommaList(line, flag, text)) {
    float value = 0;
    if (!ParseFinite(part, &value)) {
      Fail(line, "--" + flag + "=" + text + ": \"" + part +
                     "\" is no number; expected one for all channels, or blue,green,red");
    }
    values.push_back(value);
  }
  return values;
}

// "HxW".
void SetResize(const CommandLine& line, const std::string& text, TransformationParameter* transform) {
  uint32_t height = 0, width = 0;
  const size_t cross = std::min(text.find('x'), text.size() - 1);
  if (!ParseWhole(text.substr(0, cross), &height) || !ParseWhole(text.substr(cross + 1), &width) || height == 0 ||
      width == 0 || height > 65535 || width > 65535) {
    Fail(line, "--resize=" + text + ": expected height x width in pixels, as in --resize=256x256");
  }
  transform->set_resize_height(height);
  transform->set_resize_width(width);
}

TransformationParameter TransformFlags(const CommandLine& line) {
  TransformationParameter transform;
  if (line.has("mean_file") && line.has("mean_value")) {
    Fail(line, "--mean_file and --mean_value are both given; keep the one to subtract");
  }
  if (line.has("resize") && line.has("shorter_side")) {
    Fail(line, "--resize and --shorter_side are both given; keep one way of resizing");
  }
  if (line.has("mean_file")) transform.set_mean_file(FLAGS_mean_file);
  for (const float value : Values(line, "mean_value", FLAGS_mean_value)) transform.add_mean_value(value);
  for (const float value : Values(line, "std_value", FLAGS_std_value)) {
    if (value <= 0) Fail(line, "--std_value=" + FLAGS_std_value + ": standard deviations are above 0");
    transform.add_std_value(value);
  }
  if (line.has("scale")) {
    if (!std::isfinite(FLAGS_scale)) Fail(line, "--scale is not finite");
    transform.set_scale(static_cast<float>(FLAGS_scale));
  }
  if (FLAGS_shorter_side > 0) transform.set_resize_shorter_side(FLAGS_shorter_side);
  if (line.has("resize")) SetResize(line, FLAGS_resize, &transform);
  return transform;
}

}  // namespace

std::vector<Flag> ImageFlags() {
  return {
      {.name = "labels", .value = "FILE", .help = "names of the classes, one a line, in the order of the scores"},
      {.name = "top", .value = "K", .help = "how many of the best classes count", .min = 1, .max = 1000000},
      {.name = "broken", .value = "skip|fail", .help = "report images that cannot be read and go on, or end there"},
      ModelFlag(),
      WeightsFlag(true),
      MissingFlag(),
      {.name = "batch",
       .value = "N",
       .help = "images in a pass; 0: 32 / --views, or all where they are fewer",
       .min = 0,
       .max = 65536},
      {.name = "blob", .value = "NAME", .help = "the blob with the scores [the net's output]"},
      {.name = "views",
       .value = "1|2|5|10",
       .help = "average what the net says of several crops of each image: 2: the centre and its mirror image, "
               "5: the centre and the corners, 10: all of them and their mirror images"},
      {.name = "mean_file", .value = "FILE", .help = "mean image to subtract (.binaryproto)"},
      {.name = "mean_value", .value = "V|B,G,R", .help = "means to subtract"},
      {.name = "std_value", .value = "V|B,G,R", .help = "standard deviations to divide by"},
      {.name = "rgb", .value = "", .help = "the net was trained on red, green, blue, in this order"},
      {.name = "scale", .value = "F", .help = "multiply values by this, after all else"},
      {.name = "shorter_side",
       .value = "N",
       .help = "resize so that the shorter side has N pixels; 0: as the net says",
       .min = 0,
       .max = 65535},
      {.name = "resize",
       .value = "HxW",
       .help = "resize to height x width, keeping the proportions only where the net's resize_param does"},
      ShapeFlag(),
      LevelFlag(),
      StageFlag(),
      PrecisionFlag(),
      ThreadsFlag(),
      DataThreadsFlag(),
      GpuFlag(),
  };
}

ImageRunOptions ImageRunOptionsOf(const CommandLine& line) {
  ImageRunOptions options;
  options.net = NetOptionsOf(line);
  options.net.phase = TEST;
  options.net.backward = false;
  options.net.context.device = &DeviceOf(line);
  if (!FLAGS_blob.empty()) options.net.outputs = {FLAGS_blob};
  options.batch = FLAGS_batch;
  if (!IsViewCount(FLAGS_views)) {
    Fail(line, "--views=" + std::to_string(FLAGS_views) + ": expected 1, 2, 5 or 10");
  }
  options.views = FLAGS_views;
  options.rgb = FLAGS_rgb;
  options.threads = FLAGS_data_threads;
  options.transform = TransformFlags(line);
  return options;
}

ScoringNet ReadScoringNet(const CommandLine& line, const ImageRunOptions& options) {
  NetFile file = ReadModel(line);
  PrintWarnings(file.warnings);
  file.warnings.clear();
  return MakeScoringNet(std::move(file), FLAGS_model, options.net);
}

void LoadWeights(const CommandLine& line, ImageRunner& runner) {
  PrintWarnings(runner.net().warnings());
  PrintWarnings(runner.warnings());
  LoadWeightsFlag(line, runner.net());
  if (const std::string note = runner.note(); !note.empty()) std::cerr << FLAGS_model << ": note: " << note << "\n";
  if (!runner.says_values()) {
    std::cerr << FLAGS_model
              << ": warning: does not say how values are made ready, so the net gets bytes from 0 to 255; "
              << "if it was trained otherwise, add transform_param to its Input layer, or give --mean_value, --scale\n";
  }
}

Classifier MakeClassifier(const CommandLine& line, const ScoringNet& scoring, const ImageItems& items,
                          const ImageRunOptions& options) {
  Classifier classifier(scoring, items, options);
  LoadWeights(line, classifier.runner());
  if (!classifier.probabilities() && !classifier.sequences()) {
    std::cerr << FLAGS_model << ": note: \"" << classifier.scores()
              << "\" is not made by a Softmax layer: its scores are shown as they are, and are no probabilities\n";
  }
  return classifier;
}

std::vector<std::string> LabelsFlag(const Classifier& classifier) {
  if (FLAGS_labels.empty()) return {};
  std::vector<std::string> labels = ReadLabels(FLAGS_labels);
  if (static_cast<int>(labels.size()) != classifier.classes()) {
    throw UserError(Location{FLAGS_labels}, "names " + std::to_string(labels.size()) + " classes, but \"" +
                                                classifier.scores() + "\" of " + FLAGS_model + " has the scores of " +
                                                std::to_string(classifier.classes()) +
                                                "; give the labels that the net was trained with");
  }
  return labels;
}

bool SkipsBroken(const CommandLine& line) {
  if (FLAGS_broken != "skip" && FLAGS_broken != "fail") {
    Fail(line, "--broken=" + FLAGS_broken + ": skip or fail was expected");
  }
  return FLAGS_broken == "skip";
}

Flag FormatFlag() { return {.name = "format", .value = "text|json|csv", .help = "json writes an object a line"}; }

PredictionFormat FormatOf(const CommandLine& line) {
  if (FLAGS_format == "text") return PredictionFormat::kText;
  if (FLAGS_format == "json") return PredictionFormat::kJson;
  if (FLAGS_format == "csv") return PredictionFormat::kCsv;
  throw UserError(Location{line.program}, "--format=" + FLAGS_format + ": text, json or csv was expected" +
                                              DidYouMean(FLAGS_format, {"text", "json", "csv"}));
}

ImageList ImagesOf(const CommandLine& line) {
  ImageList list;
  Diagnostics problems;
  for (const std::string& argument : line.arguments) {
    if (argument == "-") {
      bool first = true;
      for (std::string path; std::getline(std::cin, path); first = false) {
        if (first) DropByteOrderMark("stdin", &path);
        if (path.ends_with('\r')) path.pop_back();
        if (!path.empty()) list.entries.push_back({path});
      }
    } else if (fs::is_directory(argument)) {
      const std::vector<std::string> paths = ImagesBelow(argument);
      if (paths.empty()) problems.Error({argument}, std::string("holds no image (") + kReadFormats + ")");
      for (const std::string& path : paths) list.entries.push_back({(fs::path(argument) / path).string()});
    } else if (!fs::exists(argument)) {
      problems.Error({argument}, argument.find("://") == std::string::npos
                                     ? "there is no such image or folder" + RelativePathNote(argument)
                                     : "is an address, and images are files; download it first");
    } else if (argument.ends_with(".txt")) {
      problems.Error({argument}, "is no image (" + std::string(kReadFormats) +
                                     "); paths, one a line and without labels, are read from stdin: - <" + argument);
    } else {
      list.entries.push_back({argument});
    }
  }
  problems.ThrowIfErrors();
  if (list.entries.empty()) throw UserError(Location{line.program}, "stdin names no image; write one path a line");
  return list;
}

}  // namespace crema::tools
