// A small net, exported, and what is in the file.
#ifndef CREMA_TESTS_ONNX_EXPORTED_NET_H_
#define CREMA_TESTS_ONNX_EXPORTED_NET_H_

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "errors.h"
#include "onnx/export.h"
#include "onnx/model.pb.h"
#include "onnx/runtime_comparison.h"
#include "report/probe.h"

namespace crema::testing {

using Names = std::vector<std::string>;

inline constexpr char kInput[] = R"(
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }
)";

inline constexpr char kSmall[] = R"(
name: "Small"
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        convolution_param { num_output: 6 kernel_size: 3 pad: 1 stride: 2 group: 3 } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "drop" type: "Dropout" bottom: "conv" top: "conv" }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip" inner_product_param { num_output: 5 } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
)";

inline std::vector<LayerWeights> FilledWeights(const NetFile& file) {
  Net net(file, {.phase = TEST, .backward = false});
  FillParameters(net);
  return WeightsOf(net);
}

struct Exported {
  OnnxModel file;
  onnx::ModelProto model;
  const onnx::GraphProto& graph() const { return model.graph(); }

  std::vector<std::string> Operators() const {
    std::vector<std::string> list;
    for (const onnx::NodeProto& node : graph().node()) list.push_back(node.op_type());
    return list;
  }
  // Of the node whose main result is the layer's.
  const onnx::NodeProto& Node(const std::string& name) const {
    for (const onnx::NodeProto& node : graph().node()) {
      if (node.name() == name) return node;
    }
    throw std::runtime_error("no node " + name);
  }
  std::vector<float> Constant(const std::string& name) const {
    for (const onnx::TensorProto& tensor : graph().initializer()) {
      if (tensor.name() != name) continue;
      std::vector<float> values(tensor.raw_data().size() / sizeof(float));
      std::memcpy(values.data(), tensor.raw_data().data(), tensor.raw_data().size());
      return values;
    }
    throw std::runtime_error("no constant " + name);
  }
};

inline Exported Export(const std::string& text, const OnnxOptions& options = {}, bool with_input = true) {
  const NetFile file = ParseNet((with_input ? kInput : "") + text, "net.prototxt");
  Exported exported;
  exported.file = MakeOnnxModel(file, FilledWeights(file), options);
  if (!exported.model.ParseFromString(exported.file.bytes)) throw std::runtime_error("no ModelProto");
  return exported;
}

inline std::string ErrorOf(const std::string& text, const OnnxOptions& options = {}) {
  return ThrownBy<UserError>([&] { MakeOnnxModel(ParseNet(kInput + text, "net.prototxt"), {}, options); });
}

}  // namespace crema::testing

#endif  // CREMA_TESTS_ONNX_EXPORTED_NET_H_
