// Old syntax becomes today's, and the places still lead back to the old text.
#include "schema/upgrade.h"

#include <gtest/gtest.h>

#include <map>

#include "crema/files.h"
#include "schema/net_text.h"
#include "schema/text_file.h"

namespace crema {
namespace {

using testing_schema::Errors, testing_schema::Net;

std::string Warnings(const NetFile& file) {
  std::string text;
  for (const Diagnostic& warning : file.warnings) text += warning.ToString() + "\n";
  return text;
}

std::string Place(const NetFile& file, int layer, const std::string& field) {
  return file.source->Layer(layer, field).ToString();
}

TEST(Upgrade, LayersOfDeconvNetKeepTheirBlock) {
  const NetFile file = ParseNet(
      "layers { name: 'u' type: UNPOOLING bottom: 'x' bottom: 'm' top: 'y'\n"
      "  unpooling_param { unpool: MAX kernel_size: 2 stride: 2\n    unpool_size: 14 } }",
      "n");
  EXPECT_EQ(TextOf(file.net),
            TextOf(Net("layer { name: 'u' type: 'Unpooling' bottom: 'x' bottom: 'm' top: 'y'"
                       "  unpooling_param { unpool: MAX kernel_size: 2 stride: 2 unpool_size: 14 } }")));
  EXPECT_EQ(Place(file, 0, "unpooling_param.unpool_size"), "n:3:5");
}

TEST(Upgrade, V1LayersBecomeLayers) {
  const NetFile file = ParseNet(
      "name: \"n\"\n"
      "layers {\n"
      "  name: \"d\" type: IMAGE_DATA top: \"x\"\n"
      "  image_data_param { source: \"s\"\n    scale: 0.5\n    crop_size: 8 mirror: true mean_file: \"m\" }\n"
      "  include: { phase: TRAIN }\n"
      "}\n"
      "layers {\n"
      "  name: \"c\" type: CONVOLUTION bottom: \"x\" top: \"y\"\n"
      "  param: \"w\" param: \"b\" blob_share_mode: PERMISSIVE\n"
      "  blobs_lr: 1\n"
      "  blobs_lr: 2\n"
      "  weight_decay: 0.5\n"
      "  convolution_param { num_output: 2\n    kernel_size: 3 }\n"
      "  loss_weight: 0.25\n"
      "}\n",
      "n");
  EXPECT_EQ(TextOf(file.net), TextOf(Net(R"(
name: "n"
layer { name: "d" type: "ImageData" top: "x" image_data_param { source: "s" } include { phase: TRAIN }
  transform_param { scale: 0.5 crop_size: 8 mirror: true mean_file: "m" } }
layer { name: "c" type: "Convolution" bottom: "x" top: "y"
  param { name: "w" share_mode: PERMISSIVE lr_mult: 1 decay_mult: 0.5 } param { name: "b" lr_mult: 2 }
  convolution_param { num_output: 2 kernel_size: 3 } loss_weight: 0.25 })")));
  EXPECT_EQ(Warnings(file), "n:2:1: warning: uses the old V1 syntax (\"layers\"); upgraded on reading\n");
  EXPECT_EQ(Place(file, 1, ""), "n:9:1");
  EXPECT_EQ(Place(file, 1, "convolution_param.kernel_size"), "n:16:5");
  EXPECT_EQ(Place(file, 1, "convolution_param.stride"), "n:15:3");
  EXPECT_EQ(Place(file, 1, "param[1].lr_mult"), "n:13:3");
  EXPECT_EQ(Place(file, 1, "param"), "n:12:3");
  EXPECT_EQ(Place(file, 1, "param.decay_mult"), "n:14:3");
  EXPECT_EQ(Place(file, 1, "param[1].name"), "n:11:14");
  EXPECT_EQ(Place(file, 0, "transform_param.scale"), "n:5:5");
  EXPECT_EQ(Place(file, 1, "relu_param.negative_slope"), "n:9:1");
}

// Forks had CROP in V1, which found its offset; Crop came to BVLC's Caffe later.
TEST(Upgrade, V1CropsAreAligned) {
  const NetFile file = ParseNet(
      "layers { name: \"a\" type: CROP bottom: \"x\" bottom: \"y\" top: \"z\" }\n"
      "layers { name: \"b\" type: CROP bottom: \"z\" bottom: \"y\" top: \"u\" crop_param { offset: 5 } }\n"
      "layers { name: \"m\" type: MULTI_STAGE_MEANFIELD bottom: \"u\" bottom: \"u\" bottom: \"y\" top: \"v\"\n"
      "  blobs_lr: 10 multi_stage_meanfield_param { num_iterations: 5 } }\n",
      "n");
  EXPECT_EQ(TextOf(file.net), TextOf(Net(R"(
layer { name: "a" type: "AutoCrop" bottom: "x" bottom: "y" top: "z" }
layer { name: "b" type: "AutoCrop" bottom: "z" bottom: "y" top: "u" crop_param { offset: 5 } }
layer { name: "m" type: "MultiStageMeanfield" bottom: "u" bottom: "u" bottom: "y" top: "v"
  param { lr_mult: 10 } multi_stage_meanfield_param { num_iterations: 5 } })")));
  EXPECT_EQ(Warnings(file), "n:1:1: warning: uses the old V1 syntax (\"layers\"); upgraded on reading\n");
}

TEST(Upgrade, EveryV1TypeHasAName) {
  const std::map<std::string, std::string> expected = {{"ABSVAL", "AbsVal"},
                                                       {"ACCURACY", "Accuracy"},
                                                       {"ARGMAX", "ArgMax"},
                                                       {"BNLL", "BNLL"},
                                                       {"CONCAT", "Concat"},
                                                       {"CONTRASTIVE_LOSS", "ContrastiveLoss"},
                                                       {"CONVOLUTION", "Convolution"},
                                                       {"CROP", "AutoCrop"},
                                                       {"DATA", "Data"},
                                                       {"DECONVOLUTION", "Deconvolution"},
                                                       {"DROPOUT", "Dropout"},
                                                       {"DUMMY_DATA", "DummyData"},
                                                       {"EUCLIDEAN_LOSS", "EuclideanLoss"},
                                                       {"ELTWISE", "Eltwise"},
                                                       {"EXP", "Exp"},
                                                       {"FLATTEN", "Flatten"},
                                                       {"HDF5_DATA", "HDF5Data"},
                                                       {"HDF5_OUTPUT", "HDF5Output"},
                                                       {"HINGE_LOSS", "HingeLoss"},
                                                       {"IM2COL", "Im2col"},
                                                       {"IMAGE_DATA", "ImageData"},
                                                       {"INFOGAIN_LOSS", "InfogainLoss"},
                                                       {"INNER_PRODUCT", "InnerProduct"},
                                                       {"LRN", "LRN"},
                                                       {"MEMORY_DATA", "MemoryData"},
                                                       {"MULTI_STAGE_MEANFIELD", "MultiStageMeanfield"},
                                                       {"MULTINOMIAL_LOGISTIC_LOSS", "MultinomialLogisticLoss"},
                                                       {"MVN", "MVN"},
                                                       {"POOLING", "Pooling"},
                                                       {"POWER", "Power"},
                                                       {"RELU", "ReLU"},
                                                       {"SIGMOID", "Sigmoid"},
                                                       {"SIGMOID_CROSS_ENTROPY_LOSS", "SigmoidCrossEntropyLoss"},
                                                       {"SILENCE", "Silence"},
                                                       {"SOFTMAX", "Softmax"},
                                                       {"SOFTMAX_LOSS", "SoftmaxWithLoss"},
                                                       {"SPLIT", "Split"},
                                                       {"SLICE", "Slice"},
                                                       {"TANH", "TanH"},
                                                       {"WINDOW_DATA", "WindowData"},
                                                       {"THRESHOLD", "Threshold"},
                                                       {"CONVOLUTION3D", "Convolution3D"},
                                                       {"POOLING3D", "Pooling3D"},
                                                       {"DECONVOLUTION3D", "Deconvolution3D"},
                                                       {"UNPOOLING", "Unpooling"},
                                                       {"NONE", ""}};
  const auto* type = V1LayerParameter::LayerType_descriptor();
  // Those of forks: UpgradeFields.NamesInCapitalsAreThoseOfTypesThereAre.
  for (const auto& [name, today] : expected) {
    const auto* value = type->FindValueByName(name);
    ASSERT_NE(value, nullptr) << name;
    EXPECT_EQ(TypeName(static_cast<V1LayerParameter::LayerType>(value->number())), today) << name;
  }
}

const char kV0[] =
    "layers { layer { name: \"d\" type: \"data\" source: \"s\" meanfile: \"m\" batchsize: 4 cropsize: 5 mirror: true "
    "rand_skip: 3 scale: 2 }\n  top: \"x\" }\n"
    "layers { layer { name: \"p\" type: \"padding\"\n  pad: 2 }\n  bottom: \"x\" top: \"xp\" }\n"
    "layers {\n  layer { name: \"c\" type: \"conv\" num_output: 6\n    kernelsize: 3 group: 2 stride: 2 biasterm: "
    "false\n"
    "    weight_filler { type: \"gaussian\" std: 0.01 } blobs_lr: 1. weight_decay: 0 }\n  bottom: \"xp\" top: \"y\" }\n"
    "layers { layer { name: \"q\" type: \"pool\" pool: AVE kernelsize: 3 stride: 2 } bottom: \"y\" top: \"z\" }\n"
    "layers { layer { name: \"n\" type: \"lrn\" local_size: 3 alpha: 0.1 beta: 0.5 k: 2 } bottom: \"z\" top: \"n\" }\n"
    "layers { layer { name: \"i\" type: \"innerproduct\" num_output: 7 } bottom: \"n\" top: \"i\" }\n"
    "layers { layer { name: \"o\" type: \"dropout\" dropout_ratio: 0.25 } bottom: \"i\" top: \"i\" }\n"
    "layers { layer { name: \"l\" type: \"softmax_loss\" } bottom: \"i\" bottom: \"x\" }\n";

TEST(Upgrade, V0LayersBecomeLayersAndPaddingFolds) {
  const NetFile file = ParseNet(kV0, "n");
  EXPECT_EQ(TextOf(file.net), TextOf(Net(R"(
layer { name: "d" type: "Data" top: "x" data_param { source: "s" batch_size: 4 rand_skip: 3 }
  transform_param { mean_file: "m" crop_size: 5 mirror: true scale: 2 } }
layer { name: "c" type: "Convolution" bottom: "x" top: "y" param { lr_mult: 1 decay_mult: 0 }
  convolution_param { num_output: 6 kernel_size: 3 group: 2 stride: 2 bias_term: false pad: 2
    weight_filler { type: "gaussian" std: 0.01 } } }
layer { name: "q" type: "Pooling" bottom: "y" top: "z" pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
layer { name: "n" type: "LRN" bottom: "z" top: "n" lrn_param { local_size: 3 alpha: 0.1 beta: 0.5 k: 2 } }
layer { name: "i" type: "InnerProduct" bottom: "n" top: "i" inner_product_param { num_output: 7 } }
layer { name: "o" type: "Dropout" bottom: "i" top: "i" dropout_param { dropout_ratio: 0.25 } }
layer { name: "l" type: "SoftmaxWithLoss" bottom: "i" bottom: "x" })")));
  EXPECT_EQ(Warnings(file), "n:1:1: warning: uses the old V0 syntax (\"layers\"); upgraded on reading\n");
  EXPECT_EQ(Place(file, 1, ""), "n:6:1");
  EXPECT_EQ(Place(file, 1, "convolution_param.kernel_size"), "n:8:5");
  EXPECT_EQ(Place(file, 1, "convolution_param.pad"), "n:4:3");
  EXPECT_EQ(Place(file, 1, "bottom"), "n:10:3");
  EXPECT_EQ(Place(file, 0, "top[0]"), "n:2:3");
  EXPECT_EQ(Place(file, 0, "transform_param.mean_file"), "n:1:53");
}

TEST(Upgrade, V0MistakesAreErrors) {
  EXPECT_EQ(
      Errors("layers { layer { name: \"p\" type: \"padding\" pad: 1 } bottom: \"x\" top: \"y\" }\n"
             "layers { layer { name: \"r\" type: \"relu\" }\n  bottom: \"y\" top: \"z\" }\n"),
      "n:3:3: error: the padding layer \"p\" can only feed a \"conv\" or \"pool\" layer with one bottom, not \"r\"; "
      "remove it and set pad where it is read");
  EXPECT_EQ(Errors("layers { layer { name: \"p\" type: \"padding\" pad: 1 } bottom: \"x\" top: \"y\" }\n"),
            "n:1:28: error: nothing reads the top \"y\" of the padding layer \"p\"; remove the layer");
  EXPECT_EQ(Errors("layers { layer { name: \"p\" type: \"convv\" } }\n"),
            "n:1:28: error: the old V0 syntax has no layer type \"convv\"; did you mean \"conv\"?");
  const NetFile file =
      ParseNet("layers { layer { name: \"p\" type: \"relu\"\n group: 2 } bottom: \"x\" top: \"y\" }\n", "n");
  EXPECT_EQ(file.warnings.at(0).ToString(),
            "n:2:2: warning: a V0 layer of type \"relu\" has no use for \"group\"; it is ignored");
}

TEST(Upgrade, PaddingOfSeveralReadersFoldsIntoEach) {
  const NetFile file = ParseNet(
      "layers { layer { name: \"p\" type: \"padding\" pad: 1 } bottom: \"x\" top: \"y\" }\n"
      "layers { layer { name: \"a\" type: \"conv\" kernelsize: 3 num_output: 1 } bottom: \"y\" top: \"a\" }\n"
      "layers { layer { name: \"b\" type: \"pool\" kernelsize: 3 } bottom: \"y\" top: \"b\" }\n",
      "n");
  ASSERT_EQ(file.net.layer_size(), 2);
  EXPECT_EQ(file.net.layer(0).bottom(0), "x");
  EXPECT_EQ(file.net.layer(0).convolution_param().pad(0), 1u);
  EXPECT_EQ(file.net.layer(1).bottom(0), "x");
  EXPECT_EQ(file.net.layer(1).pooling_param().pad(0), 1u);
}

TEST(Upgrade, InputFieldsBecomeOneInputLayer) {
  const NetFile old = ParseNet(
      "name: \"n\"\ninput: \"a\"\ninput: \"b\"\ninput_dim: 1\ninput_dim: 2 input_dim: 3 input_dim: 4\n"
      "input_dim: 5 input_dim: 6 input_dim: 7 input_dim: 8\nlayer {\n  name: \"r\"\n}\n",
      "n");
  EXPECT_EQ(TextOf(old.net), TextOf(Net(R"(name: "n"
layer { name: "input" type: "Input" top: "a" top: "b"
  input_param { shape { dim: 1 dim: 2 dim: 3 dim: 4 } shape { dim: 5 dim: 6 dim: 7 dim: 8 } } }
layer { name: "r" })")));
  EXPECT_EQ(Warnings(old), "n:2:1: warning: uses the old \"input\" fields; read as a layer of type \"Input\"\n");
  EXPECT_EQ(Place(old, 0, "top[1]"), "n:3:1");
  EXPECT_EQ(Place(old, 0, "input_param.shape"), "n:4:1");
  EXPECT_EQ(Place(old, 1, "name"), "n:8:3");

  const NetFile shape =
      ParseNet("input: \"a\"\ninput_shape {\n  dim: 1 dim: 9\n}\nlayers { name: \"r\" type: RELU }\n", "n");
  EXPECT_EQ(shape.net.layer(0).input_param().shape(0).dim(1), 9);
  EXPECT_EQ(shape.net.layer(1).type(), "ReLU");
  EXPECT_EQ(shape.warnings.size(), 1u);
  EXPECT_EQ(Place(shape, 0, "input_param.shape[0].dim[1]"), "n:3:10");
}

TEST(Upgrade, InputMistakes) {
  EXPECT_EQ(Errors("input: \"a\"\ninput_dim: 1\n"),
            "n:2:1: error: the input \"a\" has 1 input_dim values; each needs one input_shape { dim: ... } (or four "
            "input_dim, the old form)");
  EXPECT_EQ(Errors("input: \"a\" input: \"b\" input_shape { dim: 1 }"),
            "n:1:23: error: 2 inputs have 1 input_shape blocks; each needs one input_shape { dim: ... } (or four "
            "input_dim, the old form)");
  EXPECT_EQ(Errors("input_dim: 1"), "n:1:1: error: a shape without an input; name it with input: \"data\"");
  EXPECT_EQ(Errors("input: \"a\" input_shape { dim: -1 }"),
            "n:1:12: error: the input \"a\" has the extent -1; extents are 0 or more");
}

TEST(Upgrade, MixedSyntaxIsAnError) {
  EXPECT_EQ(
      Errors("layer { name: \"a\" }\nlayers { name: \"b\" type: RELU }\n"),
      "n:2:1: error: \"layer\" and the old \"layers\" cannot be mixed in one file; write every block as \"layer\"");
}

TEST(Upgrade, BatchNormWithThreeParamsIsFrozen) {
  const NetFile file =
      ParseNet("layer { type: \"BatchNorm\" param { lr_mult: 1 } param { } param { name: \"k\" } }", "n");
  for (const ParamSpec& param : file.net.layer(0).param()) {
    EXPECT_EQ(param.lr_mult(), 0);
    EXPECT_EQ(param.decay_mult(), 0);
  }
  EXPECT_EQ(file.net.layer(0).param(2).name(), "k");
}

TEST(Upgrade, TransformInDataParamOfALayerIsIgnoredWithAWarning) {
  const NetFile file = ParseNet("layer { type: \"Data\" data_param {\n  scale: 0.5 } }", "n");
  EXPECT_FALSE(file.net.layer(0).has_transform_param());
  EXPECT_EQ(Warnings(file),
            "n:2:3: warning: data_param.scale has no effect in a \"layer\"; write transform_param { "
            "scale: ... }\n");
  EXPECT_EQ(Warnings(ParseNet("layer { type: \"ImageSegData\" image_data_param { mirror: true } }", "n")),
            "n:1:49: warning: image_data_param.mirror has no effect in a \"layer\"; write transform_param { "
            "mirror: ... }\n");
}

TEST(Upgrade, SolverTypeBecomesText) {
  const std::map<std::string, std::string> names = {{"SGD", "SGD"},           {"NESTEROV", "Nesterov"},
                                                    {"ADAGRAD", "AdaGrad"},   {"RMSPROP", "RMSProp"},
                                                    {"ADADELTA", "AdaDelta"}, {"ADAM", "Adam"}};
  for (const auto& [old, name] : names) {
    const SolverFile file = ParseSolver("net: \"x\"\nsolver_type: " + old + "\n", "s");
    EXPECT_EQ(file.solver.type(), name);
    EXPECT_FALSE(file.solver.has_solver_type());
    ASSERT_EQ(file.warnings.size(), 1u);
    EXPECT_EQ(file.warnings[0].where.ToString(), "s:2:1");
  }
  EXPECT_NO_THROW(ParseSolver("solver_type: ADAM type: \"Adam\"", "s"));
  try {
    ParseSolver("type: \"SGD\"\nsolver_type: ADAM\n", "s");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(
        error.what(),
        "s:2:1: error: solver_type: ADAM contradicts type: \"SGD\" at line 1; remove solver_type, the old name "
        "of type");
  }
}

TEST(Upgrade, TestNetsThatMeasureNothingAreLeftOut) {
  const SolverFile file = ParseSolver(
      "test_net: 'a' test_net: 'b' net_param { } test_net_param { name: 'p' }\ntest_iter: 0 test_iter: 5 test_iter: 0\n"
      "test_iter: 7 test_interval: 10 test_state { level: 0 } test_state { level: 1 } test_state { level: 2 }\n"
      "test_state { level: 3 }",
      "s");
  const SolverParameter& solver = file.solver;
  EXPECT_EQ(solver.test_net_param_size(), 0);
  ASSERT_EQ(solver.test_net_size(), 1);
  EXPECT_EQ(solver.test_net(0), "a");
  ASSERT_EQ(solver.test_iter_size(), 2);
  EXPECT_EQ(solver.test_iter(0), 5);
  EXPECT_EQ(solver.test_iter(1), 7);
  ASSERT_EQ(solver.test_state_size(), 2);
  EXPECT_EQ(solver.test_state(0).level(), 1);
  EXPECT_EQ(solver.test_state(1).level(), 3);
  EXPECT_EQ(solver.test_interval(), 10);
  ASSERT_EQ(file.warnings.size(), 2u);
  EXPECT_EQ(file.warnings[0].ToString(),
            "s:2:1: warning: test_iter is 0: test net #0 measures nothing, and is left out");
  EXPECT_EQ(file.warnings[1].ToString(),
            "s:2:27: warning: test_iter is 0: test net #2 measures nothing, and is left out");

  const SolverFile none = ParseSolver("net: 'n' test_iter: 0 test_interval: 10", "s");
  EXPECT_EQ(none.solver.test_iter_size(), 0);
  EXPECT_FALSE(none.solver.has_test_interval());
  // Lists that do not agree are for CheckSolver to tell.
  EXPECT_EQ(ParseSolver("train_net: 'n' test_iter: 0", "s").solver.test_iter_size(), 1);
}

TEST(Upgrade, IsDoneOnce) {
  const NetFile first = ParseNet(kV0, "n");
  const NetFile again = ParseNet(TextOf(first.net), "n");
  EXPECT_EQ(TextOf(again.net), TextOf(first.net));
  EXPECT_TRUE(again.warnings.empty());
}

TEST(MakeNetFile, UpgradesAndKeepsThePlace) {
  NetParameter net = Net("layers { name: \"r\" type: RELU }");
  const NetFile file = MakeNetFile(net, {"s", 7, 3});
  EXPECT_EQ(file.net.layer(0).type(), "ReLU");
  EXPECT_EQ(Place(file, 0, "type"), "s:7:3");
  EXPECT_EQ(file.warnings.at(0).where.ToString(), "s:7:3");
}

TEST(SourceMap, PlacesOfCurrentSyntax) {
  const NetFile file = ParseNet(
      "name: \"n\"\n"
      "layer {\n"
      "  name: \"a\"\n"
      "\tbottom: \"x\" bottom: \"y\"\n"
      "  convolution_param {\n"
      "    kernel_size: [3, 5]\n"
      "    weight_filler {\n      type: \"xavier\"\n    }\n"
      "  }\n"
      "}\n",
      "n");
  EXPECT_EQ(Place(file, 0, ""), "n:2:1");
  EXPECT_EQ(Place(file, 0, "bottom"), "n:4:2");
  EXPECT_EQ(Place(file, 0, "bottom[1]"), "n:4:14");
  EXPECT_EQ(Place(file, 0, "bottom[9]"), "n:4:2");
  EXPECT_EQ(Place(file, 0, "convolution_param"), "n:5:3");
  EXPECT_EQ(Place(file, 0, "convolution_param.kernel_size[1]"), "n:6:5");
  EXPECT_EQ(Place(file, 0, "convolution_param.weight_filler.type"), "n:8:7");
  EXPECT_EQ(Place(file, 0, "convolution_param.bias_filler.type"), "n:5:3");
  EXPECT_EQ(Place(file, 0, "no_such_field"), "n:2:1");
  EXPECT_EQ(Place(file, 5, "name"), "n");
  EXPECT_EQ(Place(file, -1, "name"), "n");
  EXPECT_EQ(file.source->Field("name").ToString(), "n:1:1");
  EXPECT_EQ(file.source->Field("state").ToString(), "n");

  const SolverFile solver = ParseSolver("net: \"x\"\ntest_iter: 1\ntest_iter: 2\n", "s");
  EXPECT_EQ(solver.source->Field("test_iter").ToString(), "s:2:1");
  EXPECT_EQ(solver.source->Field("test_iter[1]").ToString(), "s:3:1");
}

}  // namespace
}  // namespace crema
