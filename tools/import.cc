// crema import: a file of ONNX as a net and its weights.
#include "onnx/import.h"

#include <iostream>

#include "base/atomic_file.h"
#include "base/number_text.h"
#include "base/printable.h"
#include "crema/error.h"
#include "schema/text_file.h"
#include "solver/snapshot.h"
#include "tools/commands.h"
#include "tools/flags.h"

DEFINE_bool(softmax, false, "put a Softmax behind the scores");
DEFINE_bool(swap_channels, false, "the net takes blue first");

DECLARE_int32(batch);
DECLARE_string(output);

namespace crema::tools {

namespace {

void PrintTensors(const char* kind, const std::vector<ImportedNet::Tensor>& tensors) {
  for (const ImportedNet::Tensor& tensor : tensors) {
    std::cout << kind << tensor.name << "  " << tensor.shape.ToString() << "\n";
  }
}

int Run(const CommandLine& line) {
  if (FLAGS_output.empty() || FLAGS_output.ends_with("/") || FLAGS_output.ends_with(".prototxt") ||
      FLAGS_output.ends_with(".caffemodel")) {
    throw UserError(Location{line.program, 0, 0}, "--output=" + FLAGS_output +
                                                      ": expected a name without its end, to which .prototxt and "
                                                      ".caffemodel are added");
  }
  OnnxImportOptions options;
  if (FLAGS_batch > 0) options.batch = FLAGS_batch;
  options.shapes = ShapesOf(line);
  options.softmax = FLAGS_softmax;
  options.swap_channels = FLAGS_swap_channels;
  const ImportedNet imported = ImportOnnxModel(FLAGS_model, options);
  PrintWarnings(imported.notes);

  const std::string net = FLAGS_output + ".prototxt", weights = FLAGS_output + ".caffemodel";
  WriteModel(weights, imported.weights);
  AtomicFile file(net);
  file.Write("# Of " + Printable(FLAGS_model) + "; its weights: " + Printable(weights) + "\n" + TextOf(imported.net));
  file.Commit();

  std::cout << net << ", " << weights << ": " << imported.nodes << " nodes in " << imported.net.layer_size()
            << " layers, " << FormatCount(imported.parameters) << " parameters\n";
  PrintTensors("input   ", imported.inputs);
  PrintTensors("output  ", imported.outputs);
  return kExitSuccess;
}

}  // namespace

const Command& ImportCommand() {
  static const Command command = {
      .name = "import",
      .summary = "make a net and its weights of a file of ONNX",
      .usage = "--model=FILE.onnx --output=PREFIX [flags]",
      .flags = {{.name = "model", .value = "FILE.onnx", .help = "the file to read", .required = true},
                {.name = "output",
                 .value = "PREFIX",
                 .help = "PREFIX.prototxt and PREFIX.caffemodel are written; ones that are there are replaced",
                 .required = true},
                {.name = "batch",
                 .value = "N",
                 .help = "first extent of inputs that leave it open; 0: 1",
                 .min = 0,
                 .max = 1 << 20},
                ShapeFlag(),
                {.name = "softmax",
                 .value = "",
                 .help = "put a Softmax behind the only output, as finetune, predict and evaluate want it"},
                {.name = "swap_channels",
                 .value = "",
                 .help = "the model takes red first, as most do; the net takes blue first, as crema's images are"}},
      .examples =
          "In its TEST phase the net computes what the model does: operator sets 7 to 24. It can be trained on,\n"
          "but for what was computed from constants, which stays as it is (lr_mult: 0).\n\n"
          "example:\n"
          "  crema import --model=resnet18.onnx --output=resnet18 --softmax --swap_channels\n"
          "  crema finetune --model=resnet18.prototxt --weights=resnet18.caffemodel --data=photos --output=pets\n",
      .run = Run,
  };
  return command;
}

}  // namespace crema::tools
