#include "inference/feature_reader.h"

#include <algorithm>
#include <memory>

#include "base/listed.h"
#include "crema/error.h"
#include "graph/program.h"
#include "inference/image_runner.h"
#include "inference/image_views.h"
#include "report/assumed_inputs.h"

namespace crema {

namespace {

std::string OnlyOutput(const Net& net) {
  const std::vector<NetOutput> outputs = net.outputs();
  if (outputs.size() == 1) return outputs[0].name;
  std::vector<std::string> shapes;
  for (const NetOutput& output : outputs) shapes.push_back(output.name + " " + output.value.shape().ToString());
  throw UserError(
      (outputs.empty() ? "the net has no output" : "the net has several outputs, " + Listed(shapes, {.quoted = true})) +
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

// Null where there is none, as of a Reshape to so many rows.
std::unique_ptr<CompiledNet> ForMoreRows(const Net& net, const NetOptions& options, int64_t rows) {
  try {
    return CompileForOneMore(net.compiled(), options, rows);
  } catch (const UserError&) {
    return nullptr;
  }
}

// Whether the first axis of the blob, of `shape`, counts rows of inputs, and not by chance as many others, such as
// steps: then it is another one that is longer where there are more.
bool CountsRows(const CompiledNet& for_more, const std::string& name, const Shape& shape, int64_t rows) {
  const Shape* longer = nullptr;
  for (const Value& value : for_more.graph.values) {  // the last one under the name
    if (value.name == name) longer = &value.spec.shape;
  }
  if (!longer || longer->axes() != shape.axes() || (*longer)[0] != rows) return true;
  for (int axis = 1; axis < shape.axes(); ++axis) {
    if (shape[axis] == rows && (*longer)[axis] == rows + 1) return false;
  }
  return true;
}

}  // namespace

FeatureReader::FeatureReader(const Net& net, const NetOptions& options, int64_t batch, int views)
    : batch_(batch), views_(views) {
  std::vector<std::string> names = options.outputs;
  if (names.empty()) names = {OnlyOutput(net)};
  std::unique_ptr<CompiledNet> for_more;
  for (const std::string& name : names) {
    if (std::count(names.begin(), names.end(), name) > 1) throw UserError("--blob names \"" + name + "\" twice");
    const Tensor value = net.blob(name);
    const Shape& shape = value.shape();
    if (batch_ == 0 && shape.axes() > 0) batch_ = shape[0];
    const int64_t rows = batch_ * views_;
    bool counts_rows = shape.axes() > 0 && shape[0] == rows && shape.count() > 0;
    std::string why;
    if (counts_rows && rows > 1) {
      if (!for_more) for_more = ForMoreRows(net, options, rows);
      counts_rows = !for_more || CountsRows(*for_more, name, shape, rows);
      why = ", as it is another axis that is longer where there are more of them";
    }
    if (!counts_rows) {
      throw UserError(
          "blob \"" + name + "\" is " + shape.ToString() + ", and has no row for each " +
          (batch_ > 0 ? "of the " + std::to_string(rows) + (views_ > 1 ? " views" : " records") : "record") +
          " of a batch" + why + "; choose one whose first axis counts them");
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
