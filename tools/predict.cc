// crema predict: the classes of images.
#include <unistd.h>

#include <iostream>
#include <limits>
#include <optional>

#include "crema/error.h"
#include "data/progress_line.h"
#include "inference/prediction_writer.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/image_flags.h"

namespace crema::tools {

namespace {

int Run(const CommandLine& line) {
  ApplyThreads();
  PredictionOptions options;
  options.format = FormatOf(line);
  options.top = FLAGS_top;
  const bool skip = SkipsBroken(line);
  const ImageRunOptions run_options = ImageRunOptionsOf(line);
  const ScoringNet scoring = ReadScoringNet(line, run_options);
  const auto items = std::make_shared<const ImageFiles>(ImagesOf(line), false);
  Classifier classifier = MakeClassifier(line, scoring, *items, run_options);
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
  command.flags.insert(command.flags.begin(), FormatFlag());
  return command;
}

}  // namespace

const Command& PredictCommand() {
  static const Command command = Make();
  return command;
}

}  // namespace crema::tools
