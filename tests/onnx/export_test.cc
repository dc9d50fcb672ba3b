// What is in exported files, without running them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "crema/layer.h"
#include "data/databases/mean_file.h"
#include "onnx/exported_net.h"
#include "onnx/layer_table.h"
#include "temporary_folder.h"

namespace crema::testing {
namespace {

using onnx::NodeProto;

std::vector<int64_t> Whole(const NodeProto& node, const std::string& name) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() == name) return {attribute.ints().begin(), attribute.ints().end()};
  }
  return {};
}

std::vector<std::string> List(const google::protobuf::RepeatedPtrField<std::string>& names) {
  return {names.begin(), names.end()};
}

TEST(OnnxExport, HasLayersUnderTheirNames) {
  const Exported net = Export(kSmall);
  EXPECT_EQ(net.Operators(), (Names{"Conv", "Relu", "Flatten", "Gemm", "Softmax"}));
  const NodeProto& conv = net.Node("conv");
  EXPECT_EQ(List(conv.input()), (Names{"data", "conv.weight", "conv.bias"}));
  EXPECT_EQ(Whole(conv, "kernel_shape"), (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(Whole(conv, "pads"), (std::vector<int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(Whole(conv, "strides"), (std::vector<int64_t>{2, 2}));
  // The blob's name is that of what is last written under it, whatever a Dropout passes through.
  EXPECT_EQ(List(conv.output()), (Names{"conv:conv"}));
  EXPECT_EQ(List(net.Node("relu").output()), (Names{"conv"}));
  EXPECT_EQ(List(net.Node("ip").output()), (Names{"ip"}));
  EXPECT_EQ(net.Constant("conv.weight").size(), 6u * 1 * 3 * 3);
  EXPECT_EQ(net.Constant("ip.bias").size(), 5u);
  EXPECT_EQ(net.graph().name(), "Small");
  EXPECT_EQ(net.model.ir_version(), 7);
  EXPECT_EQ(net.model.opset_import(0).version(), 13);
  EXPECT_EQ(net.model.producer_name(), "crema");
  EXPECT_EQ(net.file.layers, 6);
  EXPECT_EQ(net.file.nodes, 5);
  EXPECT_EQ(net.file.parameters, 6 * 9 + 6 + 5 * 96 + 5);
}

// From operator set 18 on, reductions take axes as an input, and Split says how many parts it makes.
TEST(OnnxExport, TakesTheOperatorSetOfDeformConv) {
  const Exported net = Export(R"(
      layer { name: "offset" type: "Convolution" bottom: "data" top: "offset"
              convolution_param { num_output: 2 kernel_size: 1 } }
      layer { name: "deformable" type: "ModulatedDeformableConvolution" top: "deformable" bottom: "data" bottom: "offset"
              modulated_deformable_convolution_param { num_output: 3 kernel_size: 1 bias_term: false } }
      layer { name: "norm" type: "Reduction" bottom: "deformable" top: "norm"
              reduction_param { operation: ASUM axis: 1 } })");
  EXPECT_EQ(net.model.ir_version(), 9);
  EXPECT_EQ(net.model.opset_import(0).version(), 19);
  EXPECT_EQ(List(net.Node("deformable").input()), (Names{"data", "deformable.weight", "offset"}));
  const NodeProto& norm = net.Node("norm");
  ASSERT_EQ(norm.input_size(), 2);
  EXPECT_EQ(norm.attribute_size(), 1);
  const auto& constants = net.graph().initializer();
  EXPECT_TRUE(
      std::any_of(constants.begin(), constants.end(), [&](const auto& c) { return c.name() == norm.input(1); }));
}

TEST(OnnxExport, FoldsScaleIntoBatchNormalization) {
  const Exported net = Export(R"(
      layer { name: "bn" type: "BatchNorm" bottom: "data" top: "data2" batch_norm_param { eps: 0.001 } }
      layer { name: "scale" type: "Scale" bottom: "data2" top: "data2" scale_param { bias_term: true } }
      layer { name: "relu" type: "ReLU" bottom: "data2" top: "data2" })");
  EXPECT_EQ(net.Operators(), (Names{"BatchNormalization", "Relu"}));
  const NodeProto& bn = net.Node("bn");
  EXPECT_EQ(List(bn.input()), (Names{"data", "scale.scale", "scale.bias", "bn.mean", "bn.variance"}));
  EXPECT_EQ(List(net.Node("relu").output()), (Names{"data2"}));
}

TEST(OnnxExport, KeepsAScaleApartThatIsNotAlone) {
  const Exported net = Export(R"(
      layer { name: "bn" type: "BatchNorm" bottom: "data" top: "bn" }
      layer { name: "scale" type: "Scale" bottom: "bn" top: "scale" }
      layer { name: "abs" type: "AbsVal" bottom: "bn" top: "abs" })");
  EXPECT_EQ(net.Operators(), (Names{"BatchNormalization", "Mul", "Abs"}));
}

TEST(OnnxExport, DividesRunningStatisticsByTheirWeight) {
  const NetFile file = ParseNet(
      std::string(kInput) + R"(layer { name: "bn" type: "BatchNorm" bottom: "data" top: "bn" })", "net.prototxt");
  std::vector<LayerWeights> weights(1);
  weights[0].name = "bn";
  weights[0].blobs = {{{3}, {2, 4, 6}}, {{3}, {8, 10, 12}}, {{1}, {2}}};
  Exported net;
  ASSERT_TRUE(net.model.ParseFromString(MakeOnnxModel(file, weights, {}).bytes));
  EXPECT_EQ(net.Constant("bn.mean"), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(net.Constant("bn.variance"), (std::vector<float>{4, 5, 6}));
}

TEST(OnnxExport, WritesTheScaleOfANormalizationWithIt) {
  const NetFile file = ParseNet(std::string(kInput) + R"(
      layer { name: "bn" type: "BatchNorm" bottom: "data" top: "bn" batch_norm_param { scale_bias: true } }
      layer { name: "scale" type: "Scale" bottom: "bn" top: "bn" })",
                                "net.prototxt");
  std::vector<LayerWeights> weights(2);
  weights[0].name = "bn";
  weights[0].blobs = {{{3}, {1, 2, 3}}, {{3}, {4, 5, 6}}, {{1}, {1}}, {{3}, {7, 8, 9}}, {{3}, {-1, -2, -3}}};
  weights[1].name = "scale";
  weights[1].blobs = {{{3}, {2, 2, 2}}};
  Exported net;
  ASSERT_TRUE(net.model.ParseFromString(MakeOnnxModel(file, weights, {}).bytes));
  EXPECT_EQ(net.Operators(), (Names{"BatchNormalization", "Mul"}));
  EXPECT_EQ(net.Constant("bn.mean"), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(net.Constant("bn.scale"), (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(net.Constant("bn.bias"), (std::vector<float>{-1, -2, -3}));
}

TEST(OnnxExport, PadsAsCaffeDivides) {
  // The last windows reach one pixel beyond the padding.
  const Exported net = Export(R"(layer { name: "pool" type: "Pooling" bottom: "data" top: "pool"
                                 pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 } })");
  EXPECT_EQ(net.Operators(), (Names{"Pad", "AveragePool"}));
  EXPECT_EQ(Whole(net.Node("pool"), "pads"), (std::vector<int64_t>{0, 0, 1, 1}));
}

TEST(OnnxExport, WritesSharedWeightsOnce) {
  const Exported net = Export(R"(
      layer { name: "a" type: "InnerProduct" bottom: "data" top: "a" param { name: "w" } param { name: "b" }
              inner_product_param { num_output: 4 } }
      layer { name: "b" type: "InnerProduct" bottom: "data" top: "b" param { name: "w" } param { name: "b" }
              inner_product_param { num_output: 4 } })");
  EXPECT_EQ(net.Node("a").input(1), "a.weight");
  EXPECT_EQ(net.Node("b").input(1), "a.weight");
  EXPECT_EQ(net.graph().initializer_size(), 2);
}

TEST(OnnxExport, GivesOutputsTheirNames) {
  const Exported net = Export(R"(
      layer { name: "split" type: "Split" bottom: "data" top: "a" top: "b" }
      layer { name: "abs" type: "AbsVal" bottom: "a" top: "abs" }
      layer { name: "mute" type: "Silence" bottom: "data" })");
  EXPECT_EQ(net.Operators(), (Names{"Identity", "Abs"}));
  EXPECT_EQ(List(net.Node("abs").input()), (Names{"data"}));
  EXPECT_EQ(net.file.outputs[0].name, "abs");
  EXPECT_EQ(net.file.outputs[1].name, "b");
}

TEST(OnnxExport, WritesDropoutsThatScaleInTests) {
  const Exported net = Export(R"(
layer { name: "drop" type: "Dropout" bottom: "data" top: "drop" dropout_param { scale_train: false } }
layer { name: "abs" type: "AbsVal" bottom: "drop" top: "abs" }
)");
  EXPECT_EQ(net.Operators(), (Names{"Mul", "Abs"}));
}

TEST(OnnxExport, RefusesObjectsOfRegions) {
  const std::string error = ErrorOf(R"(
layer { name: "rest" type: "Input" top: "offsets" top: "scores" top: "regions" top: "info"
        input_param { shape { dim: 4 dim: 8 } shape { dim: 4 dim: 2 } shape { dim: 4 dim: 5 } shape { dim: 1 dim: 3 } } }
layer { name: "found" type: "DetectionOutput" bottom: "offsets" bottom: "scores" bottom: "regions" bottom: "info"
        top: "found" detection_output_param { num_classes: 2 keep_top_k: 3 } }
)");
  EXPECT_NE(error.find("DetectionOutput of regions has no form in ONNX here"), std::string::npos) << error;
}

TEST(OnnxExport, KeepsInputsApartFromWhatIsWrittenOverThem) {
  const Exported net = Export(R"(layer { name: "abs" type: "AbsVal" bottom: "data" top: "data" })");
  EXPECT_EQ(net.file.inputs[0].name, "data");
  EXPECT_EQ(net.file.outputs[0].name, "data:abs");
}

TEST(OnnxExport, SaysThatStatesAreNotKept) {
  const std::string inputs = R"(
      layer { name: "in" type: "Input" top: "x" top: "go_on"
              input_param { shape { dim: 4 dim: 2 dim: 3 } shape { dim: 4 dim: 2 } } })";
  const Exported lstm = Export(inputs + R"(
      layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "go_on" top: "h" recurrent_param { num_output: 5 } })",
                               {}, false);
  ASSERT_EQ(lstm.file.notes.size(), 1u);
  const Exported indicated = Export(R"(
      layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 4 dim: 2 dim: 3 } } }
      layer { name: "go_on" type: "ContinuationIndicator" top: "go_on"
              continuation_indicator_param { time_step: 4 batch_size: 2 } }
      layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "go_on" top: "h" recurrent_param { num_output: 5 } })",
                                    {}, false);
  for (const Diagnostic& note : indicated.file.notes) {
    EXPECT_EQ(note.message.find("begins with zeros"), std::string::npos) << note.message;
  }
  EXPECT_NE(lstm.file.notes[0].ToString().find("note: layer \"lstm\" (LSTM): begins with zeros in every run"),
            std::string::npos)
      << lstm.file.notes[0].ToString();
  const Exported exposed = Export(inputs + R"(
      layer { name: "state" type: "Input" top: "h0" input_param { shape { dim: 1 dim: 2 dim: 5 } } }
      layer { name: "rnn" type: "RNN" bottom: "x" bottom: "go_on" bottom: "h0" top: "o" top: "hT"
              recurrent_param { num_output: 5 expose_hidden: true } })",
                                  {}, false);
  EXPECT_TRUE(exposed.file.notes.empty());
  EXPECT_EQ(exposed.file.outputs[0].dims, (Names{"1", "2", "5"}));
  EXPECT_EQ(exposed.file.outputs[1].dims, (Names{"N", "2", "5"}));
}

