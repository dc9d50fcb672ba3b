#include "compiler/compiler.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/small_nets.h"

namespace crema::testing_compiler {
namespace {

const Node& NodeOf(const CompiledNet& net, const std::string& name) {
  const auto at = std::find_if(net.graph.nodes.begin(), net.graph.nodes.end(),
                               [&](const Node& node) { return node.name() == name; });
  EXPECT_NE(at, net.graph.nodes.end()) << name;
  return *at;
}

int StorageOf(const CompiledNet& net, const std::string& tensor) {
  for (const PlannedTensor& t : net.program.tensors) {
    if (t.name == tensor) return t.storage;
  }
  ADD_FAILURE() << "no tensor " << tensor;
  return -1;
}

// Two storages alive in one step never overlap: the property the whole memory plan rests on.
void ExpectSoundPlan(const Program& program) {
  const auto& s = program.storages;
  for (size_t a = 0; a < s.size(); ++a) {
    ASSERT_LE(s[a].offset + s[a].bytes, program.arena_bytes);
    for (size_t b = a + 1; b < s.size(); ++b) {
      const bool together = s[a].first <= s[b].last && s[b].first <= s[a].last;
      const bool overlap = s[a].offset < s[b].offset + s[b].bytes && s[b].offset < s[a].offset + s[a].bytes;
      ASSERT_FALSE(together && overlap) << a << " " << b;
    }
  }
}

TEST(InferShapes, WarnsWhereLayersDisagreeOnTheBlank) {
  const std::string input =
      L("Input", "in", {}, {"s", "label"}, "input_param { shape { dim: 4 dim: 2 dim: 5 } shape { dim: 2 dim: 3 } }");
  const std::string loss = L("CtcLoss", "loss", {"s", "label"}, {"loss"}, "ctc_loss_param { blank_label: 4 }");
  EXPECT_EQ(
      Build(input + loss + L("CtcDecoder", "d", {"s"}, {"d"}, "ctc_decoder_param { blank_label: 4 }"))->warnings.size(),
      0u);
  const auto net = Build(input + loss + L("CtcDecoder", "d", {"s"}, {"d"}));
  ASSERT_EQ(net->warnings.size(), 1u);
  EXPECT_EQ(net->warnings[0].where.line, 3);
  EXPECT_EQ(net->warnings[0].message,
            "layer \"d\" (CtcDecoder) takes class 0 of 5 for the blank, but layer \"loss\" (CtcLoss) class 4; if both "
            "read the same scores, give them one blank_label");
}

TEST(InferShapes, WarnsWhereLabelsMeanTwoThings) {
  const std::string net =
      L("Input", "in", {}, {"s", "label"}, "input_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 3 } }") +
      L("SigmoidCrossEntropyLoss", "loss", {"s", "label"}, {"loss"});
  const std::string signs = L("Power", "p", {"label"}, {"signs"}, "power_param { scale: 2 shift: -1 }");
  EXPECT_EQ(Build(net + signs + L("MultiLabelAccuracy", "m", {"s", "signs"}, {"m"}))->warnings.size(), 0u);
  const auto mixed = Build(net + L("MultiLabelAccuracy", "m", {"s", "label"}, {"m"}));
  ASSERT_EQ(mixed->warnings.size(), 1u);
  EXPECT_EQ(mixed->warnings[0].where.line, 3);
  EXPECT_EQ(
      mixed->warnings[0].message,
      "layer \"m\" (MultiLabelAccuracy) and layer \"loss\" (SigmoidCrossEntropyLoss) both read \"label\": to the "
      "loss 0 means no, here it means that a label does not count, and no is below 0, so that without such labels "
      "only the yes are measured; for this layer make labels of -1 and 1 of those of 0 and 1: Power with "
      "power_param { scale: 2 shift: -1 }");
}

// Three classes of two priors.
std::string Detector(const std::string& scores, const std::string& more) {
  return L("Input", "in", {}, {"data", "boxes", "priors"},
           "input_param { shape { dim: 1 dim: 4 } shape { dim: 1 dim: 8 } shape { dim: 1 dim: 2 dim: 8 } }") +
         Ip("conf", "data", "conf", 6) + more +
         L("DetectionOutput", "found", {"boxes", scores, "priors"}, {"found"},
           "detection_output_param { num_classes: 3 keep_top_k: 2 }");
}

TEST(InferShapes, WarnsWhereScoresAreNoProbabilitiesOfTheClasses) {
  const auto reshape = [](int classes) {
    return L("Reshape", "rows", {"conf"}, {"rows"},
             "reshape_param { shape { dim: 0 dim: -1 dim: " + std::to_string(classes) + " } }");
  };
  const std::string softmax =
      L("Softmax", "prob", {"rows"}, {"prob"}, "softmax_param { axis: 2 }") + L("Flatten", "flat", {"prob"}, {"flat"});
  EXPECT_EQ(Build(Detector("flat", reshape(3) + softmax), Options(TEST))->warnings.size(), 0u);
  EXPECT_EQ(Build(Detector("sig", L("Sigmoid", "sig", {"conf"}, {"sig"})), Options(TEST))->warnings.size(), 0u);
  const auto pairs = Build(Detector("flat", reshape(2) + softmax), Options(TEST));
  ASSERT_EQ(pairs->warnings.size(), 1u);
  EXPECT_EQ(pairs->warnings[0].message,
            "layer \"found\" (DetectionOutput) reads scores of 3 classes (num_classes), but their probabilities, of "
            "layer \"prob\" (Softmax), are of 2: correct num_classes, or the Reshape in front of that layer, whose "
            "last dim must be 3");
  const std::string whole = L("Concat", "all", {"conf"}, {"all"}) + L("Flatten", "flat", {"all"}, {"flat"});
  const auto raw = Build(Detector("flat", whole), Options(TEST));
  ASSERT_EQ(raw->warnings.size(), 1u);
  EXPECT_NE(raw->warnings[0].message.find("come from layer \"conf\" (InnerProduct) without a Softmax"),
            std::string::npos)
      << raw->warnings[0].message;
  // Whatever moves them.
  const std::string turned = L("Reverse", "back", {"conf"}, {"back"}, "reverse_param { axis: 1 }") +
                             L("Tile", "twice", {"back"}, {"twice"}, "tile_param { tiles: 1 }");
  EXPECT_EQ(Build(Detector("twice", turned), Options(TEST))->warnings.size(), 1u);
}

TEST(InferShapes, WarnsWhereCellsAreNotOfTheImage) {
  const auto net = [](int scale) {
    return L("Input", "in", {}, {"data", "label"},
             "input_param { shape { dim: 1 dim: 6 dim: 30 dim: 40 } shape { dim: 1 dim: 1 dim: 1 dim: 8 } }") +
           L("Pooling", "cells", {"data"}, {"cells"}, "pooling_param { kernel_size: 16 stride: 16 }") +
           L("Yolov3", "yolo", {"cells", "label"}, {"yolo"},
             "yolov3_param { num_class: 1 biases: [4, 4] anchors_scale: " + std::to_string(scale) + " }");
  };
  // 2 x 3 cells: the last ones reach over the border.
  EXPECT_EQ(Build(net(16))->warnings.size(), 0u);
  const auto wrong = Build(net(32));
  ASSERT_EQ(wrong->warnings.size(), 1u);
  EXPECT_NE(wrong->warnings[0].message.find("is an image of 64 x 96 pixels, but \"data\" is of 30 x 40"),
            std::string::npos)
      << wrong->warnings[0].message;
}

TEST(ResolveBlobs, ReportsEveryMistakeAtItsPlace) {
  const std::string error = ErrorOf(kInput +                // line 1
                                    Ip("a", "dta", "a") +   // line 2
                                    Ip("b", "data", "b") +  // line 3
                                    Ip("c", "data", "b") +  // line 4
                                    L("ReLU", "d", {"data"}, {"d"}, "loss_weight: 1 loss_weight: 2"));
  EXPECT_NE(error.find("net.prototxt:2"), std::string::npos) << error;
  EXPECT_NE(error.find("did you mean \"data\"?"), std::string::npos) << error;
  EXPECT_NE(error.find("net.prototxt:4"), std::string::npos) << error;
  EXPECT_NE(error.find("which layer \"b\" makes already"), std::string::npos) << error;
  EXPECT_NE(error.find("2 loss_weight(s) for 1 top(s)"), std::string::npos) << error;
}

TEST(ResolveBlobs, NamesTheLayerThatWouldMakeABlob) {
  const std::string text = L("Input", "staged", {}, {"data", "label"},
                             "include { stage: \"all\" } input_param { shape { dim: 4 dim: 6 } shape { dim: 4 } }") +
                           Ip("ip", "data", "ip") + Loss("ip");
  EXPECT_NE(ErrorOf(text).find("no layer before it makes a blob \"data\"; layer \"staged\" does, but its include or "
                               "exclude rules leave it out"),
            std::string::npos)
      << ErrorOf(text);
  NetOptions options = Options();
  options.stages = {"all"};
  EXPECT_EQ(ErrorOf(text, options), "");
}

TEST(ResolveBlobs, KeepsValuesOfOneNameApart) {
  const auto net = Build(kInput + Ip("ip", "data", "x") + L("ReLU", "r", {"x"}, {"x"}) +
                         L("Sigmoid", "s", {"x"}, {"x"}) + Loss("x"));
  std::vector<std::string> labels;
  for (const Value& value : net->graph.values) labels.push_back(value.label());
  EXPECT_EQ(labels, (std::vector<std::string>{"data", "label", "x", "x'1", "x'2", "loss"}));
  ASSERT_EQ(net->graph.outputs.size(), 1u);
  EXPECT_EQ(net->graph.values[net->graph.outputs[0]].name, "loss");
}

TEST(InferShapes, GoesOnAfterAFailureWithoutEchoes) {
  const std::string error = ErrorOf(kInput + L("InnerProduct", "a", {"data"}, {"a"}) + Ip("b", "a", "b") +
                                    L("InnerProduct", "c", {"data"}, {"c"}));
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << error;
  EXPECT_NE(error.find("\"a\""), std::string::npos);
  EXPECT_NE(error.find("\"c\""), std::string::npos);
}

TEST(InferShapes, RefusesShapesNobodyAskedFor) {
  NetOptions options = Options();
  options.shapes = {{"dta", Shape{1}}};
  EXPECT_NE(ErrorOf(kInput, options).find("--shape=dta"), std::string::npos);
}

TEST(InferShapes, RefusesShapesWithoutElements) {
  NetOptions options = Options();
  options.shapes = {{"data", Shape{0, 6}}};
  EXPECT_NE(ErrorOf(kInput, options).find("--shape=data: 0x6 has no elements; give extents of at least 1"),
            std::string::npos);
}

TEST(ShareParameters, JoinsByNameAndChecksShapes) {
  const std::string shared = "param { name: 'w' } param { name: 'b' }";
  const auto net = Build(kInput + Ip("a", "data", "a", 3, shared) + Ip("b", "data", "b", 3, shared));
  EXPECT_EQ(net->graph.params.size(), 2u);
  EXPECT_EQ(net->graph.params[0].users.size(), 2u);
  const std::string error = ErrorOf(kInput + Ip("a", "data", "a", 3, shared) + Ip("b", "data", "b", 4, shared));
  EXPECT_NE(error.find("needs 4x6 where that is 3x6"), std::string::npos) << error;
  EXPECT_NE(ErrorOf(kInput + Ip("a", "data", "a", 3, "param { name: 'w' lr_mult: 1 }") +
                    Ip("b", "data", "b", 3, "param { name: 'w' lr_mult: 2 }"))
                .find("another lr_mult"),
            std::string::npos);
  EXPECT_NE(ErrorOf(kInput + Ip("a", "data", "a", 3, "param {} param {} param {}")).find("3 param blocks are given"),
            std::string::npos);
}

TEST(ShareParameters, OfWhatIsNotLearntNoRateCounts) {
  const std::string named = "param { name: 's' lr_mult: 1 } param { name: 'o' lr_mult: 1 }";
  const auto bn = [&](const std::string& name, bool frozen) {
    return L("BN", name, {"image"}, {name}, named + (frozen ? " bn_param { frozen: true }" : ""));
  };
  const std::string image = L("Input", "im", {}, {"image"}, "input_param { shape { dim: 2 dim: 3 dim: 4 dim: 4 } }");
  EXPECT_EQ(ErrorOf(image + bn("a", true) + bn("b", true)), "");
  EXPECT_NE(ErrorOf(image + bn("a", true) + bn("b", false)).find("is learnt in one of them and not in the other"),
            std::string::npos);
}

TEST(FindGradients, StopsWhereNothingIsLearned) {
  const std::string frozen = "param { lr_mult: 0 } param { lr_mult: 0 }";
  const auto net = Build(kInput + Ip("a", "data", "a", 5, frozen) + Ip("b", "a", "b", 5) + Ip("c", "b", "c", 3) +
                         L("Accuracy", "accuracy", {"c", "label"}, {"accuracy"}) + Loss("c"));
  EXPECT_FALSE(NodeOf(*net, "a").runs_backward);
  EXPECT_TRUE(NodeOf(*net, "b").runs_backward);
  EXPECT_FALSE(NodeOf(*net, "b").bottom_grads[0]);
  EXPECT_TRUE(NodeOf(*net, "c").bottom_grads[0]);
  EXPECT_FALSE(NodeOf(*net, "accuracy").runs_backward);

  NetOptions forced = Options();
  forced.force_backward = true;
  const auto all = Build(kInput + Ip("a", "data", "a", 5, frozen) + Loss("a"), forced);
  EXPECT_TRUE(NodeOf(*all, "a").bottom_grads[0]);
  EXPECT_FALSE(NodeOf(*all, "loss").bottom_grads[1]);
}

TEST(FindGradients, GoThroughTheLossOfALossAlone) {
  const auto learns = [](const std::string& weight) {
    const auto net =
        Build(kInput + Ip("a", "data", "a") + L("SoftmaxWithLoss", "loss", {"a", "label"}, {"loss", "prob"}, weight) +
              L("Reduction", "sum", {"prob"}, {"sum"}, "loss_weight: 1"));
    return NodeOf(*net, "a").runs_backward;
  };
  EXPECT_TRUE(learns("loss_weight: 1 loss_weight: 0"));
  EXPECT_FALSE(learns("loss_weight: 0 loss_weight: 0"));
}

TEST(FindGradients, WarnWhereALossHasNone) {
  const auto warnings = [](const std::string& more) {
    const auto net = Build(kInput + Ip("a", "data", "a") + Ip("b", "data", "b") +
                           L("SigmoidCrossEntropyLoss", "loss", {"a", "b"}, {"loss"}, more));
    std::string all;
    for (const Diagnostic& warning : net->warnings) all += warning.ToString();
    return all;
  };
  EXPECT_NE(warnings("").find("has no gradient for \"b\": what is below it learns nothing"), std::string::npos);
  EXPECT_EQ(warnings("propagate_down: true propagate_down: false"), "");
}

TEST(InferShapes, RefusesWhatNoTensorCanBe) {
  const auto error = [](const std::string& dims) {
    return ErrorOf(L("Input", "in", {}, {"data"}, "input_param { shape { " + dims + " } }"));
  };
  std::string axes;
  for (int i = 0; i < 33; ++i) axes += "dim: 1 ";
  EXPECT_NE(error(axes).find("top \"data\" would have 33 axes, but at most 32"), std::string::npos) << error(axes);
  const std::string long_axis = "dim: 4294967296 dim: 2", large_item = "dim: 2 dim: 65536 dim: 65536";
  EXPECT_NE(error(long_axis).find("an axis has at most 2147483647 elements"), std::string::npos) << error(long_axis);
  EXPECT_NE(error(large_item).find("so has one item of a batch"), std::string::npos) << error(large_item);
  const std::string large = "dim: 4294967296 dim: 4294967296 dim: 4";
  EXPECT_NE(error(large).find("more elements than a machine holds"), std::string::npos) << error(large);
}

TEST(FindGradients, HonoursPropagateDown) {
  const auto net = Build(kInput + Ip("a", "data", "a", 5) + Ip("b", "a", "b", 3, "propagate_down: false") + Loss("b"));
  EXPECT_FALSE(NodeOf(*net, "a").runs_backward);
  EXPECT_FALSE(NodeOf(*net, "b").bottom_grads[0]);
  EXPECT_TRUE(NodeOf(*net, "b").param_grads[0]);
}

TEST(PlanMemory, SharesInPlaceOnlyWhereNothingIsReadLater) {
  NetOptions options = Options();
  options.skip_passes = {"fuse_layers"};
  const auto net = Build(
      kInput + Ip("a", "data", "a", 5) + L("ReLU", "r", {"a"}, {"r"}) + Ip("b", "r", "b", 3) + Loss("b"), options);
  EXPECT_EQ(StorageOf(*net, "a"), StorageOf(*net, "r"));
  EXPECT_EQ(StorageOf(*net, "grad a"), StorageOf(*net, "grad r"));
  // Another reader of `a` after the ReLU: in place in the file, yet kept apart.
  const auto two = Build(kInput + Ip("a", "data", "a", 5) + L("ReLU", "r", {"a"}, {"r"}) + Ip("b", "r", "b", 3) +
                         Ip("c", "a", "c", 3) + L("Eltwise", "e", {"b", "c"}, {"e"}) + Loss("e"));
  EXPECT_NE(StorageOf(*two, "a"), StorageOf(*two, "r"));
  ExpectSoundPlan(two->program);
}

TEST(PlanMemory, NeverOverwritesInputsAndOutputs) {
  const auto net = Build(kInput + L("ReLU", "r", {"data"}, {"r"}) + Ip("a", "r", "a", 3) + Loss("a"));
  EXPECT_NE(StorageOf(*net, "data"), StorageOf(*net, "r"));
  const Storage& data = net->program.storages[StorageOf(*net, "data")];
  EXPECT_EQ(data.first, 0);
  EXPECT_EQ(data.last, net->program.steps());
  EXPECT_EQ(net->program.storages[StorageOf(*net, "loss")].last, net->program.steps());
}

TEST(PlanMemory, ReusesTheMemoryOfWhatIsDead) {
  std::string text = kInput;
  std::string bottom = "data";
  for (int i = 0; i < 20; ++i) {
    const std::string top = "x" + std::to_string(i);
    text += Ip("ip" + std::to_string(i), bottom, top, 100);
    bottom = top;
  }
  const auto test = Build(text, [] {
    NetOptions options = Options(TEST);
    options.backward = false;
    return options;
  }());
  ExpectSoundPlan(test->program);
  EXPECT_LT(test->program.arena_bytes, test->program.unshared_bytes / 4);
  NetOptions keep = Options();
  keep.keep_all = true;
  const auto kept = Build(text, keep);
  EXPECT_GE(kept->program.arena_bytes, kept->program.unshared_bytes);
}

TEST(PlanMemory, ViewsCostNothing) {
  const auto net = Build(kInput + Ip("a", "data", "a", 6) +
                         L("Reshape", "v", {"a"}, {"v"}, "reshape_param { shape { dim: 2 dim: -1 } }") +
                         L("Flatten", "f", {"a"}, {"f"}) + Ip("b", "f", "b", 3) + Loss("b"));
  EXPECT_EQ(StorageOf(*net, "a"), StorageOf(*net, "v"));
  EXPECT_EQ(StorageOf(*net, "a"), StorageOf(*net, "f"));
  for (const Step& step : net->program.forward) EXPECT_NE(net->graph.nodes[step.node].name(), "v");
}

}  // namespace
}  // namespace crema::testing_compiler
