// Which layers of a file take part, and what is said of those that are not there, or mean something else elsewhere.
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/small_nets.h"
#include "ops/arrays/bfloat16.h"
#include "schema/types_of_forks.h"

namespace crema::testing_compiler {
namespace {

TEST(SelectLayers, SaysWhatToDoInsteadOfFilter) {
  const std::string error = ErrorOf(kInput + L("Filter", "keep", {"data", "label"}, {"kept"}));
  EXPECT_NE(error.find("net.prototxt:2"), std::string::npos) << error;
  EXPECT_NE(error.find("\"Filter\" is not supported: how many items its tops hold depends on the data"),
            std::string::npos)
      << error;
}

TEST(SelectLayers, FollowsPhaseLevelAndStages) {
  const std::string text = kInput + Ip("a", "data", "a", 2, "include { phase: TRAIN }") +
                           Ip("b", "data", "b", 2, "include { min_level: 1 max_level: 2 }") +
                           Ip("c", "data", "c", 2, "include { stage: 's' not_stage: 't' }") +
                           Ip("d", "data", "d", 2, "exclude { phase: TEST }") +
                           Ip("e", "data", "e", 2, "include { phase: TEST } include { stage: 's' }");
  const auto kept = [&](NetOptions options) {
    std::string names;
    const auto net = Build(text, options);
    for (const Node& node : net->graph.nodes) names += node.name();
    return names;
  };
  EXPECT_EQ(kept(Options(TRAIN)), "inad");
  EXPECT_EQ(kept(Options(TEST)), "ine");
  NetOptions options = Options(TEST);
  options.level = 2;
  options.stages = {"s"};
  EXPECT_EQ(kept(options), "inbce");
  options.stages = {"s", "t"};
  EXPECT_EQ(kept(options), "inbe");
}

TEST(SelectLayers, NamesTypesItDoesNotKnow) {
  EXPECT_NE(ErrorOf(kInput + "\n" + L("InerProduct", "ip", {"data"}, {"ip"})).find("did you mean \"InnerProduct\"?"),
            std::string::npos);
  const std::string old = ErrorOf(kInput + "\n" + L("SoftmaxLoss", "loss", {"data"}, {"loss"}));
  EXPECT_NE(old.find("there is no layer type \"SoftmaxLoss\"; write type: \"SoftmaxWithLoss\""), std::string::npos)
      << old;
  EXPECT_NE(ErrorOf(L("ReLU", "r", {"x"}, {"x"}, "include { phase: TEST }")).find("no layer is left for phase TRAIN"),
            std::string::npos);
}

TEST(SelectLayers, SaysWhatBecomesOfTypesThatAreNotMisspelt) {
  const std::string python =
      ErrorOf(kInput + "\n" +
              L("Python", "proposal", {"data"}, {"rois"}, "python_param { module: 'my_layers' layer: 'Reversal' }"));
  EXPECT_NE(python.find("net.prototxt:3:9: error: layer \"proposal\" (Python) is class \"Reversal\" of the Python "
                        "module \"my_layers\", and crema runs no Python; docs/adding_a_layer.md"),
            std::string::npos)
      << python;
  EXPECT_NE(python.find("param_str"), std::string::npos) << python;
  const std::string data = ErrorOf(L("Python", "input-data", {}, {"data", "im_info", "gt_boxes"},
                                     "python_param { module: 'roi_data_layer.layer' layer: 'RoIDataLayer' }"));
  EXPECT_NE(data.find("let a layer of type \"AnnotatedData\" make the same three tops of it (docs/detection.md)"),
            std::string::npos)
      << data;
  const std::string labels = ErrorOf(
      L("Python", "data", {}, {"data", "label"}, "python_param { module: 'voc_layers' layer: 'VOCSegDataLayer' }"));
  EXPECT_NE(labels.find("let a layer of type \"ImageSegData\" make the same two tops of it (docs/segmentation.md)"),
            std::string::npos)
      << labels;
  const std::string several =
      ErrorOf(L("Python", "data", {}, {"data", "label"},
                "python_param { module: 'pascal_multilabel_datalayers' layer: 'PascalMultilabelDataLayerSync' }"));
  EXPECT_NE(several.find("let a layer of type \"ImageData\" with label_count"), std::string::npos) << several;
  EXPECT_NE(several.find("(docs/data.md#several-labels)"), std::string::npos) << several;
  const std::string loss = ErrorOf(kInput + L("Python", "loss", {"data", "label"}, {"loss"},
                                              "python_param { module: 'pyloss' layer: 'EuclideanLossLayer' }"));
  EXPECT_NE(loss.find("and crema runs no Python; type: \"EuclideanLoss\" computes the same"), std::string::npos)
      << loss;
  const std::string fork = ErrorOf(kInput + "\n" + L("CPMData", "out", {"data"}, {"found"}));
  EXPECT_NE(fork.find("\"CPMData\" is a layer type of a fork of Caffe (OpenPose)"), std::string::npos) << fork;
}

TEST(SelectLayers, TypesOfForksAreNotThere) {
  for (const TypeOfFork& type : TypesOfForks()) {
    EXPECT_EQ(FindLayerType(std::string(type.type)), nullptr) << type.type << " is there: remove it from the table";
    const std::string error = ErrorOf(kInput + "\n" + L(std::string(type.type), "out", {"data"}, {"found"}));
    EXPECT_EQ(error.find("did you mean"), std::string::npos) << error;
    EXPECT_NE(error.find(type.remedy ? type.remedy : "docs/adding_a_layer.md"), std::string::npos) << error;
  }
}

TEST(SelectLayers, NamesTheBlockOfLstm) {
  const std::string error = ErrorOf(kInput + L("LSTM", "l", {"data", "label"}, {"h"}, "lstm_param { num_output: 3 }"));
  EXPECT_NE(error.find("layer \"l\" (LSTM) reads recurrent_param; lstm_param is that of type \"Lstm\""),
            std::string::npos)
      << error;
}

TEST(SelectLayers, WarnsOnceThatNothingIsQuantized) {
  const auto net =
      Build(kInput + L("ReLU", "r", {"data"}, {"r"}, "engine: 'MKLDNN' quantization_param { bw_layer_in: 8 }") +
            L("ReLU", "s", {"r"}, {"s"}, "quantization_param { }"));
  ASSERT_EQ(net->warnings.size(), 1u);
  EXPECT_NE(net->warnings[0].message.find("quantization_param has no effect, also of other layers: nothing"),
            std::string::npos)
      << net->warnings[0].message;
}

TEST(SelectLayers, WarnsOnceOfLossesThatForksBalance) {
  const auto net_with = [](const std::string& settings) {
    return Build(L("ImageLabelmapData", "maps", {}, {"image", "edge"},
                   "image_data_param { source: 'absent.txt' new_height: 4 new_width: 4 }") +
                 L("Power", "score", {"edge"}, {"score"}) +
                 L("SigmoidCrossEntropyLoss", "a", {"score", "edge"}, {"a"}, settings) +
                 L("SigmoidCrossEntropyLoss", "b", {"score", "edge"}, {"b"}, settings));
  };
  const auto open = net_with("");
  ASSERT_EQ(open->warnings.size(), 1u);
  EXPECT_NE(open->warnings[0].message.find("layer \"a\" (SigmoidCrossEntropyLoss): every pixel counts alike"),
            std::string::npos)
      << open->warnings[0].message;
  EXPECT_EQ(net_with("loss_param { class_balanced: true }")->warnings.size(), 0u);
  EXPECT_EQ(net_with("loss_param { class_balanced: false }")->warnings.size(), 0u);
}

TEST(SelectLayers, WarnsOnceThatANetDoesNotChooseItsPrecision) {
  const std::string layers = kInput + L("ReLU", "r", {"data"}, {"r"}, "forward_type: FLOAT16") +
                             L("ReLU", "s", {"r"}, {"s"}, "backward_math: FLOAT16");
  const auto of_layer = Build(layers);
  ASSERT_EQ(of_layer->warnings.size(), 1u);
  EXPECT_EQ(of_layer->warnings[0].where.line, 2);
  EXPECT_NE(of_layer->warnings[0].message.find("forward_type: FLOAT16 does not choose what is computed in; write "
                                               "precision: FP16, or BF16 on CPUs, into the solver"),
            std::string::npos)
      << of_layer->warnings[0].message;
  const std::string all = "default_forward_type: FLOAT\ndefault_backward_type: FLOAT16\n" + layers;
  const auto of_net = Build(all);
  ASSERT_EQ(of_net->warnings.size(), 1u);
  EXPECT_EQ(of_net->warnings[0].where.line, 2);
  EXPECT_EQ(Build(kInput + L("ReLU", "r", {"data"}, {"r"}, "forward_type: FLOAT"))->warnings.size(), 0u);
  if (!GainsByBFloat16(CpuDevice())) return;
  NetOptions halves = Options();
  halves.precision = Precision::kBF16;
  EXPECT_EQ(Build(all, halves)->warnings.size(), 0u);
}

TEST(SelectLayers, WarnsAboutMessagesTheTypeDoesNotRead) {
  const auto net =
      Build(kInput + "layer { name: 'r' type: 'ReLU' bottom: 'data' top: 'r'\n  pooling_param { kernel_size: 2 } }");
  ASSERT_EQ(net->warnings.size(), 1u);
  EXPECT_EQ(net->warnings[0].where.line, 3);
  EXPECT_NE(net->warnings[0].message.find("does not read pooling_param"), std::string::npos);
}

TEST(SelectLayers, WarnsAboutStagesThatNoRuleNames) {
  const auto warnings = [](const std::string& rules, const std::vector<std::string>& stages) {
    NetOptions options = Options();
    options.stages = stages;
    const auto net = Build(kInput + Ip("a", "data", "a", 3, rules), options);
    std::string all;
    for (const Diagnostic& warning : net->warnings) all += warning.ToString() + "\n";
    return all;
  };
  const std::string rules = "exclude { stage: 'val' } exclude { not_stage: 'deploy' not_stage: 'val' }";
  EXPECT_EQ(warnings(rules, {"deploy"}), "");
  EXPECT_NE(
      warnings(rules, {"deploy", "deplyo"})
          .find("no rule of the net names stage \"deplyo\"; did you mean \"deploy\"?; its rules know deploy, val"),
      std::string::npos)
      << warnings(rules, {"deploy", "deplyo"});
  EXPECT_NE(warnings("", {"deploy"}).find("its layers are the same in all stages"), std::string::npos);
}

}  // namespace
}  // namespace crema::testing_compiler
