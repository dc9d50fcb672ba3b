// crema evaluate: how well a net tells labelled images apart.
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "base/atomic_file.h"
#include "base/output_path.h"
#include "base/paths.h"
#include "base/progress_line.h"
#include "data/databases/record_source.h"
#include "data/files/class_names.h"
#include "inference/evaluation_data.h"
#include "inference/image_evaluation.h"
#include "report/classification_writers.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/image_flags.h"
#include "tools/image_lines.h"

DECLARE_string(labels);
DECLARE_string(output);
DEFINE_string(root, "", "what stands before the paths of a list");
DEFINE_int32(worst, 20, "images with the highest loss to name");

namespace crema::tools {

namespace {

int Run(const CommandLine& line) {
  ApplyThreads();
  ImageEvaluationOptions options;
  options.skip_broken = SkipsBroken(line);
  options.top_k = FLAGS_top;
  options.worst = static_cast<size_t>(FLAGS_worst);
  const ImageRunOptions run_options = ImageRunOptionsOf(line);
  const ScoringNet scoring = ReadScoringNet(line, run_options);
  EvaluationData data = OpenEvaluationData(line.arguments.empty() ? "" : line.arguments[0], FLAGS_root, scoring);
  if (IsDatabaseFolder(data.name())) RefuseOutputInInputs(FLAGS_output, {data.name()});
  Classifier classifier = MakeClassifier(line, scoring, *data.items(), run_options);
  if (classifier.sequences()) {
    throw UserError(Location{FLAGS_model},
                    "\"" + classifier.scores() +
                        "\" holds sequences of labels, and evaluate judges classes; measure them "
                        "with crema test and a LabelsequenceAccuracy layer");
  }
  const std::vector<std::string> labels = LabelsFlag(classifier);
  if (!labels.empty() && IsDatabaseFolder(data.name())) {
    Diagnostics warnings;
    CheckClassesOf(data.name(), {FLAGS_labels, labels}, &warnings);
    PrintWarnings(warnings.list());
  }
  options.classes = data.MatchClasses(labels, classifier.classes());
  const std::shared_ptr<const ImageItems> items = data.items();

  std::optional<AtomicFile> predictions;
  if (!FLAGS_output.empty()) {
    MakeFolder(FLAGS_output);
    for (const char* file : {"/report.json", "/confusion.csv", "/confusion.svg"}) {
      CheckOutputFile(FLAGS_output + file, true, {});
    }
    predictions.emplace(FLAGS_output + "/predictions.csv");
    predictions->Write(JudgedHeading());
    options.judged = [&](const JudgedImage& image) { predictions->Write(JudgedLine(options.classes, image)); };
  }
  std::optional<ProgressLine> progress("images");
  progress->SetTotal(static_cast<int64_t>(items->count()));
  options.progress = [&, shown = uint64_t{0}](uint64_t done) mutable {
    progress->Add(static_cast<int64_t>(done - std::exchange(shown, done)), 0);
  };
  const ImageEvaluation evaluation = EvaluateImages(classifier, items, options);
  progress.reset();

  SkippedImages skipped;
  for (const auto& [name, problem] : evaluation.broken) {
    if (const std::string warning = skipped.Add(name, problem); !warning.empty()) std::cerr << warning << "\n";
  }
  for (const std::string& warning : skipped.Rest()) std::cerr << warning << "\n";
  std::cout << EvaluationText(evaluation);
  if (predictions) {
    predictions->Commit();
    WriteWholeFile(FLAGS_output + "/report.json",
                   EvaluationJson(evaluation, {FLAGS_model, FLAGS_weights, data.name(), run_options.views}));
    WriteWholeFile(FLAGS_output + "/confusion.csv", ConfusionCsv(evaluation.report));
    WriteWholeFile(FLAGS_output + "/confusion.svg",
                   ConfusionSvg(evaluation.report, FLAGS_model + " on " + data.name()));
    std::cout << "\nwrote report.json, predictions.csv, confusion.csv and confusion.svg into " << FLAGS_output << "\n";
  }
  return kExitSuccess;
}

Command Make() {
  Command command = {
      .name = "evaluate",
      .summary = "accuracy, precision, recall and mistakes of a net on labelled images",
      .usage = "--model=FILE --weights=FILE [flags] [LMDB|DIR|LIST]",
      .flags = ImageFlags(),
      .examples =
          "LMDB is the folder of a database, DIR a folder with one folder of images for each class, LIST a file\n"
          "with one \"path label\" a line. Without any, a net for training is scored on the data of its TEST\n"
          "phase.\n\n"
          "examples, from the repository's root:\n"
          "  crema evaluate --model=model_zoo/lenet/train_val.prototxt \\\n"
          "    --weights=model_zoo/lenet/lenet.caffemodel\n"
          "  crema evaluate --model=deploy.prototxt --weights=cats.caffemodel --output=build/report photos/\n",
      .arguments = "one LMDB, DIR or LIST",
      .max_arguments = 1,
      .run = Run,
  };
  command.flags.insert(
      command.flags.begin(),
      {{.name = "output", .value = "DIR", .help = "write report.json, predictions.csv, confusion.csv, confusion.svg"},
       {.name = "worst", .value = "N", .help = "images with the highest loss to name", .min = 0, .max = 1000000},
       {.name = "root", .value = "DIR", .help = "put before the paths of a LIST"}});
  return command;
}

}  // namespace

const Command& EvaluateCommand() {
  static const Command command = Make();
  return command;
}

}  // namespace crema::tools
