#include "report/dump.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "compiler/compiler.h"
#include "device/device.h"
#include "report/json_reader.h"

namespace crema {
namespace {

// In-place rewriting, a view, sharing, a frozen parameter, a second reader and a data layer without data.
constexpr char kNet[] = R"(
name: "dumps"
layer {
  name: "images"
  type: "Data"
  top: "data"
  top: "label"
  data_param { source: "no_such_lmdb" batch_size: 4 backend: LMDB }
}
layer { name: "flat" type: "Flatten" bottom: "data" top: "flat" }
layer {
  name: "ip1"
  type: "InnerProduct"
  bottom: "flat"
  top: "ip1"
  param { lr_mult: 0 }
  param { lr_mult: 2 decay_mult: 0 }
  inner_product_param { num_output: 12 weight_filler { type: "xavier" } }
}
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer {
  name: "ip2"
  type: "InnerProduct"
  bottom: "ip1"
  top: "ip2"
  param { name: "w" }
  inner_product_param { num_output: 12 bias_term: false weight_filler { type: "xavier" } }
}
layer {
  name: "ip3"
  type: "InnerProduct"
  bottom: "ip2"
  top: "ip3"
  param { name: "w" }
  inner_product_param { num_output: 12 bias_term: false weight_filler { type: "xavier" } }
}
layer { name: "accuracy" type: "Accuracy" bottom: "ip3" bottom: "label" top: "accuracy" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip3" bottom: "label" top: "loss" loss_weight: 0.5 }
)";

class Dumps : public testing::Test {
 protected:
  static std::unique_ptr<CompiledNet> Compiled(Phase phase) {
    NetOptions options;
    options.phase = phase;
    options.backward = phase == TRAIN;
    options.shapes = {{"data", Shape{4, 1, 2, 6}}};
    options.context.device = &CpuDevice();
    return Compile(ParseNet(kNet, "dumps.prototxt"), options);
  }
  static void ExpectHolds(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
};

TEST_F(Dumps, CountsSharedParametersAsCaffeDoes) {
  const auto net = Compiled(TRAIN);
  EXPECT_EQ(ParamCount(net->graph), 12 * 12 + 12 + 2 * 12 * 12);
  EXPECT_EQ(LearnableCount(net->graph), 12 * 12 + 12 + 12 * 12);
  EXPECT_EQ(NetTitle(*net), "dumps, phase TRAIN: 8 layers, 300 parameters");
}

TEST_F(Dumps, GraphShowsVersionsSharingAndGradients) {
  const std::string text = DumpGraph(*Compiled(TRAIN));
  ExpectHolds(text, "assumed: data 4x1x2x6\n");
  ExpectHolds(text, "0 \"images\" (Data), source\n");
  ExpectHolds(text, "1 \"flat\" (Flatten), view\n");
  ExpectHolds(text, "  param  12x12, lr_mult 0\n");
  ExpectHolds(text, "  param  12, lr_mult 2, decay_mult 0, gradient\n");
  ExpectHolds(text,
              "3 \"relu1\" (ReLU), backward\n  bottom ip1  4x12, gradient\n  top    ip1'1  4x12, gradient arrives\n");
  ExpectHolds(text, "  param  12x12, named \"w\", gradient\n");
  ExpectHolds(text, "  param  12x12, named \"w\", of layer \"ip2\" [0], gradient\n");
  ExpectHolds(text, "  top    loss  scalar, loss, weight 0.5");
  ExpectHolds(text, "outputs: accuracy loss\n");
  EXPECT_EQ(DumpGraph(*Compiled(TEST)).find("gradient"), std::string::npos);
}

TEST_F(Dumps, ShapesAddUp) {
  const std::string text = DumpShapes(*Compiled(TRAIN));
  ExpectHolds(text, "data 4x1x2x6, label 4");
  ExpectHolds(text, "view");
  ExpectHolds(text, "ip3 4x12                   shared ");
  ExpectHolds(text.substr(text.find("\ntotal"), 80), " 300 ");  // the shared ones once
  ExpectHolds(text, "parameters  1.2 KiB");
  // Of ip1's bias and the shared weights.
  ExpectHolds(text, "their gradients 624 B");
  ExpectHolds(text, "if no two tensors shared memory");
}

TEST_F(Dumps, PlanHasEveryStepAndTensor) {
  const auto net = Compiled(TRAIN);
  const std::string text = DumpPlan(*net, false);
  EXPECT_EQ(text.find("compiler passes"), std::string::npos);
  EXPECT_EQ(text, DumpPlan(*Compiled(TRAIN), false)) << "the same every time";
  for (const PlannedTensor& tensor : net->program.tensors) ExpectHolds(text, "\n" + tensor.name);
  for (const char* step : {"  forward ", "  backward ", "  fill with 0.5 ", "param grad ip2[0]"})
    ExpectHolds(text, step);
  ExpectHolds(text, "arena " + std::to_string(net->program.arena_bytes) + " bytes");

  const std::string explained = DumpPlan(*net, true);
  EXPECT_TRUE(explained.starts_with(text));
  for (const Pass& pass : Passes()) ExpectHolds(explained, std::string("\n  ") + pass.name);
}

TEST_F(Dumps, DotQuotesAndConnects) {
  NetOptions options;
  options.context.device = &CpuDevice();
  const auto net = Compile(ParseNet(R"(name: "a \"b\" \\"
    layer { name: "in\"put" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
    layer { name: "relu" type: "ReLU" bottom: "x" top: "x" })",
                                    "dot.prototxt"),
                           options);
  const std::string text = DumpDot(*net);
  EXPECT_TRUE(text.starts_with("digraph \"a \\\"b\\\" \\\\\" {\n")) << text;
  ExpectHolds(text, "n0 [label=\"in\\\"put\\nInput\"");
  ExpectHolds(text, "n0 -> n1 [label=\"x\\n2x3\"];");
  ExpectHolds(text, "label=\"x'1\\n2x3\", shape=plain");
  EXPECT_TRUE(text.ends_with("}\n"));
}

TEST_F(Dumps, JsonReadsBack) {
  const testing_json::Json json = testing_json::ParseJson(DumpJson(*Compiled(TRAIN)));
  EXPECT_EQ(json["phase"].string, "TRAIN");
  EXPECT_EQ(json["assume"]["data"].Integers(), (std::vector<long long>{4, 1, 2, 6}));
  EXPECT_EQ(json["layers"].items[0]["type"].string, "Input") << "data layers appear as inputs";
  EXPECT_EQ(json["layers"].items[3]["tops"].items[0].items[0].string, "ip1");
  EXPECT_EQ(json["layers"].items[5]["params"].items[0].Integers(), (std::vector<long long>{12, 12}));
  EXPECT_EQ(json["param_count"].number, 444);
  EXPECT_EQ(json["learnable_count"].number, 300);
  EXPECT_EQ(json["outputs"].items[1].string, "loss");
}

}  // namespace
}  // namespace crema
