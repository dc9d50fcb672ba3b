#include "onnx/model_reader.h"

#include <google/protobuf/io/coded_stream.h>

#include <climits>
#include <filesystem>
#include <set>

#include "base/byte_size.h"
#include "base/input_file.h"
#include "base/printable.h"
#include "crema/error.h"

namespace crema::onnx {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kOldestFormat = 3;

std::string ReadBytes(const std::string& path) {
  CheckRegularFile(path, ".onnx");
  const uint64_t size = fs::file_size(path);
  if (size > INT_MAX) {
    throw UserError({path, 0, 0}, "has " + FormatBytes(size) +
                                      ", but files of ONNX end at 2 GB; keep its weights in a file beside it (external "
                                      "data)");
  }
  return ReadFileText(path);
}

void CheckVersions(const ModelProto& model, const std::string& path) {
  if (model.ir_version() < kOldestFormat) {
    throw UserError({path, 0, 0}, "is of version " + std::to_string(model.ir_version()) +
                                      " of the format; those from 3 on are read: export it again with a newer program");
  }
  const int64_t set = OperatorSetOf(model);
  if (set < kOldestOperatorSet) {
    throw UserError({path, 0, 0}, "is of operator set " + std::to_string(set) + "; those from " +
                                      std::to_string(kOldestOperatorSet) + " on are read: export it with a newer one");
  }
}

void CheckNames(const GraphProto& graph, const std::string& path) {
  Diagnostics problems;
  std::set<std::string> made = {""};
  for (const TensorProto& tensor : graph.initializer()) made.insert(tensor.name());
  for (const ValueInfoProto& input : graph.input()) made.insert(input.name());
  std::set<std::string> all = made;
  for (const NodeProto& node : graph.node()) all.insert(node.output().begin(), node.output().end());
  for (const NodeProto& node : graph.node()) {
    for (const std::string& input : node.input()) {
      if (made.count(input) > 0) continue;
      problems.Error({path, 0, 0}, Describe(node) + ": reads \"" + Printable(input) +
                                       (all.count(input) == 0 ? "\", which nothing in the file makes"
                                                              : "\", which is made by itself or behind it: the nodes "
                                                                "stand in a circle or in no order"));
    }
    for (const std::string& output : node.output()) {
      if (output.empty() || made.insert(output).second) continue;
      problems.Error({path, 0, 0},
                     Describe(node) + ": makes \"" + Printable(output) + "\", which the file has already");
    }
  }
  for (const ValueInfoProto& output : graph.output()) {
    if (made.count(output.name()) > 0 && !output.name().empty()) continue;
    problems.Error({path, 0, 0}, "output \"" + Printable(output.name()) + "\": nothing in the file makes it");
  }
  if (graph.output().empty()) problems.Error({path, 0, 0}, "has no outputs");
  problems.ThrowIfErrors();
}

}  // namespace

ModelProto ReadModelFile(const std::string& path) {
  const std::string bytes = ReadBytes(path);
  ModelProto model;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  if (!model.ParsePartialFromCodedStream(&stream) || !stream.ConsumedEntireMessage() || !model.has_ir_version() ||
      !model.has_graph()) {
    throw UserError({path, 0, 0},
                    "is no file of ONNX, or is damaged; Caffe's .prototxt and .caffemodel are used as they are, "
                    "without import");
  }
  CheckVersions(model, path);
  CheckNames(model.graph(), path);
  return model;
}

int64_t OperatorSetOf(const ModelProto& model) {
  for (const OperatorSetIdProto& set : model.opset_import()) {
    if (set.domain().empty() || set.domain() == "ai.onnx") return set.version();
  }
  return 0;
}

std::vector<bool> NeededNodes(const GraphProto& graph) {
  std::set<std::string> wanted;
  for (const ValueInfoProto& output : graph.output()) wanted.insert(output.name());
  std::vector<bool> needed(graph.node_size());
  for (int i = graph.node_size() - 1; i >= 0; --i) {
    const NodeProto& node = graph.node(i);
    for (const std::string& output : node.output()) needed[i] = needed[i] || wanted.count(output) > 0;
    if (needed[i]) wanted.insert(node.input().begin(), node.input().end());
  }
  return needed;
}

std::string Describe(const NodeProto& node) {
  const std::string& name = !node.name().empty() || node.output().empty() ? node.name() : node.output(0);
  return "node \"" + Printable(name) + "\" (" + Printable(node.op_type()) + ")";
}

}  // namespace crema::onnx
