// Which layers run as one, and what is said of those that do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "compiler/compiler.h"
#include "crema/fusion.h"
#include "device/device.h"
#include "ops/arrays/bfloat16.h"
#include "report/dump.h"

namespace crema {
namespace {

const std::string kImage =
    "layer { type: 'Input' name: 'in' top: 'data' top: 'label' "
    "input_param { shape { dim: 4 dim: 6 } shape { dim: 4 } } }\n";

std::string L(const std::string& type, const std::string& name, const std::string& bottom,
              const std::string& more = "") {
  return "layer { type: '" + type + "' name: '" + name + "' bottom: '" + bottom + "' top: '" + name + "' " + more +
         " }\n";
}
std::string Ip(const std::string& name, const std::string& bottom) {
  return L("InnerProduct", name, bottom, "inner_product_param { num_output: 4 }");
}
std::string LossOf(const std::string& bottom) {
  return "layer { type: 'SoftmaxWithLoss' name: 'loss' bottom: '" + bottom + "' bottom: 'label' top: 'loss' }\n";
}

std::unique_ptr<CompiledNet> BuildFused(const std::string& text, bool trains = true, NetOptions options = {}) {
  options.phase = trains ? TRAIN : TEST;
  options.backward = trains;
  options.context.device = &CpuDevice();
  return Compile(ParseNet(kImage + text, "net.prototxt"), options);
}

using Names = std::vector<std::string>;

Names Groups(const CompiledNet& net) {
  Names names;
  for (const Node& group : net.graph.fused) names.push_back(group.name());
  return names;
}

TEST(FuseLayers, EntriesAreTypesAndTheLastMayRepeat) {
  const Fusion once{.types = {"A", "B|CD"}}, often{.types = {"A", "B|CD+"}};
  for (const Fusion* fusion : {&once, &often}) {
    EXPECT_TRUE(fusion->Takes(0, "A"));
    EXPECT_TRUE(fusion->Takes(1, "B"));
    EXPECT_TRUE(fusion->Takes(1, "CD"));
    for (const char* other : {"A", "C", "D", "BCD", "CD+", ""}) EXPECT_FALSE(fusion->Takes(1, other)) << other;
    EXPECT_EQ(fusion->Takes(7, "CD"), fusion->repeats());
    EXPECT_FALSE(fusion->Takes(7, "A"));
  }
  EXPECT_TRUE(often.repeats());
}

bool AcceptsNothing(std::span<const LayerSetup* const> members, std::string* why_not) {
  *why_not = "it is a test";
  return false;
}
struct NeverMade : Layer {
  void Setup(LayerSetup& setup) override {}
};
REGISTER_FUSION(OfATest, NeverMade, .types = {"NoType", "NoOther+"}, .most_members = 3, .inference_only = true,
                .accepts = AcceptsNothing, .onto_addend = true);

TEST(FuseLayers, RegistrationsSayAllThatFusionsAre) {
  const auto& all = Fusions();
  const auto registered =
      std::find_if(all.begin(), all.end(), [](const Fusion* fusion) { return fusion->types[0] == "NoType"; });
  ASSERT_NE(registered, all.end());
  EXPECT_EQ((*registered)->most_members, 3);
  EXPECT_TRUE((*registered)->inference_only && (*registered)->onto_addend && (*registered)->repeats());
  EXPECT_FALSE((*registered)->gathers);
  EXPECT_NE(dynamic_cast<NeverMade*>((*registered)->create().get()), nullptr);
}

TEST(FuseLayers, TakesTheLongestChain) {
  const auto net = BuildFused(Ip("a", "data") + L("ReLU", "r", "a") + L("TanH", "t", "r") + L("Dropout", "d", "t") +
                              Ip("b", "d") + LossOf("b"));
  // TanH before Dropout keeps the sign that ReLU's gradient asks for, but its own gradient needs its top.
  EXPECT_EQ(Groups(*net), (Names{"a+r+t"}));
  EXPECT_EQ(net->graph.fusion_notes,
            (Names{"a+r+t+d (InnerProduct+ReLU+TanH+Dropout): the gradient needs the InnerProduct's result"}));
}

TEST(FuseLayers, CutsChainsThatAreTooLong) {
  std::string text = Ip("a", "data") + L("Swish", "s0", "a"), bottom = "s0";
  for (int i = 1; i < 11; ++i) {
    text += L("Swish", "s" + std::to_string(i), bottom);
    bottom = "s" + std::to_string(i);
  }
  EXPECT_EQ(Groups(*BuildFused(text + Ip("b", bottom) + LossOf("b"))), (Names{"s0+s1+s2+s3+s4+s5+s6+s7", "s8+s9+s10"}));
  EXPECT_EQ(Groups(*BuildFused(text + Ip("b", bottom) + LossOf("b"), false)),
            (Names{"a+s0+s1+s2+s3+s4+s5+s6", "s7+s8+s9+s10"}));
}

// Of each chain no more than it can take is looked at, or thousands of layers would take minutes.
TEST(FuseLayers, CutsChainsOfThousandsOfLayers) {
  std::string text = Ip("a", "data"), bottom = "a";
  for (int i = 0; i < 2000; ++i) {
    text += L("Swish", "s" + std::to_string(i), bottom);
    bottom = "s" + std::to_string(i);
  }
  const auto net = BuildFused(text + Ip("b", bottom) + LossOf("b"));
  EXPECT_EQ(net->graph.fused.size(), 250u);
  ASSERT_GT(net->graph.fusion_notes.size(), 2u);
  EXPECT_EQ(net->graph.fusion_notes[2],
            "s0+s1+s2+s3+s4+s5+s6+s7+s8 (Swish+Swish+Swish+Swish+Swish+Swish+Swish+Swish+Swish): more than 8 layers in "
            "one pass");
  for (const std::string& note : net->graph.fusion_notes) EXPECT_LT(note.size(), 200u) << note;
}

TEST(FuseLayers, LeavesWhatOthersRead) {
  const auto net = BuildFused(Ip("a", "data") + L("ReLU", "r", "a") + Ip("b", "r") + Ip("c", "a") +
                              "layer { type: 'Eltwise' name: 'e' bottom: 'b' bottom: 'c' top: 'e' }\n" + LossOf("e"));
  EXPECT_EQ(Groups(*net), Names{});
  EXPECT_EQ(net->graph.fusion_notes, (Names{"a+r (InnerProduct+ReLU): \"a\" is also read by \"c\""}));
}

TEST(FuseLayers, LeavesWhatFilesWantToSeeOrSetApart) {
  const auto loss =
      BuildFused(Ip("a", "data") + L("Sigmoid", "s", "a", "loss_weight: 1") + L("TanH", "t", "s") + LossOf("t"));
  EXPECT_EQ(Groups(*loss), (Names{"a+s"}));
  EXPECT_EQ(loss->graph.fusion_notes, (Names{"a+s+t (InnerProduct+Sigmoid+TanH): \"s\" is a loss"}));
  const auto stops = BuildFused(Ip("a", "data") + L("Sigmoid", "s", "a", "propagate_down: true") + LossOf("s"));
  EXPECT_EQ(Groups(*stops), Names{});
  EXPECT_EQ(stops->graph.fusion_notes, (Names{"a+s (InnerProduct+Sigmoid): \"s\" has propagate_down"}));
}

TEST(FuseLayers, SaysWhatSettingsDoNotFit) {
  const auto net = BuildFused(Ip("a", "data") + L("ReLU", "r", "a", "relu_param { negative_slope: -1 }") + LossOf("r"));
  EXPECT_EQ(Groups(*net), Names{});
  EXPECT_EQ(net->graph.fusion_notes, (Names{"a+r (InnerProduct+ReLU): the gradient needs the InnerProduct's result"}));
  EXPECT_NE(DumpPlan(*net, true).find("not run as one:\n  " + net->graph.fusion_notes[0] + "\n"), std::string::npos);
  EXPECT_EQ(DumpPlan(*net, false).find("not run as one"), std::string::npos);
}

TEST(FuseLayers, LeavesWhatHasAPhaseOfItsOwn) {
  const std::string text = Ip("a", "data") + L("ReLU", "r", "a") + L("Dropout", "d", "r", "phase: TRAIN");
  const auto net = BuildFused(text, false);
  EXPECT_EQ(Groups(*net), (Names{"a+r"}));
  EXPECT_TRUE(std::any_of(net->graph.fusion_notes.begin(), net->graph.fusion_notes.end(), [](const std::string& note) {
    return note.find("\"r\" has another phase than \"d\"") != std::string::npos;
  }));
}

TEST(FuseLayers, SaysNothingWhereAllFits) {
  const auto net =
      BuildFused(Ip("a", "data") + L("ReLU", "r", "a") + L("Dropout", "d", "r") + Ip("b", "d") + LossOf("b"));
  EXPECT_EQ(Groups(*net), (Names{"a+r+d"}));
  EXPECT_EQ(net->graph.fusion_notes, Names{});
  EXPECT_EQ(DumpPlan(*net, true).find("not run as one"), std::string::npos);
}

TEST(FuseLayers, KeepsNoMaskThatTheTopTells) {
  const std::string relu = L("ReLU", "r", "a"), tanh = L("TanH", "r", "a"), rest = Ip("b", "d") + LossOf("b");
  const auto masks = [](const CompiledNet& net) {
    int64_t words = 0;
    for (const Node& group : net.graph.fused) {
      for (const TensorSpec& saved : group.plan->saved()) words += saved.shape.count();
    }
    return words;
  };
  EXPECT_EQ(masks(*BuildFused(Ip("a", "data") + relu + L("Dropout", "d", "r") + rest)), 0);
  EXPECT_EQ(masks(*BuildFused(L("Swish", "a", "data") + tanh + L("Dropout", "d", "r") + rest)),
            0);  // no gradient wanted
  EXPECT_EQ(masks(*BuildFused(Ip("z", "data") + L("Swish", "a", "z") + tanh + L("Dropout", "d", "r") + rest)), 16);
}

std::string Conv(const std::string& name, const std::string& bottom) {
  return L("Convolution", name, bottom, "convolution_param { num_output: 8 kernel_size: 1 }");
}

// A residual block behind layers that make "x" (read by the block alone, or by others too).
std::string Block(const std::string& eltwise = "") {
  return "layer { type: 'Input' name: 'image' top: 'image' input_param { shape { dim: 2 dim: 8 dim: 5 dim: 5 } } }\n" +
         Conv("x", "image") + Conv("a", "x") + Conv("b", "a") +
         "layer { type: 'Eltwise' name: 'e' bottom: 'b' bottom: 'x' top: 'e' " + eltwise + " }\n" +
         L("ReLU6", "r", "e");
}

int StorageOfValue(const CompiledNet& net, const std::string& value) {
  for (const PlannedTensor& tensor : net.program.tensors) {
    if (tensor.name == value) return tensor.storage;
  }
  ADD_FAILURE() << "no tensor " << value;
  return -1;
}

TEST(FuseLayers, WritesAConvolutionOverTheShortcutItAdds) {
  const auto net = BuildFused(Block() + Conv("last", "r"), false);
  EXPECT_EQ(Groups(*net), (Names{"b+e+r"}));
  EXPECT_EQ(StorageOfValue(*net, "x"), StorageOfValue(*net, "r"));
  // Not where it is read later.
  const auto read = BuildFused(Block() + Conv("last", "r") + Conv("other", "x"), false);
  EXPECT_EQ(Groups(*read), (Names{"b+e+r"}));
  EXPECT_NE(StorageOfValue(*read, "x"), StorageOfValue(*read, "r"));
}

TEST(FuseLayers, TheLastOfTwoConvolutionsAddsTheOther) {
  for (const char* bottoms : {"bottom: 'b' bottom: 'c'", "bottom: 'c' bottom: 'b'"}) {
    const auto net = BuildFused(
        "layer { type: 'Input' name: 'image' top: 'image' "
        "input_param { shape { dim: 2 dim: 8 dim: 5 dim: 5 } } }\n" +
            Conv("b", "image") + Conv("c", "image") + "layer { type: 'Eltwise' name: 'e' " + bottoms + " top: 'e' }\n",
        false);
    EXPECT_EQ(Groups(*net), (Names{"c+e"}));
    EXPECT_EQ(net->graph.unit(net->graph.order.back()).bottoms.size(), 2u);
  }
}

TEST(FuseLayers, AddsOnlyPlainSums) {
  const auto net = BuildFused(Block("eltwise_param { coeff: 1 coeff: -1 }") + Conv("last", "r"), false);
  EXPECT_EQ(Groups(*net), Names{});
  EXPECT_EQ(net->graph.fusion_notes, (Names{"b+e+r (Convolution+Eltwise+ReLU6): Eltwise is not a plain sum of two"}));
}

TEST(ChooseLayouts, LeftOutMeansF32AndSaysSo) {
  const std::string text = Ip("a", "data") + LossOf("a");
  const auto warned = [](const CompiledNet& net) {
    for (const Diagnostic& warning : net.warnings) {
      if (warning.message.find("choose_layouts") != std::string::npos) return true;
    }
    return false;
  };
  NetOptions options;
  options.skip_passes = {"choose_layouts"};
  EXPECT_FALSE(warned(*BuildFused(text, true, options)));
  options.precision = Precision::kBF16;
  EXPECT_TRUE(warned(*BuildFused(text, true, options)));
  options.skip_passes.clear();
  EXPECT_FALSE(warned(*BuildFused(text, true, options)));
}

TEST(ChooseLayouts, WarnsWhereBFloat16GainsNoSpeed) {
  NetOptions options;
  options.precision = Precision::kBF16;
  const auto net = BuildFused(Ip("a", "data") + LossOf("a"), true, options);
  ASSERT_EQ(net->warnings.size(), GainsByBFloat16(CpuDevice()) ? 0u : 1u);
  if (net->warnings.empty()) return;
  const std::string expected = ComputesBFloat16(CpuDevice()) ? "this processor has no AMX" : "does not compute in bf16";
  EXPECT_NE(net->warnings[0].message.find(expected), std::string::npos) << net->warnings[0].message;
}

// On every processor: those that compute in bf16 are made older ones for oneDNN.
TEST(ChooseLayouts, ComputesInF32WhereOneDnnMayNotUseBFloat16) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a process where oneDNN has not looked at the variable yet
  EXPECT_EXIT(
      {
        setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
        NetOptions options;
        options.precision = Precision::kBF16;
        const auto net = BuildFused(
            "layer { type: 'Reshape' name: 'r' bottom: 'data' top: 'image' reshape_param { shape { "
            "dim: 4 dim: 6 dim: 1 dim: 1 } } }\n" +
                L("Convolution", "c", "image", "convolution_param { num_output: 4 kernel_size: 1 }") + LossOf("c"),
            true, options);
        std::cerr << net->warnings.at(0).message;
        std::exit(0);
      },
      testing::ExitedWithCode(0), "does not compute in bf16");
}

}  // namespace
}  // namespace crema
