#include "report/probe.h"

#include <gtest/gtest.h>

#include "crema/error.h"
#include "report/dump.h"
#include "report/json_reader.h"

namespace crema {
namespace {

using testing_json::Json;
using testing_json::ParseJson;

// Data that does not exist, a layer working in place, and a loss.
constexpr char kProbedNet[] = R"(
name: "tiny \"net\""
layer {
  name: "images"
  type: "Data"
  top: "data"
  top: "label"
  data_param { source: "no_such_lmdb" batch_size: 4 backend: LMDB }
}
layer {
  name: "ip1"
  type: "InnerProduct"
  bottom: "data"
  top: "ip1"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } }
}
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer {
  name: "ip2"
  type: "InnerProduct"
  bottom: "ip1"
  top: "ip2"
  param { lr_mult: 0 }
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } }
}
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)";

ProbeOptions TinyOptions() {
  ProbeOptions options;
  options.shapes = {{"data", Shape{4, 1, 2, 2}}, {"label", Shape{4}}};
  options.backward = true;
  return options;
}

TEST(ProbeValue, IsTheDocumentedFill) {
  EXPECT_NEAR(ProbeValue(0, 1000), 0.735371, 5e-7);
  EXPECT_NEAR(ProbeValue(1, 1000), -0.330095, 5e-7);
  EXPECT_NEAR(ProbeValue(2, 1000), 0.735832, 5e-7);
}

TEST(Probe, FillsIndicesAlsoBehindLayersThatMoveThem) {
  const NetFile net = ParseNet(R"(
layer { name: "text" type: "Input" top: "text" input_param { shape { dim: 5 dim: 2 dim: 3 dim: 1 } } }
layer { name: "parts" type: "Slice" bottom: "text" top: "ids" top: "targets" slice_param { axis: 1 } }
layer { name: "flat" type: "Reshape" bottom: "ids" top: "flat" reshape_param { shape { dim: 5 dim: 3 } } }
layer {
  name: "embed" type: "Embed" bottom: "flat" top: "embed"
  embed_param { input_dim: 2 num_output: 4 weight_filler { type: "xavier" } }
}
)",
                               "text.prototxt");
  const ProbeResult result = Probe(net, ProbeOptions());
  ASSERT_EQ(result.blobs[0].name, "text");
  EXPECT_EQ(result.blobs[0].sum, 15);
  EXPECT_EQ(result.blobs[0].largest, 1);
  // Moved by what the layers say, whatever their types are.
  const NetFile images = ParseNet(R"(
layer { name: "maps" type: "Input" top: "maps" input_param { shape { dim: 1 dim: 4 dim: 4 dim: 4 } } }
layer { name: "size" type: "Input" top: "size" input_param { shape { dim: 1 dim: 4 dim: 3 dim: 2 } } }
layer { name: "mix" type: "ShuffleChannel" bottom: "maps" top: "mix" shuffle_channel_param { group: 2 } }
layer { name: "part" type: "Crop" bottom: "mix" bottom: "size" top: "part" crop_param { offset: 1 } }
layer {
  name: "embed" type: "Embed" bottom: "part" top: "embed"
  embed_param { input_dim: 2 num_output: 4 weight_filler { type: "xavier" } }
}
)",
                                  "maps.prototxt");
  const ProbeResult moved = Probe(images, ProbeOptions());
  ASSERT_EQ(moved.blobs[0].name, "maps");
  EXPECT_EQ(moved.blobs[0].sum, 32);
  EXPECT_EQ(moved.blobs[1].head[1], static_cast<float>(ProbeValue(1, 1001)));
}

