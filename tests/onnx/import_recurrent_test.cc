// GRU and LSTM of models, against what ONNX Runtime makes of them.
#include "onnx/import.h"
#include "onnx/operator_comparison.h"
#include "temporary_folder.h"

namespace crema::testing {
namespace {

using onnx::Int;
using onnx::Ints;
using onnx::String;

using Model = MadeModel;

constexpr int64_t kSteps = 5, kBatch = 3, kInputs = 4, kHidden = 6;

int64_t GatesOf(const std::string& op) { return op == "GRU" ? 3 : 4; }

Model::Attributes AttributesOf(const std::string& op, const std::string& direction) {
  Model::Attributes attributes = {Int("hidden_size", kHidden), String("direction", direction)};
  if (op == "GRU") attributes.push_back(Int("linear_before_reset", 1));
  return attributes;
}

Model::Names WeightsOf(Model& m, const std::string& op, int64_t directions, bool bias = true) {
  const int64_t rows = GatesOf(op) * kHidden;
  Model::Names inputs = {"x", m.Weights("w", {directions, rows, kInputs}), m.Weights("r", {directions, rows, kHidden})};
  inputs.push_back(bias ? m.Weights("b", {directions, 2 * rows}) : "");
  return inputs;
}

class OnnxRecurrent : public OperatorComparison, public ::testing::WithParamInterface<std::string> {};

TEST_P(OnnxRecurrent, Directions) {
  for (const std::string direction : {"forward", "reverse", "bidirectional"}) {
    const int64_t directions = direction == "bidirectional" ? 2 : 1;
    for (const bool bias : {true, false}) {
      Compare(
          direction + (bias ? "" : " without bias"),
          [&](Model& m) {
            m.Node(GetParam(), WeightsOf(m, GetParam(), directions, bias), {"y"}, AttributesOf(GetParam(), direction));
          },
          Model({kSteps, kBatch, kInputs}));
    }
    Compare(
        direction + ", what the last step leaves",
        [&](Model& m) {
          m.Node(GetParam(), WeightsOf(m, GetParam(), directions), {"", "y"}, AttributesOf(GetParam(), direction));
        },
        Model({kSteps, kBatch, kInputs}));
    Compare(
        direction + ", both",
        [&](Model& m) {
          m.Node(GetParam(), WeightsOf(m, GetParam(), directions), {"all", "last"},
                 AttributesOf(GetParam(), direction));
          m.Node("ReduceSum", {"all", m.Integers("steps", {0})}, {"sum"}, {Int("keepdims", 0)});
          m.Node("Add", {"sum", "last"});
        },
        Model({kSteps, kBatch, kInputs}));
  }
}

TEST_P(OnnxRecurrent, StatesThatAreInputs) {
  for (const std::string direction : {"forward", "reverse", "bidirectional"}) {
    const int64_t directions = direction == "bidirectional" ? 2 : 1;
    Compare(
        direction,
        [&](Model& m) {
          Model::Names inputs = WeightsOf(m, GetParam(), directions);
          m.AddInput("h", {directions, kBatch, kHidden});
          inputs.insert(inputs.end(), {"", "h"});
          if (GetParam() == "LSTM") inputs.push_back(m.Weights("c", {directions, kBatch, kHidden}));
          m.Node(GetParam(), inputs, {"y", "h_last"}, AttributesOf(GetParam(), direction));
          m.AddOutput("h_last");
        },
        Model({kSteps, kBatch, kInputs}));
  }
}

// As PyTorch writes a layer with batch_first: zeros for the states, axes turned round it.
TEST_P(OnnxRecurrent, LayersAsPyTorchWritesThem) {
  CompareBatches("two layers in both directions",
                 [&](Model& m) {
                   m.Node("Transpose", {"x"}, {"steps"}, {Ints("perm", {1, 0, 2})});
                   Model::Names inputs = WeightsOf(m, GetParam(), 2);
                   inputs[0] = "steps";
                   m.Node(GetParam(), inputs, {"first"}, AttributesOf(GetParam(), "bidirectional"));
                   m.Node("Transpose", {"first"}, {"turned"}, {Ints("perm", {0, 2, 1, 3})});
                   m.Node("Reshape", {"turned", m.Integers("joined", {0, 0, -1})}, {"second_x"});
                   const int64_t rows = GatesOf(GetParam()) * kHidden;
                   m.Node(GetParam(),
                          {"second_x", m.Weights("w2", {1, rows, 2 * kHidden}), m.Weights("r2", {1, rows, kHidden})},
                          {"second"}, AttributesOf(GetParam(), "forward"));
                   m.Node("Squeeze", {"second", m.Integers("direction", {1})}, {"h"});
                   m.Node("Transpose", {"h"}, {"y"}, {Ints("perm", {1, 0, 2})});
                 },
                 {kSteps, kInputs});
}

INSTANTIATE_TEST_SUITE_P(Operators, OnnxRecurrent, ::testing::Values("GRU", "LSTM"),
                         [](const auto& op) { return op.param; });

using OnnxLstm = OperatorComparison;

TEST_F(OnnxLstm, TheCellAfterTheLastStep) {
  Compare(
      "of zeros",
      [](Model& m) {
        m.Node("LSTM", WeightsOf(m, "LSTM", 2), {"", "", "y"}, AttributesOf("LSTM", "bidirectional"));
      },
      Model({kSteps, kBatch, kInputs}));
}

// --- What has no form ---

std::string ErrorOf(Model model) {
  const TemporaryFolder folder;
  model.Write(folder / "model.onnx");
  try {
    ImportOnnxModel(folder / "model.onnx", {});
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// `change` gets the node.
std::string ErrorOf(const std::string& op, const std::function<void(Model&, onnx::NodeProto&)>& change) {
  Model m({kSteps, kBatch, kInputs});
  change(m, m.Node(op, WeightsOf(m, op, 1), {"y"}, AttributesOf(op, "forward")));
  return ErrorOf(std::move(m));
}

TEST(OnnxRecurrentRefusals, SayWhatCremaDoesNot) {
  const auto attribute = [](const onnx::AttributeProto& added) {
    return [added](Model&, onnx::NodeProto& node) { *node.add_attribute() = added; };
  };
  onnx::AttributeProto activations;
  activations.set_name("activations");
  activations.set_type(onnx::AttributeProto::STRINGS);
  for (const char* name : {"HardSigmoid", "Tanh", "Tanh"}) activations.add_strings(name);
  const std::pair<std::string, std::string> cases[] = {
      {ErrorOf("LSTM", attribute(activations)), "has other activations than Sigmoid and Tanh"},
      {ErrorOf("LSTM", attribute(onnx::Float("clip", 3))), "clips its sums"},
      {ErrorOf("LSTM", attribute(Int("input_forget", 1))), "joins its input and forget gates"},
      {ErrorOf("GRU", [](Model&, onnx::NodeProto& node) { node.mutable_attribute(2)->set_i(0); }),
       "resets the state before the weights (linear_before_reset is 0)"},
      {ErrorOf("LSTM",
               [](Model& m, onnx::NodeProto& node) {
                 for (const char* none : {"", "", ""}) node.add_input(none);
                 node.add_input(m.Weights("p", {1, 3 * kHidden}));
               }),
       "has peepholes"},
      {ErrorOf("GRU",
               [](Model& m, onnx::NodeProto& node) {
                 node.add_input(m.Integers("lengths", {5, 4, 5}));
               }),
       "has sequences of several lengths in a batch"},
      {ErrorOf("GRU",
               [](Model& m, onnx::NodeProto& node) {
                 node.set_input(1, m.Weights("few", {1, 17, kInputs}));
               }),
       "the tensor of weights is 1x17x4, but must be 1x18x4"},
      {ErrorOf("GRU",
               [](Model& m, onnx::NodeProto& node) {
                 node.set_input(2, m.Weights("flat", {18, kHidden}));
               }),
       "has hidden weights of 18x6; they must be directions x rows x hidden"},
      {ErrorOf("GRU",
               [](Model& m, onnx::NodeProto& node) {
                 node.set_input(3, m.Weights("half", {1, 18}));
               }),
       "the bias is 1x18, but must be 1x36"},
      {ErrorOf("LSTM",
               [](Model& m, onnx::NodeProto& node) {
                 node.add_input("");
                 node.add_input(m.Weights("h", {1, 2, kHidden}));
               }),
       "the first hidden state is 1x2x6, but must be 1x3x6"},
  };
  for (const auto& [error, part] : cases) EXPECT_NE(error.find(part), std::string::npos) << part << "\n" << error;
}

}  // namespace
}  // namespace crema::testing
