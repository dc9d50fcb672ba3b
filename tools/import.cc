// crema import: a file of ONNX, or a net of Darknet with its weights, as a net and its weights.
#include "darknet/import.h"

#include <iostream>

#include "base/atomic_file.h"
#include "base/number_text.h"
#include "base/printable.h"
#include "crema/error.h"
#include "onnx/import.h"
#include "schema/text_file.h"
#include "solver/snapshot.h"
#include "tools/commands.h"
#include "tools/flags.h"

DEFINE_bool(softmax, false, "put a Softmax behind the scores");
DEFINE_bool(swap_channels, false, "the net takes blue first");

DECLARE_int32(batch);
DECLARE_string(data);
DECLARE_string(output);

namespace crema::tools {

namespace {

void PrintTensors(const char* kind, const std::vector<ImportedNet::Tensor>& tensors) {
  for (const ImportedNet::Tensor& tensor : tensors) {
    std::cout << kind << tensor.name << "  " << tensor.shape.ToString() << "\n";
  }
}

void WriteNet(const std::string& path, const std::string& comment, const google::protobuf::Message& net) {
  AtomicFile file(path);
  file.Write("# " + comment + "\n" + TextOf(net));
  file.Commit();
}

// What trains the net; it begins with the weights that were read.
void WriteTraining(DarknetTraining training) {
  const std::string net = FLAGS_output + "_train_val.prototxt", solver = FLAGS_output + "_solver.prototxt";
  training.solver.set_net(net);
  training.solver.add_weights(FLAGS_output + ".caffemodel");
  training.solver.set_snapshot_prefix(FLAGS_output);
  WriteNet(net, "Trains what " + Printable(FLAGS_model) + " says.", training.net);
  WriteNet(solver, "train --solver=" + Printable(solver), training.solver);
  std::cout << solver << ", " << net << ": train it on " << FLAGS_data << "_train_lmdb and " << FLAGS_data
            << "_val_lmdb\n";
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
  if (!line.has("weights")) {
    problems.Error({line.program, 0, 0}, "--model=" + FLAGS_model +
                                             ": is a net of Darknet, whose weights are in a file of their own; give it "
                                             "with --weights=FILE.weights");
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

  const std::string net = FLAGS_output + ".prototxt", weights = FLAGS_output + ".caffemodel";
  WriteModel(weights, imported.weights);
  WriteNet(net, "Of " + Printable(FLAGS_model) + "; its weights: " + Printable(weights), imported.net);
  std::cout << net << ", " << weights << ": " << imported.nodes << (darknet ? " sections in " : " nodes in ")
            << imported.net.layer_size() << " layers, " << FormatCount(imported.parameters) << " parameters\n";
  PrintTensors("input   ", imported.inputs);
  PrintTensors("output  ", imported.outputs);
  if (!FLAGS_data.empty()) WriteTraining(std::move(training));
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
                {.name = "weights", .value = "FILE.weights", .help = "the weights of a .cfg, which needs them"},
                {.name = "output",
                 .value = "PREFIX",
                 .help = "PREFIX.prototxt and PREFIX.caffemodel are written; ones that are there are replaced",
                 .required = true},
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
