// crema finetune: a trained net learns other classes.
#include <gflags/gflags.h>

#include <filesystem>
#include <iostream>

#include "base/log.h"
#include "base/paths.h"
#include "base/printable.h"
#include "crema/error.h"
#include "curves/metrics_observer.h"
#include "finetune/dataset.h"
#include "finetune/net_surgery.h"
#include "finetune/output_folder.h"
#include "finetune/recipe.h"
#include "solver/snapshots/prefix_files.h"
#include "tools/commands.h"
#include "tools/flags.h"
#include "tools/training_console.h"
#include "zoo/zoo.h"

DECLARE_string(data);
DECLARE_string(labels);
DECLARE_string(output);
DECLARE_string(zoo);
DECLARE_bool(force);
DECLARE_string(gpu);
DECLARE_int32(batch);
DEFINE_string(val, "", "what to validate with");
DEFINE_int32(epochs, 30, "times that all images are seen");
DEFINE_double(lr, 0, "learning rate at the start");
DEFINE_string(freeze, "", "layers that keep their parameters");
DEFINE_int32(patience, 10, "epochs without a better validation");
DEFINE_int64(seed, 1, "of all random numbers");
DEFINE_bool(augment, true, "cut and mirror training images at random");
DEFINE_bool(balance_classes, false, "draw every class equally often");
DEFINE_bool(from_scratch, false, "start without weights");

