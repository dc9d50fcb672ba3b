// crema predict: the classes of images.
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <limits>
#include <optional>

#include "base/suggest.h"
#include "crema/error.h"
#include "data/progress_line.h"
#include "inference/prediction_writer.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/image_flags.h"

DEFINE_string(format, "text", "how predictions are written");

namespace crema::tools {

namespace {

namespace fs = std::filesystem;

PredictionFormat FormatFlag(const CommandLine& line) {
  if (FLAGS_format == "text") return PredictionFormat::kText;
  if (FLAGS_format == "json") return PredictionFormat::kJson;
  if (FLAGS_format == "csv") return PredictionFormat::kCsv;
  throw UserError(Location{line.program}, "--format=" + FLAGS_format + ": text, json or csv was expected" +
                                              DidYouMean(FLAGS_format, {"text", "json", "csv"}));
}

// Files, all images below folders, and for "-" what stdin names.
ImageList ImagesOf(const CommandLine& line) {
  ImageList list;
  Diagnostics problems;
  for (const std::string& argument : line.arguments) {
    if (argument == "-") {
      for (std::string path; std::getline(std::cin, path);) {
        if (path.ends_with('\r')) path.pop_back();
        if (!path.empty()) list.entries.push_back({path});
      }
    } else if (fs::is_directory(argument)) {
      const std::vector<std::string> paths = ImagesBelow(argument);
      if (paths.empty()) problems.Error({argument}, "holds no image (.jpg, .jpeg, .png)");
      for (const std::string& path : paths) list.entries.push_back({path});
    } else if (!fs::exists(argument)) {
      problems.Error({argument}, "there is no such image or folder");
    } else {
      list.entries.push_back({argument});
    }
  }
  problems.ThrowIfErrors();
  if (list.entries.empty()) throw UserError(Location{line.program}, "stdin names no image; write one path a line");
  return list;
}

int Run(const CommandLine& line) {
  ApplyThreads();
  PredictionOptions options;
  options.format = FormatFlag(line);
  options.top = FLAGS_top;
  const bool skip = SkipsBroken(line);
  const ClassifierOptions classifier_options = ClassifierOptionsOf(line);
  const ScoringNet scoring = ReadScoringNet(line, classifier_options);
  const auto items = std::make_shared<const ImageFiles>(ImagesOf(line), false);
  Classifier classifier = MakeClassifier(line, scoring, *items, classifier_options);
  options.labels = LabelsFlag(classifier);
  options.probabilities = classifier.probabilities();

  // Predictions on a terminal are progress enough.
  std::optional<ProgressLine> progress;
  if (!isatty(STDOUT_FILENO)) progress.emplace("images").SetTotal(static_cast<int64_t>(items->count()));
  uint64_t broken = 0;
  std::cout << PredictionHeading(options);
  classifier.Run(items, [&](const ScoredImage& image) {
    const std::string name = items->Name(image.index);
    if (!image.problem.empty()) {
      if (!skip) throw UserError(Location{name}, image.problem);
      ++broken;
      const std::string warning = name + ": warning: " + image.problem + "; skipped";
      progress ? progress->Say(warning) : void(std::cerr << warning << "\n");
    }
    std::cout << PredictionLines(options, name, image);
    if (!std::cout) throw EnvironmentError("predictions cannot be written to stdout");
    if (progress) progress->Add(1, 0);
  });
  progress.reset();
  std::cout.flush();
  if (!std::cout) throw EnvironmentError("predictions cannot be written to stdout");
  if (broken == items->count()) throw UserError(Location{line.program}, "none of the images can be read");
  return kExitSuccess;
}

Command Make() {
  Command command = {
      .name = "predict",
      .summary = "tell which classes images belong to",
      .usage = "--model=FILE --weights=FILE [flags] IMAGE...|DIR|-",
      .flags = ImageFlags(),
      .examples =
          "IMAGE is a JPEG or PNG file, DIR a folder of them (with the folders in it), - reads paths from stdin, one "
          "a\n"
          "line. Images are made ready as transform_param in the net's Input layer says, or as the flags do.\n\n"
          "examples, from the repository's root:\n"
          "  crema predict --model=model_zoo/lenet/deploy.prototxt \\\n"
          "    --weights=build/fashion_mnist/lenet_iter_10000.caffemodel shoe.png\n"
          "  find photos -name '*.jpg' | crema predict --model=deploy.prototxt --weights=cats.caffemodel \\\n"
          "    --labels=labels.txt --top=1 --format=csv - > classes.csv\n",
      .arguments = "IMAGE...|DIR|-",
      .min_arguments = 1,
      .max_arguments = std::numeric_limits<size_t>::max(),
      .run = Run,
  };
  command.flags.insert(command.flags.begin(),
                       {.name = "format", .value = "text|json|csv", .help = "json writes an object a line"});
  return command;
}

}  // namespace

const Command& PredictCommand() {
  static const Command command = Make();
  return command;
}

}  // namespace crema::tools