TEST(OnnxExport, GivesTheSameBytesAgain) { EXPECT_EQ(Export(kSmall).file.bytes, Export(kSmall).file.bytes); }

TEST(OnnxExport, NamesEveryLayerWithoutAForm) {
  const std::string error = ErrorOf(R"(
layer { name: "columns" type: "Im2col" bottom: "data" top: "columns" convolution_param { kernel_size: 3 } }
layer { name: "noise" type: "DummyData" top: "noise" dummy_data_param { shape { dim: 2 dim: 3 } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 2 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 5 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer { name: "mix" type: "MixUp" bottom: "data" bottom: "label" top: "mixed" top: "target"
        mixup_param { num_classes: 5 } }
)");
  EXPECT_NE(error.find("layer \"mix\" (MixUp): there is no form of it in ONNX; export the deploy net"),
            std::string::npos)
      << error;
  EXPECT_NE(
      error.find("net.prototxt:4:25: error: layer \"columns\" (Im2col): there is no form of it in ONNX; leave it out"),
      std::string::npos)
      << error;
  EXPECT_NE(error.find("layer \"noise\" (DummyData): there is no form of it in ONNX; make it an Input layer"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("net.prototxt:8:22: error: layer \"loss\" (SoftmaxWithLoss): there is no form of it in ONNX; "
                       "export the deploy net"),
            std::string::npos)
      << error;
}

// docs/onnx.md names the same: a new type is either written in src/onnx, or named there and here.
TEST(OnnxExport, KnowsEveryLayerType) {
  const std::set<std::string> without_form = {"Accuracy",
                                              "AnchorTarget",
                                              "AnnotatedData",
                                              "BoxAnnotatorOHEM",
                                              "CenterLoss",
                                              "ChannelNorm",
                                              "ClusterDetections",
                                              "ClusterGroundtruth",
                                              "ContrastiveLoss",
                                              "Correlation",
                                              "CtcDecoder",
                                              "CtcLoss",
                                              "Data",
                                              "DenseImageData",
                                              "DetectNetTransformation",
                                              "DetectionEvaluate",
                                              "Downsample",
                                              "DummyData",
                                              "EuclideanLoss",
                                              "ExpMax",
                                              "FlowWarp",
                                              "FocalLoss",
                                              "Grid",
                                              "HDF5Data",
                                              "HDF5Output",
                                              "HingeLoss",
                                              "Im2col",
                                              "ImageData",
                                              "ImageLabelmapData",
                                              "ImageSegData",
                                              "InfogainLoss",
                                              "Input",
                                              "L1Loss",
                                              "LiftedStructSimilaritySoftmaxLoss",
                                              "Local",
                                              "LabelsequenceAccuracy",
                                              "LSTMUnit",
                                              "Lstm",
                                              "MMDLoss",
                                              "MemoryData",
                                              "MultiBoxLoss",
                                              "MultiLabelAccuracy",
                                              "MixUp",
                                              "MultiStageMeanfield",
                                              "MultinomialLogisticLoss",
                                              "NegSquare",
                                              "PSROIPooling",
                                              "PrecisionRecall",
                                              "Proposal",
                                              "ProposalTarget",
                                              "RegionLoss",
                                              "Resample",
                                              "ScoreDetections",
                                              "SegAccuracy",
                                              "SigmoidCrossEntropyLoss",
                                              "SmoothL1Loss",
                                              "SmoothL1LossOHEM",
                                              "SoftmaxCrossEntropyLoss",
                                              "SoftmaxFocalLoss",
                                              "SoftmaxWithLoss",
                                              "SoftmaxWithLossOHEM",
                                              "TripletLoss",
                                              "VideoData",
                                              "Warp",
                                              "WeightedSoftmaxWithLoss",
                                              "WindowData",
                                              "Yolov3"};
  for (const LayerType* type : LayerTypes()) {
    EXPECT_EQ(onnx::FindLayerFunction(type->name) == nullptr, without_form.count(type->name) > 0) << type->name;
  }
}

TEST(OnnxExport, MakesValuesReady) {
  OnnxOptions options;
  options.transform = OnnxTransform{"data", {}};
  for (const float mean : {10, 20, 30}) options.transform->param.add_mean_value(mean);
  options.transform->param.add_std_value(4);
  options.transform->param.set_scale(0.5);
  const std::string layer = R"(layer { name: "abs" type: "AbsVal" bottom: "data" top: "abs" })";
  const Exported net = Export(layer, options);
  EXPECT_EQ(net.Operators(), (Names{"Sub", "Mul", "Abs"}));
  EXPECT_EQ(net.graph().node(0).input(0), "data");
  EXPECT_EQ(net.graph().node(2).input(0), net.graph().node(1).output(0));
  EXPECT_EQ(net.Constant("data.mean"), (std::vector<float>{10, 20, 30}));
  EXPECT_EQ(net.Constant("data.factor"), (std::vector<float>{0.125, 0.125, 0.125}));
  EXPECT_EQ(net.file.inputs[0].dims, (Names{"N", "3", "8", "8"}));

  options.transform->param.clear_mean_value();
  for (const float mean : {10, 20}) options.transform->param.add_mean_value(mean);
  EXPECT_NE(ErrorOf(layer, options).find("(Input): gives 2 numbers for images of 3 channel(s)"), std::string::npos);
}

TEST(OnnxExport, CutsTheMeanImageAsImagesAreCut) {
  const TemporaryFolder folder;
  MeanImage mean{{3, 10, 12}, std::vector<float>(360)};
  for (size_t i = 0; i < mean.values.size(); ++i) mean.values[i] = static_cast<float>(i);
  WriteMean(mean, folder / "mean.binaryproto");
  OnnxOptions options;
  options.transform = OnnxTransform{"data", {}};
  options.transform->param.set_mean_file(folder / "mean.binaryproto");
  const std::string layer = R"(layer { name: "abs" type: "AbsVal" bottom: "data" top: "abs" })";
  const std::vector<float> cut = Export(layer, options).Constant("data.mean");
  ASSERT_EQ(cut.size(), 3u * 8 * 8);
  EXPECT_EQ(cut[0], 1 * 12 + 2);              // row 1, column 2
  EXPECT_EQ(cut[191], 2 * 120 + 8 * 12 + 9);  // row 8, column 9 of the last channel

  mean = {{3, 7, 12}, std::vector<float>(252)};
  WriteMean(mean, folder / "mean.binaryproto");
  EXPECT_NE(ErrorOf(layer, options).find("is 3x7x12, but images are 3x8x8"), std::string::npos);
}

TEST(OnnxExport, RefusesANetWithoutOutputs) {
  EXPECT_NE(ErrorOf(R"(layer { name: "mute" type: "Silence" bottom: "data" })").find("nothing comes out of the net"),
            std::string::npos);
}

// ONNX has no such windows: what they hold is put behind the others.
TEST(OnnxExport, PadsForWindowsBehindTheImage) {
  const Exported net = Export(R"(
layer { name: "within" type: "Pooling" bottom: "data" top: "within" pooling_param { kernel_size: 1 stride: 7 } }
layer { name: "behind" type: "Pooling" bottom: "data" top: "behind" top: "where"
        pooling_param { kernel_size: 1 stride_h: 5 stride_w: 1 } }
)");
  EXPECT_EQ(net.Operators(), (Names{"MaxPool", "MaxPool", "Mod", "Cast", "Pad", "Pad"}));
  EXPECT_EQ(net.Constant("behind.empty_value"), std::vector<float>{0});
  EXPECT_EQ(net.Constant("behind.empty_position"), std::vector<float>{-1});
}

TEST(OnnxExport, RefusesWhatProtobufCannotHold) {
  const std::string error = ErrorOf(R"(layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
                                       inner_product_param { num_output: 4000000 bias_term: false } })");
  EXPECT_NE(error.find("the file would have 2.9 GiB, but protobuf"), std::string::npos) << error;
}

}  // namespace
}  // namespace crema::testing