namespace crema::tools {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void Fail(const CommandLine& line, const std::string& message) {
  throw UserError(Location{line.program, 0, 0}, message);
}

std::string Absolute(const std::string& path) {
  return WithoutTrailingSlashes(fs::absolute(path).lexically_normal().string());
}

ZooModel ModelOfZoo(const CommandLine& line) {
  std::error_code ignored;
  const bool is_path = FLAGS_model.find('/') != std::string::npos || FLAGS_model.ends_with(".prototxt");
  try {
    if (!is_path) return FindModel(FindZoo(FLAGS_zoo), FLAGS_model);
  } catch (const UserError&) {
    if (!fs::is_directory(FLAGS_model, ignored)) throw;
  }
  if (!fs::is_directory(FLAGS_model, ignored)) Fail(line, "--model=" + FLAGS_model + ": there is no such file");
  const bool whole = fs::exists(FLAGS_model + "/train_val.prototxt", ignored);
  Fail(line, "--model=" + FLAGS_model + " is a folder; give the net in it, and what it learnt: --model=" + FLAGS_model +
                 (whole ? "/train_val.prototxt" : "/deploy.prototxt") + " --weights=FILE");
}

// Net and weights of --model, which is a file or the name of a model of the zoo.
void ChooseModel(const CommandLine& line, RecipeRequest* request) {
  std::error_code ignored;
  std::string of_zoo;
  if (fs::is_regular_file(FLAGS_model, ignored)) {
    request->model = FLAGS_model;
    if (FLAGS_weights.empty() && !FLAGS_from_scratch) {
      Fail(line,
           "--weights=FILE is missing: what --model=" + FLAGS_model + " learnt; or --from_scratch, to start without");
    }
  } else {
    const ZooModel model = ModelOfZoo(line);
    request->model = model.folder + "/train_val.prototxt";
    if (FLAGS_weights.empty() && !FLAGS_from_scratch) {
      if (!model.has_weights) {
        RefuseDetector(ReadNetFile(request->model), request->model);
        Fail(line, "the zoo has no weights of " + FLAGS_model + " here" +
                       (model.card.weights_url.empty() ? "; give them with --weights=FILE, or start --from_scratch"
                                                       : "; fetch them: crema zoo get " + FLAGS_model));
      }
      of_zoo = Absolute(model.weights_path());
    }
  }
  if (FLAGS_from_scratch && !FLAGS_weights.empty()) Fail(line, "--weights and --from_scratch exclude each other");
  const auto add = [&](const std::string& path) {
    if (path.find(',') != std::string::npos) {
      Fail(line, "the weights are " + path + ", but commas part the names of files of weights; copy it elsewhere");
    }
    request->weights += (request->weights.empty() ? "" : ",") + path;
  };
  if (!of_zoo.empty()) add(of_zoo);
  for (const std::string& path : CommaList(line, "weights", FLAGS_weights)) add(Absolute(path));
}

RecipeRequest RequestOf(const CommandLine& line) {
  RecipeRequest request;
  ChooseModel(line, &request);
  request.output = Absolute(FLAGS_output);
  if (request.output.find(',') != std::string::npos) {
    Fail(line, "--output=" + FLAGS_output + " is " + request.output +
                   ", but commas part the names of files of weights; give one without");
  }
  if (const std::string data = Absolute(FLAGS_data); request.output == data || request.output.starts_with(data + "/")) {
    Fail(line, "--output=" + FLAGS_output + " lies in --data=" + FLAGS_data +
                   ", where every folder is a class; give one that lies elsewhere");
  }
  request.epochs = FLAGS_epochs;
  if (line.has("lr")) {
    if (!(FLAGS_lr > 0)) Fail(line, "--lr must be above 0");
    request.learning_rate = FLAGS_lr;
  }
  constexpr std::string_view kUntil = "until:";
  if (!FLAGS_freeze.empty()) {
    if (!FLAGS_freeze.starts_with(kUntil) || FLAGS_freeze.size() == kUntil.size()) {
      Fail(line, "--freeze=" + FLAGS_freeze + ": expected until:LAYER, the last layer that keeps its parameters");
    }
    if (FLAGS_from_scratch) Fail(line, "--freeze and --from_scratch exclude each other: there is nothing to keep");
    request.frozen_until = FLAGS_freeze.substr(kUntil.size());
  }
  request.batch = FLAGS_batch;
  request.patience = FLAGS_patience;
  request.seed = static_cast<uint64_t>(FLAGS_seed);
  request.augment = FLAGS_augment;
  request.balance_classes = FLAGS_balance_classes;
  request.precision = NetOptionsOf(line).precision;
  return request;
}

// Of what this run writes, also where --force replaces what another one does.
PrefixLock Lock(const std::string& output) {
  try {
    return PrefixLock(SnapshotPrefixIn(output));
  } catch (const EnvironmentError& error) {
    throw EnvironmentError(std::string(error.what()) + " (of this command: another --output)");
  }
}

TrainingResult Train(const CommandLine& line, const std::string& solver_path, bool resume) {
  TrainingConsole console(SolverAction::kStop, SolverAction::kSnapshot);
  SolverOptions options;
  options.path = solver_path;
  options.devices = DevicesOf(line);
  options.data_threads = FLAGS_data_threads;
  if (resume) options.snapshot = "auto";
  console.Watch(&options);
  MetricsObserver metrics(
      {"", DirectoryOf(solver_path) + "/curves.html", [](const std::string& message) { LOG(WARNING) << message; }});
  options.observers.push_back(&metrics);
  Solver solver(ReadSolverFile(solver_path), options);
  try {
    return solver.Train();
  } catch (const NotFinite& error) {
    throw NotFinite(std::string(error.what()) + " Of this command, --lr sets base_lr; --force begins anew with it.");
  }
}

// As `crema evaluate` does, of the best parameters, on the first GPU where there are any.
int Evaluate(const CommandLine& line, const std::string& output, const std::string& weights) {
  std::cout << "\nValidation of " << weights << ":\n" << std::flush;
  std::vector<std::string> flags = {"--model=" + output + "/train_val.prototxt", "--weights=" + weights,
                                    "--labels=" + output + "/labels.txt", "--output=" + output + "/report",
                                    "--batch=32"};
  if (line.has("gpu")) flags.push_back("--gpu=" + (FLAGS_gpu == "all" ? "0" : CommaList(line, "gpu", FLAGS_gpu)[0]));
  const int code = EvaluateCommand().run(ParseFlags(EvaluateCommand(), "crema evaluate", flags));
  if (code == kExitSuccess) {
    std::cout << "\nTo use it:\n  crema predict --model=" << ShellWord(output + "/deploy.prototxt")
              << " --weights=" << ShellWord(weights) << " --labels=" << ShellWord(output + "/labels.txt")
              << " IMAGE...\n";
  }
  return code;
}

int Run(const CommandLine& line) {
  ApplyThreads();
  const RecipeRequest request = RequestOf(line);
  DatasetRequest data;
  data.data = FLAGS_data;
  data.validation = FLAGS_val;
  data.labels = FLAGS_labels;
  data.seed = request.seed;
  data.threads = FLAGS_data_threads;
  const Dataset dataset = FindDataset(data);
  std::vector<Diagnostic> warnings = dataset.warnings.list();
  const auto files = MakeRecipe(request, dataset, WeightsOf(line, request.weights), &warnings);
  PrintWarnings(warnings);
  MakeOutputFolder(request.output);
  const PrefixLock lock = Lock(request.output);
  lock.RemoveUnfinished();
  const FoundFolder found = WriteOutputFolder(request.output, files, FLAGS_force);
  std::cout << dataset.labels.size() << " classes, " << dataset.train_count << " images to train with, "
            << dataset.validation_count << " to validate with";
  if (!dataset.broken.empty()) std::cout << "; " << dataset.broken.size() << " that cannot be read are left out";
  std::cout << "\n" << CountsTable(dataset.counts);
  std::cout << "\n" << (found.same_request ? "going on with " : "wrote ") << request.output;
  if (!found.moved_from.empty()) std::cout << ", which was " << found.moved_from << "; its files now say so";
  std::cout << std::endl;

  const TrainingResult result = Train(line, request.output + "/solver.prototxt", found.same_request);
  if (result.stopped_early) {
    std::cout << "stopped; the same command goes on\n";
    return result.failed_snapshots > 0 ? kExitEnvironment : kExitSuccess;
  }
  if (!result.best) throw EnvironmentError("the best parameters could not be written; see above");
  const int code = Evaluate(line, request.output, result.best->model_path);
  return code == kExitSuccess && result.failed_snapshots > 0 ? kExitEnvironment : code;
}

}  // namespace

