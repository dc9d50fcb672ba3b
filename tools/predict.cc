// crema predict: the classes of images.
#include <limits>
#include <memory>

#include "crema/error.h"
#include "inference/prediction_writer.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/image_flags.h"
#include "tools/image_lines.h"

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
  options.sequences = classifier.sequences();
  options.blank = classifier.blank();
  if (options.sequences && line.has("top")) {
    throw UserError("--top: the net reads texts, of which there is one for each image; leave --top out");
  }

  ImageLines lines(line, *items, skip, "predictions");
  lines.Print(PredictionHeading(options));
  classifier.Run(items, [&](const ScoredImage& image) {
    lines.Print(image.index, image.problem, PredictionLines(options, items->Name(image.index), image));
  });
  lines.Finish();
  return kExitSuccess;
}

Command Make() {
  Command command = {
      .name = "predict",
      .summary = "tell which classes images belong to, or read their text",
      .usage = "--model=FILE --weights=FILE [flags] IMAGE...|DIR|-",
      .flags = ImageFlags(),
      .examples =
          "IMAGE is an image file, DIR a folder of them (with the folders in it), - reads paths from stdin, one\n"
          "a line. Images are made ready as transform_param in the net's Input layer says, or as the flags do.\n\n"
          "examples, from the repository's root:\n"
          "  crema predict --model=model_zoo/lenet/deploy.prototxt \\\n"
          "    --weights=model_zoo/lenet/lenet.caffemodel --labels=model_zoo/lenet/labels.txt shoe.png\n"
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
