#include "onnx/graph_writer.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "graph/program.h"
#include "onnx/layer_table.h"
#include "onnx/value_names.h"

namespace crema::onnx {

namespace {

AttributeProto Named(const std::string& name, AttributeProto::AttributeType type) {
  AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

// The name, with a number where it is taken.
std::string AddUnique(const std::string& name, std::set<std::string>* taken) {
  std::string unique = name;
  for (int i = 2; !taken->insert(unique).second; ++i) unique = name + "_" + std::to_string(i);
  return unique;
}

}  // namespace

AttributeProto Int(const std::string& name, int64_t value) {
  AttributeProto attribute = Named(name, AttributeProto::INT);
  attribute.set_i(value);
  return attribute;
}

AttributeProto Ints(const std::string& name, const std::vector<int64_t>& values) {
  AttributeProto attribute = Named(name, AttributeProto::INTS);
  attribute.mutable_ints()->Add(values.begin(), values.end());
  return attribute;
}

AttributeProto Float(const std::string& name, float value) {
  AttributeProto attribute = Named(name, AttributeProto::FLOAT);
  attribute.set_f(value);
  return attribute;
}

AttributeProto String(const std::string& name, const std::string& value) {
  AttributeProto attribute = Named(name, AttributeProto::STRING);
  attribute.set_s(value);
  return attribute;
}

AttributeProto Body(const std::string& name, GraphProto graph) {
  AttributeProto attribute = Named(name, AttributeProto::GRAPH);
  *attribute.mutable_g() = std::move(graph);
  return attribute;
}

NodeProto InnerNode(const std::string& op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, const std::vector<AttributeProto>& attributes) {
  NodeProto node;
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  for (const AttributeProto& attribute : attributes) *node.add_attribute() = attribute;
  return node;
}

ValueInfoProto FloatsInfo(const std::string& name, const std::vector<int64_t>& dims) {
  ValueInfoProto info;
  info.set_name(name);
  TypeProto::Tensor* type = info.mutable_type()->mutable_tensor_type();
  type->set_elem_type(TensorProto::FLOAT);
  type->mutable_shape();
  for (const int64_t extent : dims) {
    TensorShapeProto::Dimension* dim = type->mutable_shape()->add_dim();
    if (extent != kOpen) dim->set_dim_value(extent);
  }
  return info;
}

GraphWriter::GraphWriter(const Net& net, const Graph* other, const OnnxTransform* transform)
    : net_(net), graph_(net.compiled().graph), other_(other), transform_(transform), value_names_(NameValues(graph_)) {
  CREMA_CHECK(graph_.fused.empty()) << "layers are fused";
  names_.insert(value_names_.begin(), value_names_.end());
}

GraphProto GraphWriter::Write() {
  out_.set_name(graph_.name.empty() ? "net" : graph_.name);
  Diagnostics problems;
  std::optional<OpenBatchError> open;
  for (const Node& node : graph_.nodes) {
    try {
      WriteLayer(node);
    } catch (const OpenBatchError& error) {
      if (!open) open = error;
    } catch (const UserError& error) {
      for (const Diagnostic& problem : error.diagnostics()) problems.Error(problem.where, problem.message);
    }
  }
  problems.ThrowIfErrors();
  if (open) throw *open;
  for (int v : graph_.outputs) {
    if (!IsInput(graph_.nodes[graph_.values[v].producer])) *out_.add_output() = Info(v);
  }
  return std::move(out_);
}

void GraphWriter::WriteLayer(const Node& node) {
  if (absorbed_.count(&node) > 0) return;
  if (IsInput(node)) return WriteInput(node);
  LayerWriter layer(*this, node);
  for (int v : node.tops) {
    if (graph_.values[v].spec.shape.count() > 0) continue;
    layer.Refuse("top", "\"" + graph_.values[v].name + "\" is " + graph_.values[v].spec.shape.ToString() +
                            ", which holds no values; leave the layer out");
  }
  const LayerFunction write = FindLayerFunction(node.type->name);
  if (write == nullptr) layer.Refuse("type", "there is no form of it in ONNX; " + RemedyFor(node));
  write(layer);
}

std::vector<int64_t> GraphWriter::Dims(int value) const {
  std::vector<int64_t> dims = graph_.values[value].spec.shape.dims();
  for (size_t i = 0; other_ && i < dims.size(); ++i) {
    if (other_->values[value].spec.shape.dims()[i] != dims[i]) dims[i] = kOpen;
  }
  return dims;
}

ValueInfoProto GraphWriter::Info(int value) const {
  const std::vector<int64_t> dims = Dims(value);
  ValueInfoProto info = FloatsInfo(value_names_[value], dims);
  if (!other_) return info;
  // All open extents of inputs are the batch.
  const auto batch = [&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      if (!IsInput(node)) continue;
      for (int v : node.tops) {
        const std::vector<int64_t> of_input = Dims(v);
        const auto open = std::find(of_input.begin(), of_input.end(), kOpen);
        if (open != of_input.end()) return graph.values[v].spec.shape[static_cast<int>(open - of_input.begin())];
      }
    }
    return int64_t{0};
  };
  TensorShapeProto* shape = info.mutable_type()->mutable_tensor_type()->mutable_shape();
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    const bool is_batch = dims[i] == kOpen && graph_.values[value].spec.shape[i] == batch(graph_) &&
                          other_->values[value].spec.shape[i] == batch(*other_);
    if (is_batch) shape->mutable_dim(i)->set_dim_param("N");
  }
  return info;
}

std::string GraphWriter::Unique(const std::string& name) { return AddUnique(name, &names_); }

std::string GraphWriter::UniqueNode(const std::string& name) { return AddUnique(name, &node_names_); }

std::string GraphWriter::AddInitializer(const std::string& name, const Shape& shape, int32_t type, const void* data,
                                        size_t bytes) {
  TensorProto* tensor = out_.add_initializer();
  for (const int64_t extent : shape.dims()) tensor->add_dims(extent);
  tensor->set_data_type(type);
  tensor->set_name(Unique(name));
  tensor->set_raw_data(data, bytes);
  return tensor->name();
}

}  // namespace crema::onnx
