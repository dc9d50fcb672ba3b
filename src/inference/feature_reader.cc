#include "inference/feature_reader.h"

#include <algorithm>
#include <utility>

#include "crema/error.h"
#include "graph/program.h"
#include "inference/image_runner.h"
#include "inference/image_views.h"

namespace crema {

namespace {

std::string OnlyOutput(const Net& net) {
  const std::vector<NetOutput> outputs = net.outputs();
  if (outputs.size() == 1) return outputs[0].name;
  std::vector<std::string> shapes;
  for (const NetOutput& output : outputs) shapes.push_back(output.name + " " + output.value.shape().ToString());
  throw UserError((outputs.empty() ? "the net has no output" : "the net has several outputs, " + QuotedNames(shapes)) +
                  "; say what to write with --blob=NAME[,NAME]");
}

// Of the layer that writes the blob last.
std::string TypeOfMaker(const Net& net, const std::string& name) {
  const Graph& graph = net.compiled().graph;
  std::string type;
  for (const Value& value : graph.values) {
    if (value.name == name && value.producer >= 0) type = graph.nodes[value.producer].type->name;
  }
  return type;
}

}  // namespace

FeatureReader::FeatureReader(const Net& net, std::vector<std::string> names, int64_t batch, int views)
    : batch_(batch), views_(views) {
  if (names.empty()) names = {OnlyOutput(net)};
  for (const std::string& name : names) {
    if (std::count(names.begin(), names.end(), name) > 1) throw UserError("--blob names \"" + name + "\" twice");
    const Tensor value = net.blob(name);
    const Shape& shape = value.shape();
    if (batch_ == 0 && shape.axes() > 0) batch_ = shape[0];
    if (shape.axes() == 0 || shape[0] != batch_ * views_ || shape.count() == 0) {
      throw UserError(
          "blob \"" + name + "\" is " + shape.ToString() + ", and has no row for each " +
          (batch_ > 0 ? "of the " + std::to_string(batch_ * views_) + (views_ > 1 ? " views" : " records") : "record") +
          " of a batch; choose one whose first axis counts them");
    }
    blobs_.push_back({name, Shape(std::vector<int64_t>(shape.dims().begin() + 1, shape.dims().end()))});
    blobs_.back().probabilities = shape.axes() > 1 && shape[1] == 1 && TypeOfMaker(net, name) == "Sigmoid";
    values_.push_back(value);
  }
  row_.resize(blobs_.size());
  means_.resize(blobs_.size());
}

const std::vector<const float*>& FeatureReader::Row(int64_t row) {
  for (size_t i = 0; i < blobs_.size(); ++i) {
    const int64_t count = blobs_[i].shape.count();
    row_[i] = values_[i].f32() + row * views_ * count;
    if (views_ == 1) continue;
    means_[i].resize(static_cast<size_t>(count));
    AverageViews(row_[i], views_, count, means_[i].data());
    row_[i] = means_[i].data();
  }
  return row_;
}

}  // namespace crema