const Command& FinetuneCommand() {
  static const Command command = {
      .name = "finetune",
      .summary = "teach a trained net other classes, from a folder of images",
      .usage = "--model=NAME|FILE --data=DIR|DB --output=DIR [--weights=FILE] [flags]",
      .flags =
          {
              {.name = "model",
               .value = "NAME|FILE",
               .help = "a model of the zoo (crema zoo list), or a net file",
               .required = true},
              {.name = "data",
               .value = "DIR|DB",
               .help = "a folder with one folder of images for each class, perhaps in folders train and val; or a "
                       "database; or what convert_imageset --split=train:0.9,val:0.1 was told to write",
               .required = true},
              {.name = "output", .value = "DIR", .help = "the folder to work in", .required = true},
              {.name = "weights", .value = "FILE[,FILE]", .help = "what the net learnt [the zoo's]"},
              {.name = "val", .value = "DB", .help = "database to validate with, where --data is one"},
              {.name = "labels", .value = "FILE", .help = "names of the classes, where --data is a database"},
              {.name = "epochs", .value = "N", .help = "times that all images are seen", .min = 1, .max = 100000},
              {.name = "lr",
               .value = "F",
               .help = "learning rate at the start [0.3 of what the model's solver begins with, or 0.001]",
               .has_default = false},
              {.name = "freeze", .value = "until:LAYER", .help = "keep the parameters of the layers up to this one"},
              {.name = "patience",
               .value = "N",
               .help = "stop after N epochs that were not better than the best; 0: never",
               .min = 0,
               .max = 100000},
              {.name = "batch",
               .value = "N",
               .help = "images of an iteration [the model's, at most 64 and a quarter of the images]",
               .min = 1,
               .max = 65536,
               .has_default = false},
              {.name = "augment",
               .value = "",
               .help = "cut and mirror training photographs at random; on unless --noaugment"},
              {.name = "balance_classes",
               .value = "",
               .help = "train with images of rare classes as often as with those of others"},
              {.name = "from_scratch", .value = "", .help = "start without weights, for comparison"},
              {.name = "seed", .value = "N", .help = "of all random numbers", .min = 0},
              {.name = "force", .value = "", .help = "replace the files and snapshots of another run in --output"},
              {.name = "zoo", .value = "DIR", .help = "the folder of models [found beside the program]"},
              PrecisionFlag(),
              ThreadsFlag(),
              DataThreadsFlag(),
              GpusFlag(),
          },
      .examples =
          "Writes train_val.prototxt, deploy.prototxt, solver.prototxt and labels.txt into --output, to be read\n"
          "and edited, trains until nothing improves, keeps the best parameters, and evaluates them into\n"
          "report/. The same command goes on where it was stopped or killed. Images that cannot be read are\n"
          "named and left out.\n\n"
          "example, from the repository's root:\n"
          "  crema finetune --model=cifar_quick --data=photos --output=build/photos_net\n",
      .run = Run,
  };
  return command;
}

}  // namespace crema::tools
