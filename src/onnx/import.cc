#include "onnx/import.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/compiler.h"
#include "graph/program.h"
#include "onnx/graph_reader.h"
#include "onnx/model_reader.h"

namespace crema {

using onnx::GraphReader;
using onnx::ModelProto;

namespace {

// What a Reshape or Flatten of axis 1 makes of `from`; nothing where its dims do not fit.
std::optional<Shape> Reshaped(const LayerParameter& layer, const Shape& from) {
  if (layer.type() == "Flatten") return from.axes() > 0 ? std::optional(Shape{from[0], from.count(1)}) : std::nullopt;
  const auto& dims = layer.reshape_param().shape().dim();
  std::vector<int64_t> result(dims.begin(), dims.end());
  int64_t known = 1;
  for (size_t i = 0; i < result.size(); ++i) {
    if (result[i] == 0 && static_cast<int>(i) >= from.axes()) return std::nullopt;
    if (result[i] == 0) result[i] = from[static_cast<int>(i)];
    if (result[i] > 0) known *= result[i];
  }
  for (int64_t& extent : result) {
    if (extent == -1) extent = from.count() / known;
  }
  const Shape shape(result);
  return shape.count() == from.count() ? std::optional(shape) : std::nullopt;
}

// With a batch of 1 a Reshape does not tell which of its extents is the batch; `other` was read with another one.
void OpenReshapes(const GraphReader& one, const GraphReader& other, NetParameter* net) {
  for (LayerParameter& layer : *net->mutable_layer()) {
    if (layer.type() != "Reshape" && layer.type() != "Flatten") continue;
    const auto made = one.shapes().find(layer.name()), wanted = other.shapes().find(layer.name()),
               from = other.shapes().find(layer.bottom(0));
    if (made == one.shapes().end() || wanted == other.shapes().end() || from == other.shapes().end()) continue;
    if (Reshaped(layer, from->second) == wanted->second) continue;
    BlobShape dims;
    int open = 0;
    for (int axis = 0; axis < made->second.axes(); ++axis) {
      const bool stays = made->second.axes() == wanted->second.axes() && made->second[axis] == wanted->second[axis];
      dims.add_dim(stays ? made->second[axis] : -1);
      open += stays ? 0 : 1;
    }
    if (open != 1) continue;
    layer.set_type("Reshape");
    layer.clear_flatten_param();
    *layer.mutable_reshape_param()->mutable_shape() = dims;
  }
}

// Whether both have weights of the same extents: some run along the batch.
bool SameExtents(const NetParameter& a, const NetParameter& b) {
  if (a.layer_size() != b.layer_size()) return false;
  for (int i = 0; i < a.layer_size(); ++i) {
    const auto &blobs = a.layer(i).blobs(), &others = b.layer(i).blobs();
    if (blobs.size() != others.size()) return false;
    for (int k = 0; k < blobs.size(); ++k) {
      const auto &dims = blobs[k].shape().dim(), &other = others[k].shape().dim();
      if (!std::equal(dims.begin(), dims.end(), other.begin(), other.end())) return false;
    }
  }
  return true;
}

// Whether the net also computes what `other` does, with the shapes of its inputs.
bool Fits(const ImportedNet& imported, const ImportedNet& other) {
  if (!SameExtents(imported.weights, other.weights)) return false;
  NetOptions options = OptionsForUse();
  for (const ImportedNet::Tensor& input : other.inputs) options.shapes.emplace_back(input.name, input.shape);
  try {
    const auto compiled = Compile(MakeNetFile(imported.net, {}), options);
    for (const Value& value : compiled->graph.values) {
      for (const ImportedNet::Tensor& output : other.outputs) {
        if (value.name == output.name && value.spec.shape != output.shape) return false;
      }
    }
    return true;
  } catch (const UserError&) {
    return false;
  }
}

// Makes what was read hold for any batch, where the file leaves it open; a note where it cannot.
void OpenBatch(const ModelProto& model, const std::string& path, OnnxImportOptions options, const GraphReader& reader,
               ImportedNet* imported) {
  int64_t batch = 0;
  options.batch.reset();
  options.shapes.clear();
  for (const ImportedNet::Tensor& input : imported->inputs) {
    Shape& shape = options.shapes.emplace_back(input.name, input.shape).second;
    if (reader.open_inputs().count(input.name) == 0 || shape.axes() == 0) continue;
    batch = shape[0];
    shape.set(0, batch + 1);
  }
  bool fits = false;
  try {
    GraphReader other(model, path, options);
    const ImportedNet larger = other.Read();
    OpenReshapes(reader, other, &imported->net);
    fits = Fits(*imported, larger);
  } catch (const UserError&) {
    // The file holds the batch it was exported with.
  }
  if (fits) return;
  AddNote({path, 0, 0}, "holds for batches of " + std::to_string(batch) + " only; import it with --batch=N for another",
          imported);
}

}  // namespace

ImportedNet ImportOnnxModel(const std::string& path, const OnnxImportOptions& options) {
  const onnx::ModelProto model = onnx::ReadModelFile(path);
  GraphReader reader(model, path, options);
  ImportedNet imported = reader.Read();
  if (!reader.open_inputs().empty()) OpenBatch(model, path, options, reader, &imported);
  CheckThatItRuns(path, &imported);
  return imported;
}

}  // namespace crema
