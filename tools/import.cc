// crema import: a file of ONNX, or a net of Darknet with its weights, as a net and its weights.
#include "darknet/import.h"

#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <system_error>

#include "base/atomic_file.h"
#include "base/input_file.h"
#include "base/number_text.h"
#include "base/paths.h"
#include "base/printable.h"
#include "crema/error.h"
#include "onnx/import.h"
#include "schema/text_file.h"
#include "solver/snapshots/snapshot.h"
#include "tools/commands.h"
#include "tools/flags.h"

DEFINE_bool(softmax, false, "put a Softmax behind the scores");
DEFINE_bool(swap_channels, false, "the net takes blue first");

DECLARE_int32(batch);
DECLARE_bool(force);
DECLARE_string(data);
DECLARE_string(output);

namespace crema::tools {

namespace {

void PrintTensors(const char* kind, const std::vector<ImportedNet::Tensor>& tensors) {
  for (const ImportedNet::Tensor& tensor : tensors) {
    std::cout << kind << tensor.name << "  " << tensor.shape.ToString() << "\n";
  }
}

struct TextOutput {
  std::string path, text;
};

TextOutput NetText(const std::string& path, const std::string& comment, const google::protobuf::Message& net) {
  return {path, "# " + comment + "\n" + TextOf(net)};
}

// What trains the net; it begins with the weights that were read, where there are any.
std::vector<TextOutput> TrainingTexts(DarknetTraining training, bool has_weights) {
  const std::string net = FLAGS_output + "_train_val.prototxt", solver = FLAGS_output + "_solver.prototxt";
  training.solver.set_net(net);
  if (has_weights) training.solver.add_weights(FLAGS_output + ".caffemodel");
  training.solver.set_snapshot_prefix(FLAGS_output);
  return {NetText(solver, "train --solver=" + Printable(solver), training.solver),
          NetText(net, "Trains what " + Printable(FLAGS_model) + " says.", training.net)};
}

// Whether `path` is a file with other bytes than these, which `bytes` makes, `size` in number.
bool HoldsSomethingElse(const std::string& path, uint64_t size, const std::function<std::string()>& bytes) {
  std::error_code absent;
  const uint64_t present = std::filesystem::file_size(path, absent);
  if (absent) return IsTaken(path);  // by a folder, or a link to nowhere
  if (present != size) return true;
  return ReadFileText(path) != bytes();
}

// Nets are made to be edited after they are written. weights: the file, empty where none is written.
void RefuseToReplace(const std::vector<TextOutput>& texts, const std::string& weights, const NetParameter& model) {
  if (FLAGS_force) return;
  Diagnostics problems;
  const auto refuse = [&](const std::string& path) {
    problems.Error({path, 0, 0},
                   "exists already, and is not what would be written now; give another --output, or "
                   "--force to replace it");
  };
  for (const TextOutput& output : texts) {
    if (HoldsSomethingElse(output.path, output.text.size(), [&] { return output.text; })) refuse(output.path);
  }
  const auto bytes = [&] { return model.SerializeAsString(); };
  if (!weights.empty() && HoldsSomethingElse(weights, model.ByteSizeLong(), bytes)) refuse(weights);
  problems.ThrowIfErrors();
}

ImportedNet ImportOnnx(const CommandLine& line) {
  if (line.has("data")) {
    throw UserError(Location{line.program, 0, 0},
                    "--data: is for nets of Darknet (.cfg), which say how they are trained; see crema finetune");
  }
  if (line.has("weights")) {
    throw UserError(Location{line.program, 0, 0},
                    "--weights: is for nets of Darknet (.cfg); a file of ONNX holds its weights: leave it out");
  }
  OnnxImportOptions options;
  if (FLAGS_batch > 0) options.batch = FLAGS_batch;
  options.shapes = ShapesOf(line);
  options.softmax = FLAGS_softmax;
  options.swap_channels = FLAGS_swap_channels;
  return ImportOnnxModel(FLAGS_model, options);
}

ImportedNet ImportDarknet(const CommandLine& line, DarknetTraining* training) {
  Diagnostics problems;
  const auto refuse = [&](const std::string& flag, const std::string& message) {
    if (line.has(flag)) problems.Error({line.program, 0, 0}, "--" + flag + ": is for files of ONNX; " + message);
  };
  refuse("shape", "of a net of Darknet change height and width in the .cfg");
  refuse("softmax", "a net of Darknet that classifies has a [softmax]");
  refuse("swap_channels", "a net of Darknet is always made to take blue first");
  if (!line.has("weights") && FLAGS_data.empty()) {
    problems.Error({line.program, 0, 0}, "--model=" + FLAGS_model +
                                             ": is a net of Darknet, whose weights are in a file of their own; give it "
                                             "with --weights=FILE.weights, or --data=DB to train it from scratch");
  } else if (line.has("weights") && FLAGS_weights.empty()) {
    problems.Error({line.program, 0, 0}, "--weights: names no file; leave it out to train from scratch");
  }
  problems.ThrowIfErrors();
  DarknetImportOptions options;
  if (FLAGS_batch > 0) options.batch = FLAGS_batch;
  options.data = FLAGS_data;
  return ImportDarknetNet(FLAGS_model, FLAGS_weights, options, FLAGS_data.empty() ? nullptr : training);
}

int Run(const CommandLine& line) {
  if (FLAGS_output.empty() || FLAGS_output.ends_with("/") || FLAGS_output.ends_with(".prototxt") ||
      FLAGS_output.ends_with(".caffemodel")) {
    throw UserError(Location{line.program, 0, 0}, "--output=" + FLAGS_output +
                                                      ": expected a name without its end, to which .prototxt and "
                                                      ".caffemodel are added");
  }
  const bool darknet = FLAGS_model.ends_with(".cfg");
  DarknetTraining training;
  const ImportedNet imported = darknet ? ImportDarknet(line, &training) : ImportOnnx(line);
  PrintWarnings(imported.notes);

  // Of a net that is trained from scratch nothing need be known.
  const bool has_weights = !darknet || line.has("weights") || imported.weights.layer_size() > 0;
  const std::string net = FLAGS_output + ".prototxt", weights = has_weights ? FLAGS_output + ".caffemodel" : "";
  std::vector<TextOutput> texts = {NetText(
      net, "Of " + Printable(FLAGS_model) + (has_weights ? "; its weights: " + Printable(weights) : ""), imported.net)};
  if (!FLAGS_data.empty()) {
    for (TextOutput& text : TrainingTexts(std::move(training), has_weights)) texts.push_back(std::move(text));
  }
  RefuseToReplace(texts, weights, imported.weights);
  // Nothing gets its name before all can be written.
  std::vector<std::unique_ptr<AtomicFile>> files;
  for (const TextOutput& output : texts) {
    files.push_back(std::make_unique<AtomicFile>(output.path));
    files.back()->Write(output.text);
  }
  if (has_weights) WriteModel(weights, imported.weights);
  for (const auto& file : files) file->Commit();
  std::cout << net << (has_weights ? ", " + weights : "") << ": " << imported.nodes
            << (darknet ? " sections in " : " nodes in ") << imported.net.layer_size() << " layers, "
            << (has_weights ? FormatCount(imported.parameters) + " parameters" : "without weights") << "\n";
  PrintTensors("input   ", imported.inputs);
  PrintTensors("output  ", imported.outputs);
  if (!FLAGS_data.empty()) {
    std::cout << texts[1].path << ", " << texts[2].path << ": train it on " << FLAGS_data << "_train_lmdb and "
              << FLAGS_data << "_val_lmdb\n";
  }
  return kExitSuccess;
}

}  // namespace

const Command& ImportCommand() {
  static const Command command = {
      .name = "import",
      .summary = "make a net and its weights of a file of ONNX or Darknet",
      .usage = "--model=FILE.onnx|FILE.cfg --output=PREFIX [flags]",
      .flags = {{.name = "model",
                 .value = "FILE",
                 .help = "the file to read: of ONNX, or a .cfg of Darknet",
                 .required = true},
                {.name = "weights",
                 .value = "FILE.weights",
                 .help = "the weights of a .cfg; with --data they may be left out, to train from scratch"},
                {.name = "output",
                 .value = "PREFIX",
                 .help = "PREFIX.prototxt and PREFIX.caffemodel are written",
                 .required = true},
                {.name = "force", .value = "", .help = "replace files that exist and hold something else"},
                {.name = "data",
                 .value = "DB",
                 .help = "of a .cfg with [yolo] or [region]: also write PREFIX_solver.prototxt and "
                         "PREFIX_train_val.prototxt, which train the net on DB_train_lmdb and DB_val_lmdb"},
                {.name = "batch",
                 .value = "N",
                 .help = "first extent of the inputs, where a file of ONNX leaves it open; 0: 1",
                 .min = 0,
                 .max = 1 << 20},
                ShapeFlag(),
                {.name = "softmax",
                 .value = "",
                 .help = "ONNX: put a Softmax behind the only output, as finetune, predict and evaluate want it"},
                {.name = "swap_channels",
                 .value = "",
                 .help =
                     "ONNX: the model takes red first, as most do; the net takes blue first, as crema's images are"}},
      .examples =
          "In its TEST phase the net computes what the model does: operator sets 7 to 24 of ONNX, and most\n"
          "sections of Darknet, YOLO among them. It can be trained on, but for what was computed from\n"
          "constants, which stays as it is (lr_mult: 0).\n\n"
          "examples:\n"
          "  crema import --model=resnet18.onnx --output=resnet18 --softmax --swap_channels\n"
          "  crema finetune --model=resnet18.prototxt --weights=resnet18.caffemodel --data=photos --output=pets\n"
          "  crema import --model=yolov3.cfg --weights=yolov3.weights --output=yolov3\n"
          "  crema detect --model=yolov3.prototxt --weights=yolov3.caffemodel street.jpg\n"
          "  crema import --model=birds.cfg --weights=darknet53.conv.74 --output=birds --data=birds\n"
          "  train --solver=birds_solver.prototxt\n",
      .run = Run,
  };
  return command;
}

}  // namespace crema::tools
