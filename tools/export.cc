// crema export: a trained net as a file of ONNX.
#include "onnx/export.h"

#include <algorithm>
#include <iostream>

#include "base/atomic_file.h"
#include "base/byte_size.h"
#include "base/number_text.h"
#include "compiler/selection.h"
#include "crema/error.h"
#include "inference/scoring_net.h"
#include "report/assumed_inputs.h"
#include "schema/text_file.h"
#include "tools/commands.h"
#include "tools/flags.h"

DEFINE_bool(with_transform, false, "make values ready in the file");

DECLARE_int32(batch);
DECLARE_string(blob);
DECLARE_string(output);

namespace crema::tools {

namespace {

// How images are made ready for an input.
struct Preparation {
  std::string input;
  TransformationParameter transform;
};

void Print(const Preparation& preparation, const std::vector<OnnxModel::Tensor>& inputs) {
  const auto input =
      std::find_if(inputs.begin(), inputs.end(), [&](const auto& tensor) { return tensor.name == preparation.input; });
  if (input == inputs.end()) return;
  // Not records of tables and texts, whose extents behind the second are 1.
  const std::vector<std::string>& dims = input->dims;
  const bool images = dims.size() > 3 && dims[dims.size() - 2] != "1" && dims.back() != "1";
  const std::string transform = LineOf(preparation.transform);
  if (!images && transform.empty()) return;
  std::cout << "\"" << preparation.input << "\" takes " << (images ? "images" : "values");
  if (transform.empty()) {
    std::cout << " with values from 0 to 255";
  } else {
    std::cout << " as transform_param says: " << transform << "\n  ";
    if (FLAGS_with_transform) {
      std::cout << (images ? "with values from 0 to 255, " : "")
                << "of which the file makes (value - mean) / std * scale";
    } else {
      std::cout << "that is (value - mean) / std * scale" << (images ? ", of values from 0 to 255" : "");
    }
  }
  if (images && dims[1] == "3") std::cout << ", channels in the order blue, green, red";
  std::cout << "\n";
}

// A net for training becomes what `crema predict` makes of it.
NetFile ReadNet(const CommandLine& line, const NetOptions& options, std::vector<Preparation>* preparations) {
  NetFile file = ReadModel(line);
  PrintWarnings(file.warnings);
  file.warnings.clear();
  NetState state = StateOf(file.net, options);
  state.set_phase(TEST);
  const auto takes_part = [&](const LayerParameter& layer) { return TakesPart(state, layer); };
  const auto& layers = file.net.layer();
  const auto reads = [&](const LayerParameter& layer) { return ReadsData(layer) && takes_part(layer); };
  if (FLAGS_with_transform || std::any_of(layers.begin(), layers.end(), reads)) {
    ScoringNet scoring = MakeScoringNet(std::move(file), FLAGS_model, options);
    if (FLAGS_with_transform && !scoring.says_transform) {
      throw UserError(Location{line.program, 0, 0}, "--with_transform: " + FLAGS_model +
                                                        " does not say how values are made ready; add transform_param "
                                                        "to its Input layer");
    }
    if (scoring.says_transform) preparations->push_back({scoring.input, scoring.transform});
    return std::move(scoring.file);
  }
  for (const LayerParameter& layer : layers) {
    if (layer.type() != "Input" || !layer.has_transform_param() || !takes_part(layer) || layer.top_size() == 0)
      continue;
    preparations->push_back({layer.top(0), layer.transform_param()});
  }
  return file;
}

void PrintTensors(const char* kind, const std::vector<OnnxModel::Tensor>& tensors) {
  for (const OnnxModel::Tensor& tensor : tensors) {
    std::string dims;
    for (const std::string& extent : tensor.dims) dims += (dims.empty() ? "" : "x") + extent;
    std::cout << kind << tensor.name << "  " << (dims.empty() ? "scalar" : dims) << "\n";
  }
}

int Run(const CommandLine& line) {
  if (!FLAGS_output.ends_with(".onnx")) {
    throw UserError(Location{line.program, 0, 0}, "--output=" + FLAGS_output + ": expected a name that ends in .onnx");
  }
  NetOptions net_options = NetOptionsOf(line);
  if (line.has("blob")) net_options.outputs = CommaList(line, "blob", FLAGS_blob);
  OnnxOptions options;
  options.shapes = net_options.shapes;
  options.level = net_options.level;
  options.stages = net_options.stages;
  options.outputs = net_options.outputs;
  if (FLAGS_batch > 0) options.batch = FLAGS_batch;
  std::vector<Preparation> preparations;
  const NetFile file = ReadNet(line, net_options, &preparations);
  if (FLAGS_with_transform) options.transform = {preparations[0].input, preparations[0].transform};
  const WeightsFiles weights = WeightsOf(line, FLAGS_weights);
  const OnnxModel model = MakeOnnxModel(file, weights.layers(), options);
  PrintWarnings(model.notes);
  RefuseUnused(line, weights, model.weights);
  CheckMissing(line, model.weights, model.needed);
  WriteWholeFile(FLAGS_output, model.bytes);

  std::cout << FLAGS_output << ": " << model.layers << " layers in " << model.nodes << " nodes, "
            << FormatCount(model.parameters) << " parameters, " << FormatBytes(model.bytes.size()) << "\n";
  PrintTensors("input   ", model.inputs);
  PrintTensors("output  ", model.outputs);
  for (const Preparation& preparation : preparations) Print(preparation, model.inputs);
  return kExitSuccess;
}

}  // namespace

const Command& ExportCommand() {
  static const Command command = {
      .name = "export",
      .summary = "write a trained net as a file of ONNX, for other programs",
      .usage = "--model=FILE --weights=FILE --output=FILE.onnx [flags]",
      .flags = {ModelFlag(),
                WeightsFlag(true),
                MissingFlag(),
                {.name = "output",
                 .value = "FILE.onnx",
                 .help = "the file to write; one that is there is replaced",
                 .required = true},
                {.name = "blob",
                 .value = "NAME[,NAME]",
                 .help = "the outputs of the file; what they do not need is left out [the net's outputs]"},
                {.name = "batch",
                 .value = "N",
                 .help = "items in a run of the file; 0: any number where the net allows it, else as the net says",
                 .min = 0,
                 .max = 1 << 20},
                {.name = "with_transform",
                 .value = "",
                 .help =
                     "the file takes values from 0 to 255 and applies mean, std and scale of transform_param itself"},
                ShapeFlag(),
                LevelFlag(),
                StageFlag()},
      .examples =
          "The file holds the net in its TEST phase: ONNX version 7 with operator set 13, which ONNX Runtime\n"
          "1.6 and later run. Of a net for training it holds what `crema predict` would run; give the shape of\n"
          "its images: --shape=data=1,3,32,32. How images are to be made ready for the file is printed.\n\n"
          "example, from the repository's root:\n"
          "  crema export --model=model_zoo/lenet/deploy.prototxt \\\n"
          "    --weights=model_zoo/lenet/lenet.caffemodel --output=lenet.onnx\n",
      .run = Run,
  };
  return command;
}

}  // namespace crema::tools
