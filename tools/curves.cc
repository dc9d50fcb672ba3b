// crema curves: draws the course of trainings.
#include <gflags/gflags.h>

#include <iostream>
#include <set>

#include "curves/curve_writers.h"
#include "tools/commands.h"
#include "tools/flags.h"

DECLARE_string(output);
DEFINE_string(x, "iterations", "what the horizontal axis shows");

namespace crema::tools {

namespace {

int Run(const CommandLine& line) {
  CurveOptions options;
  if (FLAGS_x != "iterations" && FLAGS_x != "time") {
    throw UserError(Location{line.program, 0, 0}, "--x=" + FLAGS_x + ": iterations or time was expected");
  }
  options.over_time = FLAGS_x == "time";
  if (!FLAGS_output.empty()) CheckCurveFile(FLAGS_output, true);
  std::vector<TrainingRun> runs;
  for (const std::string& path : line.arguments) {
    int earlier = 0;
    runs.push_back(ReadTrainingRun(path, &earlier));
    PrintWarnings(runs.back().warnings);
    if (earlier > 0) {
      std::cerr << path << ": note: the last of its " << earlier + 1 << " runs is shown\n";
    }
  }
  std::set<std::string> names;
  for (const TrainingRun& run : runs) names.insert(run.name);
  for (size_t i = 0; names.size() < runs.size() && i < runs.size(); ++i) runs[i].name = line.arguments[i];
  if (FLAGS_output.empty()) {
    std::cout << CurvesText(runs, options);
  } else {
    WriteCurves(runs, options, FLAGS_output);
  }
  return kExitSuccess;
}

}  // namespace

const Command& CurvesCommand() {
  static const Command command = {
      .name = "curves",
      .summary = "draw losses, accuracies and learning rates over the iterations",
      .usage = "[--output=FILE.svg|.html|.csv|FOLDER/] [flags] FILE...",
      .flags =
          {
              {.name = "output",
               .value = "FILE",
               .help = "a picture (.svg), a page with it (.html), the numbers (.csv), or a folder for TensorBoard, "
                       "which ends with / [text on the terminal]"},
              {.name = "x", .value = "iterations|time", .help = "what the horizontal axis shows"},
          },
      .examples =
          "FILE is what train wrote as <snapshot_prefix>_metrics.jsonl (or --metrics=FILE), or the log of a\n"
          "training by crema or Caffe. Several are drawn together.\n\n"
          "examples, from the repository's root:\n"
          "  crema curves build/fashion_mnist/fashion_mnist_metrics.jsonl\n"
          "  crema curves --output=both.svg monday_metrics.jsonl old_caffe.log\n"
          "  crema curves --output=board/ *_metrics.jsonl && tensorboard --logdir=board\n",
      .arguments = "one FILE or several",
      .min_arguments = 1,
      .max_arguments = 100,
      .run = Run,
  };
  return command;
}

}  // namespace crema::tools
