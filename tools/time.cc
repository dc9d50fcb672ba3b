// crema time: how long each layer takes.
#include <algorithm>
#include <iostream>
#include <span>

#include "base/output_path.h"
#include "crema/error.h"
#include "graph/program.h"
#include "report/assumed_inputs.h"
#include "report/data_timing.h"
#include "report/probe.h"
#include "report/step_recording.h"
#include "report/timing_table.h"
#include "report/trace.h"
#include "tools/commands.h"
#include "tools/flags.h"

namespace crema::tools {

namespace {

constexpr int kWarmUp = 2;  // passes that create threads and touch memory for the first time

// Extent of the first axis of the net's first blob.
int64_t BatchSize(const Net& net) {
  for (const Node& node : net.compiled().graph.nodes) {
    for (int v : node.tops) {
      const Shape& shape = net.compiled().graph.values[v].spec.shape;
      return shape.axes() > 0 ? shape[0] : 1;
    }
  }
  return 0;
}

void RunPasses(Net& net, int passes, bool backward) {
  for (int i = 0; i < passes; ++i) {
    net.ClearGradients();
    net.Forward();
    if (backward) net.Backward();
  }
}

void WriteProfile(const Net& net, std::span<const StepEvent> events) {
  const size_t steps = static_cast<size_t>(net.compiled().program.recorded());
  Trace trace(net.compiled());
  trace.AddSteps(events.first(std::min(events.size(), steps * static_cast<size_t>(FLAGS_profile_iterations))));
  trace.Write(FLAGS_profile);
}

// Whether --data was given; other commands take a path for it.
bool WantsData(const CommandLine& line) {
  if (!line.has("data")) return false;
  const std::string value = line.values("data").back();
  if (value != "true" && value != "false") {
    throw UserError({line.program, 0, 0}, "--data=" + value +
                                              ": time takes --data without a value; what is read stands "
                                              "in the data layers of the net");
  }
  return value == "true";
}

int RunData(const CommandLine& line) {
  if (!FLAGS_profile.empty()) {
    throw UserError({line.program, 0, 0},
                    "--profile and --data are both given; a profile of the net shows its waits "
                    "for data as well, leave --data out");
  }
  ApplyThreads();
  NetOptions options = NetOptionsOf(line);
  options.backward = options.phase == TRAIN;
  const NetFile file = ReadModel(line);
  const std::vector<DataTiming> layers = TimeData(file, options, FLAGS_iterations);
  std::cout << file.net.name() << ", phase " << Phase_Name(options.phase) << ", data layers alone, means of "
            << FLAGS_iterations << " batches\n\n"
            << DataTimingText(layers) << "\n"
            << std::flush;
  options.context.device = &DeviceOf(line);
  Net net(WithoutWriters(AssumeInputs(file, options.shapes, false)), options);
  PrintWarnings(net.warnings());
  FillInputs(net);
  if (!FLAGS_weights.empty()) CopyWeightsFlag(line, net);
  std::cout << PassTimingText(TimePasses(net, FLAGS_iterations, options.backward), options.backward);
  return kExitSuccess;
}

int Run(const CommandLine& line) {
  if (WantsData(line)) return RunData(line);
  if (!FLAGS_profile.empty()) CheckOutputFile(FLAGS_profile, true, {FLAGS_model});
  ApplyThreads();
  NetOptions options = NetOptionsOf(line);
  options.backward = options.phase == TRAIN;
  options.context.device = &DeviceOf(line);
  Net net(WithoutWriters(AssumeInputs(ReadModel(line), options.shapes, false)), options);
  PrintWarnings(net.warnings());
  FillInputs(net);
  if (!FLAGS_weights.empty()) CopyWeightsFlag(line, net);
  RunPasses(net, kWarmUp, options.backward);
  StepRecording recording;
  recording.Reserve(static_cast<size_t>(net.compiled().program.recorded()) * static_cast<size_t>(FLAGS_iterations));
  net.set_recorder(&recording);
  RunPasses(net, FLAGS_iterations, options.backward);
  net.set_recorder(nullptr);
  std::cout << net.name() << ", phase " << Phase_Name(options.phase) << ", medians of " << FLAGS_iterations
            << " passes\n\n"
            << TimingTable(net.compiled(), recording.events(), BatchSize(net));
  if (!FLAGS_profile.empty()) WriteProfile(net, recording.events());
  return kExitSuccess;
}

}  // namespace

const Command& TimeCommand() {
  static const Command command = {
      .name = "time",
      .summary = "measure how long each layer of a net takes, forward and backward",
      .usage = "--model=FILE [flags]",
      .flags = {ModelFlag(),
                WeightsFlag(false),
                IterationsFlag("passes to measure, after two that are not"),
                PhaseFlag("TRAIN times backward passes too [TRAIN]"),
                {.name = "data",
                 .value = "",
                 .help = "time the data layers alone, and say whether the net waits for them"},
                LevelFlag(),
                StageFlag(),
                ShapeFlag(),
                PrecisionFlag(),
                MemoryLimitFlag(),
                SkipPassesFlag(),
                ThreadsFlag(),
                DataThreadsFlag(),
                ProfileFlag(),
                ProfileIterationsFlag(),
                GpuFlag()},
      .examples =
          "examples, from the repository's root:\n"
          "  What a training iteration of LeNet is made of:\n"
          "    crema time --model=model_zoo/lenet/train_val.prototxt\n"
          "  Classifying one image on one thread:\n"
          "    crema time --model=model_zoo/lenet/deploy.prototxt --phase=TEST \\\n"
          "      --shape=data=1,1,28,28 --threads=1\n"
          "  Whether images come fast enough:\n"
          "    crema time --model=train_val.prototxt --data\n\n"
          "Prints a table to stdout: of each layer, and of each reorder and sum between them, the\n"
          "kernel, the median time, operations and bytes a second in 1e9 and the share of the whole.\n"
          "Data layers read their data and are timed too, unless --shape is given for each of their\n"
          "tops, which leaves them out. --data prints records a second of each data layer, which reads\n"
          "and transforms as in training, and what a pass of the net takes and waits for.\n",
      .run = Run,
  };
  return command;
}

}  // namespace crema::tools