// Some layers take images without a gradient.
TEST(Probe, FillsImagesWithNumbersWhoeverReadsThem) {
  const NetFile file = ParseNet(R"(
layer { name: "image" type: "Input" top: "image" input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } } }
layer { name: "small" type: "Input" top: "small" input_param { shape { dim: 1 dim: 2 dim: 4 dim: 4 } } }
layer { name: "grown" type: "Resample" bottom: "small" bottom: "image" top: "grown" }
layer { name: "less" type: "Downsample" bottom: "image" bottom: "small" top: "less" }
)",
                                "image.prototxt");
  const ProbeResult result = Probe(file, ProbeOptions());
  ASSERT_EQ(result.blobs[0].name, "image");
  EXPECT_EQ(result.blobs[0].head[1], static_cast<float>(ProbeValue(1, 1000)));
  EXPECT_EQ(result.blobs[1].head[1], static_cast<float>(ProbeValue(1, 1001)));
}

TEST(Probe, FillsInputsAndReportsLastValues) {
  const ProbeResult result = Probe(ParseNet(kProbedNet, "tiny.prototxt"), TinyOptions());
  ASSERT_EQ(result.blobs.size(), 5u);
  EXPECT_EQ(result.blobs[0].name, "data");
  EXPECT_EQ(result.blobs[0].head[1], static_cast<float>(ProbeValue(1, 1000)));
  EXPECT_EQ(result.blobs[1].name, "label");
  EXPECT_EQ(result.blobs[1].head, (std::vector<float>{0, 1, 0, 1}));
  // After the ReLU that works in place.
  EXPECT_EQ(result.blobs[2].name, "ip1");
  for (float value : result.blobs[2].head) EXPECT_GE(value, 0);
  EXPECT_EQ(result.blobs[2].sum, result.blobs[2].abssum);
  EXPECT_EQ(result.blobs[4].head[0], static_cast<float>(result.loss));
  ASSERT_EQ(result.param_gradients.size(), 4u);
  EXPECT_EQ(result.param_gradients[0].name, "ip1[0]");
  EXPECT_GT(result.param_gradients[0].abssum, 0);
  EXPECT_EQ(result.param_gradients[2].name, "ip2[0]");
  EXPECT_EQ(result.param_gradients[2].abssum, 0) << "lr_mult is 0";
  EXPECT_GT(result.param_gradients[3].abssum, 0);
}

TEST(Probe, WhatGivesOnlyItsSizeIsNoLabel) {
  const std::string text = R"(
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 1 dim: 4 dim: 4 } } }
layer { name: "big" type: "Input" top: "big" input_param { shape { dim: 1 dim: 1 dim: 6 dim: 6 } } }
layer { name: "crop" type: "Crop" bottom: "big" bottom: "data" top: "crop" }
)";
  const ProbeResult result = Probe(ParseNet(text, "crop.prototxt"), {});
  EXPECT_EQ(result.blobs[0].head[1], static_cast<float>(ProbeValue(1, 1000)));
}

TEST(Probe, IsReproducible) {
  std::string first, second;
  Probe(ParseNet(kProbedNet, "tiny.prototxt"), TinyOptions(), &first);
  Probe(ParseNet(kProbedNet, "tiny.prototxt"), TinyOptions(), &second);
  EXPECT_EQ(first, second);
}

TEST(Probe, WritesTheCorpusForm) {
  std::string text;
  const ProbeResult result = Probe(ParseNet(kProbedNet, "tiny.prototxt"), TinyOptions(), &text);
  const Json json = ParseJson(text);
  EXPECT_EQ(json["name"].string, "tiny \"net\"");
  EXPECT_EQ(json["assume"]["data"].Integers(), (std::vector<long long>{4, 1, 2, 2}));
  EXPECT_EQ(json["layers"].items[0]["type"].string, "Input");
  EXPECT_EQ(json["layers"].items[0]["name"].string, "images");
  EXPECT_EQ(json["layers"].items[1]["params"].items[0].Integers(), (std::vector<long long>{3, 4}));
  EXPECT_EQ(json["param_count"].number, 3 * 4 + 3 + 2 * 3 + 2);
  EXPECT_EQ(static_cast<float>(json["loss"].number), static_cast<float>(result.loss));
  EXPECT_EQ(json["blobs"].members.size(), 5u);
  EXPECT_EQ(json["param_gradients"]["ip1[1]"]["head"].items.size(), 3u);
}

