#include "onnx/made_model.h"

#include <fstream>

#include "report/probe.h"

namespace crema::testing {

using onnx::NodeProto;
using onnx::TensorProto;
using onnx::ValueInfoProto;

MadeModel::MadeModel(Dims input, int64_t operator_set) {
  model_.set_ir_version(8);
  model_.add_opset_import()->set_version(operator_set);
  graph().set_name("made");
  AddInput("x", input);
  AddOutput("y");
}

void MadeModel::AddInput(const std::string& name, const Dims& dims, int32_t type) {
  ValueInfoProto* input = graph().add_input();
  *input = onnx::FloatsInfo(name, dims);
  input->mutable_type()->mutable_tensor_type()->set_elem_type(type);
}

void MadeModel::AddOutput(const std::string& name) {
  ValueInfoProto* output = graph().add_output();
  output->set_name(name);
  output->mutable_type()->mutable_tensor_type()->set_elem_type(TensorProto::FLOAT);
}

void MadeModel::SetRank(int output, int rank) {
  auto* shape = graph().mutable_output(output)->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (int i = 0; i < rank; ++i) shape->add_dim();
}

std::string MadeModel::Weights(const std::string& name, const Dims& dims) {
  std::vector<float> values;
  const auto salt = static_cast<uint64_t>(graph().initializer_size());
  for (int64_t i = 0; i < Shape(dims).count(); ++i) values.push_back(static_cast<float>(ProbeValue(i, salt + 7) / 2));
  return Floats(name, dims, values);
}

std::string MadeModel::Floats(const std::string& name, const Dims& dims, const std::vector<float>& values) {
  TensorProto* tensor = graph().add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(TensorProto::FLOAT);
  for (const int64_t extent : dims) tensor->add_dims(extent);
  tensor->set_raw_data(values.data(), values.size() * sizeof(float));
  return name;
}

std::string MadeModel::Integers(const std::string& name, const std::vector<int64_t>& values) {
  TensorProto* tensor = graph().add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(TensorProto::INT64);
  tensor->add_dims(static_cast<int64_t>(values.size()));
  tensor->mutable_int64_data()->Add(values.begin(), values.end());
  return name;
}

NodeProto& MadeModel::Node(const std::string& op, const Names& inputs, const Names& outputs,
                           const Attributes& attributes) {
  NodeProto* node = graph().add_node();
  *node = onnx::InnerNode(op, inputs, outputs, attributes);
  node->set_name(outputs[0]);
  return *node;
}

void MadeModel::Write(const std::string& path) const { std::ofstream(path, std::ios::binary) << Bytes(); }

}  // namespace crema::testing
