#include <algorithm>

#include "base/check.h"
#include "graph/program.h"
#include "onnx/graph_writer.h"

namespace crema::onnx {

LayerWriter::LayerWriter(GraphWriter& writer, const Node& node)
    : writer_(writer), node_(node), name_(node.name()), first_(writer.out_.node_size()) {}

Diagnostic LayerWriter::Problem(const std::string& field, const std::string& message) const {
  const NetFile& file = writer_.net_.compiled().file;
  Diagnostic problem;
  if (file.source) problem.where = file.source->Layer(node_.index_in_file, field);
  problem.message = "layer \"" + node_.name() + "\" (" + type() + "): " + message;
  return problem;
}

void LayerWriter::Refuse(const std::string& field, const std::string& message) const {
  throw UserError({Problem(field, message)});
}

void LayerWriter::RefuseOpen(const std::string& message) const { throw OpenBatchError({Problem({}, message)}); }

void LayerWriter::ExpectFixed(int i, int axis) const {
  if (bottom_dims(i)[axis] != kOpen) return;
  RefuseOpen("needs to know the extent of axis " + std::to_string(axis) + " of \"" + param().bottom(i) + "\"");
}

void LayerWriter::ExpectFixedFrom(int i, int first) const {
  for (int axis = first; axis < bottom_shape(i).axes(); ++axis) ExpectFixed(i, axis);
}

std::string LayerWriter::Blob(int i, const std::string& role) { return Blob(i, role, blob_shape(i)); }

std::string LayerWriter::Blob(int i, const std::string& role, const Shape& shape) {
  std::string& name = writer_.weights_[{node_.params[i], shape.dims()}];
  if (name.empty()) name = Floats(role, shape, BlobValues(i));
  return name;
}

std::vector<float> LayerWriter::BlobValues(int i) const {
  const Parameter& parameter = writer_.net_.parameters()[node_.params[i]];
  std::vector<float> values(parameter.shape.count());
  parameter.CopyDataTo(values.data());
  return values;
}

std::string LayerWriter::Floats(const std::string& role, const Shape& shape, const std::vector<float>& values) {
  CREMA_CHECK(static_cast<size_t>(shape.count()) == values.size()) << node_.name() << "." << role;
  return writer_.AddInitializer(node_.name() + "." + role, shape, TensorProto::FLOAT, values.data(),
                                values.size() * sizeof(float));
}

std::string LayerWriter::Integers(const std::string& role, const std::vector<int64_t>& values) {
  return writer_.AddInitializer(node_.name() + "." + role, {static_cast<int64_t>(values.size())}, TensorProto::INT64,
                                values.data(), values.size() * sizeof(int64_t));
}

std::string LayerWriter::Integer(const std::string& role, int64_t value) {
  return writer_.AddInitializer(node_.name() + "." + role, {}, TensorProto::INT64, &value, sizeof(value));
}

std::string LayerWriter::Add(const std::string& op, const std::vector<std::string>& inputs,
                             const std::vector<AttributeProto>& attributes) {
  return AddMany(op, inputs, 1, attributes)[0];
}

std::vector<std::string> LayerWriter::AddMany(const std::string& op, const std::vector<std::string>& inputs,
                                              int results, const std::vector<AttributeProto>& attributes) {
  std::vector<std::string> outputs;
  for (int i = 0; i < results; ++i) outputs.push_back(writer_.Unique(node_.name() + "/" + op));
  NodeProto* node = writer_.out_.add_node();
  *node = InnerNode(op, inputs, outputs, attributes);
  node->set_name(writer_.UniqueNode(outputs[0]));
  return outputs;
}

std::string LayerWriter::Reshape(const std::string& value, const std::vector<int64_t>& dims) {
  if (std::count(dims.begin(), dims.end(), kOpen) > 1) RefuseOpen("several extents of a shape would be open");
  return Add("Reshape", {value, Integers("shape", dims)});
}

std::string LayerWriter::Affine(const std::string& value, float factor, float shift) {
  std::string result = value;
  if (factor != 1) result = Add("Mul", {result, Number("scale", factor)});
  if (shift != 0) result = Add("Add", {result, Number("shift", shift)});
  return result;
}

void LayerWriter::SetTop(int i, const std::string& value) {
  const std::string& top = writer_.value_names_[node_.tops[i]];
  if (top == value) return;
  auto* nodes = writer_.out_.mutable_node();
  const auto own = std::find_if(nodes->begin() + first_, nodes->end(), [&](const NodeProto& node) {
    return std::find(node.output().begin(), node.output().end(), value) != node.output().end();
  });
  if (own == nodes->end()) {
    NodeProto* node = nodes->Add();
    *node = InnerNode("Identity", {value}, {top});
    node->set_name(writer_.UniqueNode(name_));
  } else {
    if (own->name().starts_with(name_ + "/")) own->set_name(writer_.UniqueNode(name_));
    std::replace(own->mutable_output()->begin(), own->mutable_output()->end(), value, top);
    for (auto node = own; node != nodes->end(); ++node) {
      std::replace(node->mutable_input()->begin(), node->mutable_input()->end(), value, top);
    }
  }
}

const Node* LayerWriter::Follower() const {
  const Graph& graph = writer_.graph_;
  const Value& top = graph.values[node_.tops[0]];
  if (top.uses.size() != 1) return nullptr;
  const Node& reader = graph.nodes[top.uses[0].node];
  return reader.bottoms.size() == 1 ? &reader : nullptr;
}

LayerWriter LayerWriter::Absorb(const Node& follower) {
  writer_.absorbed_.insert(&follower);
  LayerWriter writer(writer_, follower);
  writer.name_ = name_;
  writer.first_ = first_;
  return writer;
}

}  // namespace crema::onnx
