#include "onnx/runtime_comparison.h"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <stdexcept>

#include "graph/program.h"
#include "layer_weights.h"
#include "onnx/value_names.h"
#include "report/assumed_inputs.h"
#include "source_folder.h"

namespace crema::testing {

namespace {

constexpr size_t kMostBytes = size_t{1} << 29;  // of files at a time

std::string Python() { return FolderFrom("CREMA_ONNX_PYTHON", "python3"); }

// What a command prints, to stdout and stderr.
std::string Printed(const std::string& command, int* status) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  std::string text;
  char part[4096];
  while (const size_t read = std::fread(part, 1, sizeof part, pipe)) text.append(part, read);
  *status = pclose(pipe);
  return text;
}

std::string Extents(const Shape& shape) {
  std::string text;
  for (const int64_t extent : shape.dims()) text += (text.empty() ? "" : ",") + std::to_string(extent);
  return text.empty() ? "-" : text;
}

NetOptions TestOptions(const BlobShapes& shapes) {
  NetOptions options;
  options.phase = TEST;
  options.backward = false;
  options.keep_all = true;
  options.shapes = shapes;
  return options;
}

BlobShapes WithBatch(const Net& net, int64_t batch) {
  BlobShapes shapes;
  int64_t first = 0;
  for (const NetInput& input : net.inputs()) {
    Shape shape = input.value.shape();
    if (shape.axes() > 0 && first == 0) first = shape[0];
    if (shape.axes() > 0 && shape[0] == first) shape.set(0, batch);
    shapes.emplace_back(input.name, shape);
  }
  return shapes;
}

bool IsOpen(const OnnxModel& model) {
  const auto has_open = [](const OnnxModel::Tensor& input) {
    return std::find(input.dims.begin(), input.dims.end(), "N") != input.dims.end();
  };
  return std::any_of(model.inputs.begin(), model.inputs.end(), has_open);
}

}  // namespace

std::string RuntimeComparison::Unavailable() {
  int status = 0;
  const std::string said = Printed(Python() + " -c 'import numpy, onnxruntime'", &status);
  if (status == 0) return "";
  return Python() + " has no onnxruntime or no numpy (CREMA_ONNX_PYTHON names another Python): " + said;
}

void RuntimeComparison::Begin() {
  if (folder_) return;
  folder_ = std::make_unique<TemporaryFolder>();
  list_.open(*folder_ / "list.txt");
  bytes_ = 0;
}

std::string RuntimeComparison::NextModel() {
  Begin();
  return *folder_ / (std::to_string(nets_++) + ".onnx");
}

void RuntimeComparison::AddImported(const std::string& name, MadeModel model, const Fill& fill,
                                    const BlobShapes& shapes) {
  const std::string path = NextModel();
  model.Write(path);
  const ImportedNet imported = ImportOnnxModel(path, {});
  // The format's rules want the shape of an output; its extents, left open, are inferred and compared.
  for (size_t i = 0; i < imported.outputs.size(); ++i)
    model.SetRank(static_cast<int>(i), imported.outputs[i].shape.axes());
  model.Write(path);
  AddRun(name, path, *RunnableNet(imported, shapes), fill);
}

void RuntimeComparison::Add(const std::string& name, const NetFile& file, const std::vector<LayerWeights>& weights,
                            const Fill& fill, const OnnxOptions& options, bool small) {
  const OnnxModel model = MakeOnnxModel(file, weights, options);
  const std::string path = NextModel();
  bytes_ += model.bytes.size();
  std::ofstream(path, std::ios::binary) << model.bytes;
  BlobShapes shapes = options.shapes;
  std::vector<BlobShapes> runs = {shapes};
  if (IsOpen(model)) {
    ++open_;
    const Net net(file, TestOptions(shapes));
    const int64_t batch = net.inputs()[0].value.shape()[0];
    runs = small ? std::vector<BlobShapes>{WithBatch(net, 1), WithBatch(net, 2)}
                 : std::vector<BlobShapes>{shapes, WithBatch(net, batch + 1)};
  }
  for (const BlobShapes& run : runs) {
    Net net(file, TestOptions(run));
    net.LoadWeights(weights);
    AddRun(name, path, net, fill);
  }
  if (bytes_ > kMostBytes) Run();
}

void RuntimeComparison::AddRun(const std::string& name, const std::string& model, Net& net, const Fill& fill) {
  fill(net);
  list_ << "run\t" << name << "\t" << model << "\n";
  const auto write = [&](const char* kind, const std::string& tensor, const Tensor& value) {
    const std::string path = *folder_ / (std::to_string(tensors_++) + ".f32");
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(value.f32()), static_cast<std::streamsize>(value.bytes()));
    list_ << kind << "\t" << tensor << "\t" << Extents(value.shape()) << "\t" << path << "\n";
  };
  for (const NetInput& input : net.inputs()) write("input", input.name, input.value);
  net.Forward();
  const Graph& graph = net.compiled().graph;
  const std::vector<std::string> names = onnx::NameValues(graph);
  for (const int v : graph.outputs) {
    const Value& value = graph.values[v];
    if (onnx::IsInput(graph.nodes[value.producer])) continue;
    write("output", names[v], net.blob(value.name));
  }
  for (size_t v = 0; v < names.size(); ++v) {
    list_ << "shape\t" << names[v] << "\t" << Extents(graph.values[v].spec.shape) << "\n";
  }
}

void RuntimeComparison::Run() {
  list_.close();
  int status = 0;
  const std::string said = Printed(Python() + " " + SourceFolder() + "/tests/onnx/compare.py " +
                                       (*folder_ / "list.txt") + " " + std::to_string(tolerance_),
                                   &status);
  folder_.reset();
  std::istringstream lines(said);
  bool finished = false;
  for (std::string line; std::getline(lines, line);) {
    finished |= line == "done";
    if (line != "done") problems_.push_back(line);
  }
  if (!finished || status != 0) problems_.push_back("compare.py did not finish: " + said);
}

std::vector<std::string> RuntimeComparison::Problems() {
  if (folder_) Run();
  return problems_;
}

std::unique_ptr<Net> RunnableNet(const ImportedNet& imported, const BlobShapes& shapes) {
  auto net = std::make_unique<Net>(MakeNetFile(imported.net, {}), TestOptions(shapes));
  net->LoadWeights(LayerWeightsOf(imported.weights));
  return net;
}

std::vector<LayerWeights> WeightsOf(const Net& net) {
  std::vector<LayerWeights> weights;
  for (const Node& node : net.compiled().graph.nodes) {
    if (node.params.empty()) continue;
    LayerWeights& layer = weights.emplace_back();
    layer.name = node.name();
    layer.type = node.type->name;
    for (size_t i = 0; i < node.params.size(); ++i) {
      LayerWeights::Blob& blob = layer.blobs.emplace_back();
      blob.shape = node.setup->params()[i].shape;
      blob.data.resize(blob.shape.count());
      net.parameters()[node.params[i]].CopyDataTo(blob.data.data());
    }
  }
  return weights;
}

}  // namespace crema::testing