// Nothing may overwrite a loss before it is summed, whoever else reads it.
TEST(Probe, LossesThatAreNoOutputsCount) {
  const char* net = R"(
    layer { name: "in" type: "Input" top: "x" top: "label" input_param { shape { dim: 2 dim: 3 } shape { dim: 2 } } }
    layer { name: "early" type: "SoftmaxWithLoss" bottom: "x" bottom: "label" top: "early" }
    layer { name: "hush" type: "Silence" bottom: "early" }
    layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "ip1"
      inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
    layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
      inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
    layer { name: "late" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" }
  )";
  float losses[2];
  for (const bool keep_all : {false, true}) {
    NetOptions options;
    options.keep_all = keep_all;
    Net compiled(ParseNet(net, "losses.prototxt"), options);
    FillInputs(compiled);
    FillParameters(compiled);
    losses[keep_all] = compiled.Forward();
    EXPECT_TRUE(compiled.outputs().empty());
    if (keep_all) {
      EXPECT_FLOAT_EQ(losses[1], *compiled.blob("early").f32() + *compiled.blob("(automatic)").f32());
    }
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_GT(losses[0], 1);
}

TEST(Probe, AsksForShapesThatNothingGives) {
  ProbeOptions options = TinyOptions();
  options.shapes.clear();
  try {
    Probe(ParseNet(kProbedNet, "tiny.prototxt"), options);
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("--shape=data="), std::string::npos) << error.what();
  }
}

TEST(Probe, WeightsReplaceTheFill) {
  ProbeOptions options = TinyOptions();
  options.weights = {{"ip1", "InnerProduct", {{Shape{3, 4}, std::vector<float>(12, 0)}, {Shape{3}, {1, 2, -3}}}}};
  const ProbeResult result = Probe(ParseNet(kProbedNet, "tiny.prototxt"), options);
  EXPECT_EQ(std::vector<float>(result.blobs[2].head.begin(), result.blobs[2].head.begin() + 3),
            (std::vector<float>{1, 2, 0}));
}

TEST(Probe, WritesNoFilesOfTheNet) {
  ProbeOptions options;
  options.phase = TEST;
  const ProbeResult result = Probe(ParseNet(R"(
    layer { name: "in" type: "Input" top: "x" top: "label" input_param { shape { dim: 2 dim: 3 } shape { dim: 2 } } }
    layer { name: "out" type: "HDF5Output" bottom: "x" bottom: "label"
            hdf5_output_param { file_name: "no/such/folder/out.h5" } }
  )",
                                            "tiny.prototxt"),
                                   options);
  EXPECT_EQ(result.blobs.size(), 2u);
}

TEST(AssumeInputs, TouchesOnlyWhatReadsData) {
  NetFile file = ParseNet(R"(
    layer { name: "a" type: "MemoryData" top: "x" top: "y" include { phase: TRAIN } }
    layer { name: "b" type: "NoSuchData" top: "z" }
    layer { name: "c" type: "DummyData" top: "x2" dummy_data_param { shape { dim: 2 } } }
    layer { name: "d" type: "NoSuchLayer" bottom: "x" top: "w" }
  )",
                          "mixed.prototxt");
  const BlobShapes shapes = {{"x", Shape{2}}, {"y", Shape{2, 3}}, {"z", Shape{5}}, {"x2", Shape{9}}, {"w", Shape{1}}};
  const NetFile all = AssumeInputs(file, shapes, false);
  EXPECT_EQ(all.net.layer(0).type(), "Input");
  EXPECT_EQ(all.net.layer(0).include(0).phase(), TRAIN);
  EXPECT_EQ(all.net.layer(0).input_param().shape(1).dim(1), 3);
  EXPECT_EQ(all.net.layer(1).type(), "Input");
  EXPECT_EQ(all.net.layer(2).type(), "DummyData");
  EXPECT_EQ(all.net.layer(3).type(), "NoSuchLayer");
  EXPECT_EQ(AssumeInputs(file, {shapes[0]}, false).net.layer(0).type(), "MemoryData") << "one top has no shape";
}

}  // namespace
}  // namespace crema
