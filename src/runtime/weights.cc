#include "runtime/weights.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "compiler/compiler.h"
#include "crema/error.h"
#include "graph/namesakes.h"
#include "runtime/net_impl.h"
#include "schema/blob_numbers.h"

namespace crema {

namespace {

// Blobs written before shapes had any number of axes are num x channels x height x width, padded with ones in front;
// C3D, which has a length beside the height, pads with ones to five axes. Where the layer is not `strict`, the number
// of elements is all that counts.
bool SameShape(const LayerWeights::Blob& blob, const Shape& wanted, bool strict) {
  if (!strict) return blob.shape.count() == wanted.count();
  constexpr int kVolumeAxes = 5;
  if (!blob.legacy_shape && blob.shape.axes() != kVolumeAxes) return blob.shape == wanted;
  if (wanted.axes() > blob.shape.axes()) return false;
  std::vector<int64_t> padded(blob.shape.axes() - wanted.axes(), 1);
  padded.insert(padded.end(), wanted.dims().begin(), wanted.dims().end());
  return blob.shape.dims() == padded;
}

void CheckLayer(const LayerWeights& from, const Node& to, Location where, Diagnostics& diagnostics) {
  const std::string layer = "layer \"" + to.name() + "\" (" + to.type->name + ")";
  const std::string remedy =
      "; give weights of this net, or, to train the layer afresh, rename it and start a new training from these with "
      "--weights";
  if (from.blobs.size() != to.params.size()) {
    const bool scaled = to.type->name == "BatchNorm" && from.blobs.size() == 5 && to.params.size() == 3;
    diagnostics.Error(
        where, layer + " has " + std::to_string(to.params.size()) + " blob(s), but the weights file has " +
                   std::to_string(from.blobs.size()) + " for it" +
                   (scaled ? ", a scale and a shift among them; add batch_norm_param { scale_bias: true }" : remedy));
    return;
  }
  for (size_t i = 0; i < from.blobs.size(); ++i) {
    const Shape& wanted = to.setup->params()[i].shape;
    if (!SameShape(from.blobs[i], wanted, to.param->strict_dim())) {
      const std::string as_they_are =
          from.blobs[i].shape.count() == wanted.count()
              ? "; or, where these are the same values in the same order, as a fully connected layer's are those of a "
                "convolution, let the layer take them: strict_dim: false"
              : "";
      diagnostics.Error(where, layer + ": blob " + std::to_string(i) + " is " + wanted.ToString() + " here but " +
                                   from.blobs[i].shape.ToString() + " in the weights file" + remedy + as_they_are);
    }
  }
  if (diagnostics.has_errors()) return;
  for (size_t i = 0; i < from.blobs.size(); ++i) {
    const auto& values = from.blobs[i].data;
    if (static_cast<int64_t>(values.size()) != from.blobs[i].shape.count()) {
      diagnostics.Error(where, layer + ": blob " + std::to_string(i) + " is " + from.blobs[i].shape.ToString() +
                                   ", but has " + std::to_string(values.size()) + " numbers");
      return;
    }
    const auto nan = std::find_if(values.begin(), values.end(), [](float value) { return std::isnan(value); });
    if (nan == values.end()) continue;
    diagnostics.Error(where, layer + ": element " + std::to_string(nan - values.begin()) + " of blob " +
                                 std::to_string(i) +
                                 " is no number (NaN) in the weights file: it is damaged, or the "
                                 "training that wrote it had failed; use an earlier snapshot, or copy the file again");
    return;
  }
}

// Where the weights with this name and number belong; null for nowhere. Without a layer that has parameters, one of the
// name that has none, which does not fit.
const Node* Target(const Graph& graph, const Namesakes& namesakes, const std::string& name, int number) {
  if (const Node* node = namesakes.Find(name, number)) return node;
  if (namesakes.Find(name, 0)) return nullptr;
  const auto node =
      std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& other) { return other.name() == name; });
  return node == graph.nodes.end() ? nullptr : &*node;
}

}  // namespace

WeightsReport Net::LoadWeights(const std::vector<LayerWeights>& weights) {
  const CompiledNet& net = *impl_->compiled;
  WeightsReport report;
  Diagnostics diagnostics;
  std::set<int> copied;                // parameters
  std::map<std::string, int> numbers;  // of layers of one name
  std::vector<std::pair<const LayerWeights*, const Node*>> fitting;
  const Namesakes namesakes(net.graph);
  for (const LayerWeights& layer : weights) {
    const Node* node = Target(net.graph, namesakes, layer.name, numbers[layer.name]++);
    if (!node) {
      report.ignored.push_back(layer.name);
      continue;
    }
    const Location where = net.file.source ? net.file.source->Layer(node->index_in_file) : Location{};
    CheckLayer(layer, *node, where, diagnostics);
    fitting.emplace_back(&layer, node);
    report.copied.push_back(layer.name);
    copied.insert(node->params.begin(), node->params.end());
  }
  diagnostics.ThrowIfErrors();
  const std::span<Parameter> own = parameters();
  for (const auto& [from, to] : fitting) {
    for (size_t i = 0; i < to->params.size(); ++i) own[to->params[i]].SetData(from->blobs[i].data.data());
  }
  for (const Node& node : net.graph.nodes) {
    // Some files have those that layers share only once.
    const bool fresh = std::any_of(node.params.begin(), node.params.end(), [&](int i) { return copied.count(i) == 0; });
    if (fresh) report.fresh.push_back(node.name());
  }
  return report;
}

LayerParameter WithWeights(const Net& net, const Node& node, bool write_gradients) {
  LayerParameter layer = *node.param;
  if (layer.top_size() > 0 && layer.top().rbegin()[0] == kAutomaticTop) layer.mutable_top()->RemoveLast();
  layer.clear_blobs();
  for (size_t i = 0; i < node.params.size(); ++i) {
    const Parameter& p = net.parameters()[node.params[i]];
    BlobProto* blob = layer.add_blobs();
    BlobShape* shape = blob->mutable_shape();  // of a scalar, too
    for (int64_t d : node.setup->params()[i].shape.dims()) shape->add_dim(d);
    p.CopyDataTo(MakeNumbers(blob->mutable_data(), p.shape.count()));
    if (write_gradients && p.grad.defined()) {
      p.CopyGradTo(MakeNumbers(blob->mutable_diff(), p.shape.count()));
    }
  }
  return layer;
}

NetParameter Net::ToProto(bool write_gradients) const {
  const Graph& graph = impl_->compiled->graph;
  NetParameter proto;
  proto.set_name(graph.name);
  for (const Node& node : graph.nodes) *proto.add_layer() = WithWeights(*this, node, write_gradients);
  return proto;
}

}  // namespace crema
