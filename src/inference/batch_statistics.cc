#include "inference/batch_statistics.h"

#include <algorithm>
#include <cmath>

#include "crema/error.h"
#include "graph/batch_norm_modes.h"
#include "graph/program.h"

namespace crema {

namespace {

// Of one channel.
struct Moments {
  double mean = 0, variance = 0;  // of the numbers themselves
  int64_t count = 0;
};

Moments MomentsOf(const Tensor& value, int64_t channel) {
  const Shape& shape = value.shape();
  const int64_t channels = shape.axes() > 1 ? shape[1] : 1;
  const int64_t items = shape[0], inner = shape.count() / (items * channels);
  Moments moments{.count = items * inner};
  const auto visit = [&](const auto& then) {
    for (int64_t n = 0; n < items; ++n) {
      const float* numbers = value.f32() + (n * channels + channel) * inner;
      for (int64_t i = 0; i < inner; ++i) then(static_cast<double>(numbers[i]));
    }
  };
  visit([&](double x) { moments.mean += x; });
  moments.mean /= static_cast<double>(moments.count);
  visit([&](double x) { moments.variance += (x - moments.mean) * (x - moments.mean); });
  moments.variance /= static_cast<double>(moments.count);
  return moments;
}

void SetBlob(const std::vector<double>& values, BlobProto* blob) {
  for (size_t c = 0; c < values.size(); ++c) blob->set_data(static_cast<int>(c), static_cast<float>(values[c]));
}

// The slope and the bias that do to any batch what those of `layer` do to one of these statistics.
void Fold(const std::vector<double>& means, const std::vector<double>& variances, LayerParameter* layer) {
  const double eps = BnEps(layer->bn_param());
  BlobProto &slope = *layer->mutable_blobs(0), &bias = *layer->mutable_blobs(1);
  for (int c = 0; c < static_cast<int>(means.size()); ++c) {
    const double factor = slope.data(c) / std::sqrt(variances[c] + eps);
    bias.set_data(c, static_cast<float>(bias.data(c) - means[c] * factor));
    slope.set_data(c, static_cast<float>(factor));
  }
  layer->mutable_bn_param()->set_bn_mode(BNParameter::INFERENCE);
}

}  // namespace

BatchStatistics::BatchStatistics(const Net& net) : net_(net) {
  const CompiledNet& compiled = net.compiled();
  const Graph& graph = compiled.graph;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (!NormalizesByBatch(*node.param, graph.phase)) continue;
    for (const int p : node.params) {
      if (graph.params[p].users.size() == 1) continue;
      throw UserError(compiled.file.source ? compiled.file.source->Layer(node.index_in_file) : Location{},
                      "layer \"" + node.name() + "\" (" + node.type->name +
                          ") shares its parameters with another one, whose statistics are others; name them apart");
    }
    const int value = node.bottoms[0];
    const auto channels = static_cast<size_t>(node.setup->params()[0].shape.count());
    layers_.push_back({static_cast<int>(n), value, std::vector<double>(channels), std::vector<double>(channels)});
  }
  if (!layers_.empty()) return;
  throw UserError(compiled.file.source ? compiled.file.source->Field({}) : Location{},
                  "no layer of the net normalises by the batch in phase " + Phase_Name(graph.phase) +
                      ", so that there are no statistics to gather");
}

void BatchStatistics::Add() {
  const Graph& graph = net_.compiled().graph;
  std::vector<int> values;  // as VisitTops goes through them
  for (const Node& node : graph.nodes) values.insert(values.end(), node.tops.begin(), node.tops.end());
  size_t visited = 0;
  net_.VisitTops([&](const std::string&, const std::string&, const Tensor& tensor, const Tensor&) {
    const int value = values[visited++];
    for (Layer& layer : layers_) {
      if (layer.value != value) continue;
      const auto channels = static_cast<int64_t>(layer.means.size());
#pragma omp parallel for
      for (int64_t c = 0; c < channels; ++c) {
        const Moments moments = MomentsOf(tensor, c);
        const double unbiased =
            moments.count > 1 ? static_cast<double>(moments.count) / static_cast<double>(moments.count - 1) : 1;
        layer.means[c] += moments.mean;
        layer.variances[c] += unbiased * moments.variance;
      }
      const auto finite = [](double sum) { return std::isfinite(sum); };
      if (std::ranges::all_of(layer.means, finite) && std::ranges::all_of(layer.variances, finite)) continue;
      throw UserError("what layer \"" + graph.nodes[layer.node].name() + "\" (" + graph.nodes[layer.node].type->name +
                      ") normalises is not finite: look for such numbers in the data, or use other weights");
    }
  });
  ++passes_;
}

int BatchStatistics::layers_of_segnet() const {
  const Graph& graph = net_.compiled().graph;
  return static_cast<int>(std::ranges::count_if(layers_, [&](const Layer& layer) {
    const LayerParameter& param = *graph.nodes[layer.node].param;
    return param.type() == "BN" && IsBnOfSegNet(param.bn_param());
  }));
}

NetParameter BatchStatistics::Weights() const {
  NetParameter weights = net_.ToProto();
  for (const Layer& layer : layers_) {
    std::vector<double> means = layer.means, variances = layer.variances;
    for (double& mean : means) mean /= static_cast<double>(passes_);
    for (double& variance : variances) variance /= static_cast<double>(passes_);
    LayerParameter& written = *weights.mutable_layer(layer.node);  // in the order of nodes
    if (written.type() == "BN" && IsBnOfSegNet(written.bn_param())) {
      Fold(means, variances, &written);
      continue;
    }
    const int first = written.type() == "BN" ? 2 : 0;  // behind slope and bias
    SetBlob(means, written.mutable_blobs(first));
    SetBlob(variances, written.mutable_blobs(first + 1));
    if (written.type() == "BatchNorm") SetBlob({1}, written.mutable_blobs(2));  // what sums are divided by
  }
  return weights;
}

}  // namespace crema
