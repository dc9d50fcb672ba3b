#include "report/assumed_inputs.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "compiler/compiler.h"
#include "crema/layer.h"
#include "graph/boundary_types.h"

namespace crema {

namespace {

constexpr std::array<std::string_view, 11> kReaders = {
    "Data",         "AnnotatedData",     "HDF5Data",   "VideoData",  "ImageData", "DenseImageData",
    "ImageSegData", "ImageLabelmapData", "MemoryData", "WindowData", "Python"};

const Shape* Find(const BlobShapes& shapes, const std::string& name) {
  const auto at = std::find_if(shapes.begin(), shapes.end(), [&](const auto& entry) { return entry.first == name; });
  return at == shapes.end() ? nullptr : &at->second;
}

bool HasAllShapes(const LayerParameter& layer, const BlobShapes& shapes) {
  return layer.top_size() > 0 && std::all_of(layer.top().begin(), layer.top().end(),
                                             [&](const std::string& top) { return Find(shapes, top) != nullptr; });
}

// Keeps what the net needs to know of the layer: its name, tops and when it takes part.
LayerParameter InputOf(const LayerParameter& layer, const BlobShapes& shapes) {
  LayerParameter input;
  input.set_name(layer.name());
  input.set_type("Input");
  *input.mutable_include() = layer.include();
  *input.mutable_exclude() = layer.exclude();
  if (layer.has_phase()) input.set_phase(layer.phase());
  for (const std::string& top : layer.top()) {
    input.add_top(top);
    BlobShape* shape = input.mutable_input_param()->add_shape();
    for (int64_t extent : Find(shapes, top)->dims()) shape->add_dim(extent);
  }
  return input;
}

}  // namespace

bool ReadsData(const LayerParameter& layer) {
  return layer.bottom_size() == 0 && std::find(kReaders.begin(), kReaders.end(), layer.type()) != kReaders.end();
}

NetFile AssumeInputs(NetFile file, const BlobShapes& shapes, bool only_unknown) {
  for (LayerParameter& layer : *file.net.mutable_layer()) {
    const bool unknown = layer.bottom_size() == 0 && FindLayerType(layer.type()) == nullptr;
    if ((unknown || (!only_unknown && ReadsData(layer))) && HasAllShapes(layer, shapes)) {
      layer = InputOf(layer, shapes);
    }
  }
  return file;
}

NetFile WithoutWriters(NetFile file) {
  for (LayerParameter& layer : *file.net.mutable_layer()) {
    if (!IsOutputType(layer.type())) continue;
    layer.set_type("Silence");
    layer.clear_hdf5_output_param();
  }
  return file;
}

BlobShapes ShapesForBatch(const Graph& graph, int64_t batch, int64_t wanted) {
  BlobShapes shapes;
  for (const Node& node : graph.nodes) {
    if (!node.setup->is_source() || !node.bottoms.empty()) continue;
    for (const int top : node.tops) {
      Shape shape = graph.values[top].spec.shape;
      if (shape.axes() > 0 && shape[0] == batch) shape.set(0, wanted);
      shapes.emplace_back(graph.values[top].name, std::move(shape));
    }
  }
  return shapes;
}

std::unique_ptr<CompiledNet> CompileForOneMore(const CompiledNet& net, NetOptions options, int64_t batch) {
  options.shapes = ShapesForBatch(net.graph, batch, batch + 1);
  options.needs_data = false;
  return Compile(AssumeInputs(net.file, options.shapes, false), options);
}

}  // namespace crema
