// Small models of ONNX, made of the format's messages.
#ifndef CREMA_TESTS_ONNX_MADE_MODEL_H_
#define CREMA_TESTS_ONNX_MADE_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "onnx/graph_writer.h"
#include "onnx/model.pb.h"

namespace crema::testing {

// An input "x" and an output "y".
class MadeModel {
 public:
  using Dims = std::vector<int64_t>;
  using Names = std::vector<std::string>;
  using Attributes = std::vector<onnx::AttributeProto>;

  explicit MadeModel(Dims input = {2, 3, 9, 8}, int64_t operator_set = 17);

  onnx::ModelProto& model() { return model_; }
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  // Constants of the graph; both return `name`. Weights are numbers between -0.5 and 0.5, the same in every run.
  std::string Weights(const std::string& name, const Dims& dims);
  std::string Floats(const std::string& name, const Dims& dims, const std::vector<float>& values);
  std::string Integers(const std::string& name, const std::vector<int64_t>& values);
  // A node with the results `outputs`, named as the first.
  onnx::NodeProto& Node(const std::string& op, const Names& inputs, const Names& outputs = {"y"},
                        const Attributes& attributes = {});
  void AddOutput(const std::string& name);  // of no shape
  void SetRank(int output, int rank);       // with open extents
  void AddInput(const std::string& name, const Dims& dims, int32_t type = onnx::TensorProto::FLOAT);

  std::string Bytes() const { return model_.SerializeAsString(); }
  void Write(const std::string& path) const;

 private:
  onnx::ModelProto model_;
};

}  // namespace crema::testing

#endif  // CREMA_TESTS_ONNX_MADE_MODEL_H_
