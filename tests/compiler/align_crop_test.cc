// Offsets of Crop by coordinate maps.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "compiler/compiler.h"
#include "device/device.h"
#include "errors.h"

namespace crema {
namespace {

std::string LayerOf(const std::string& type, const std::string& bottoms, const std::string& top,
                    const std::string& more = {}) {
  std::string text = "layer { name: '" + top + "' type: '" + type + "' top: '" + top + "' ";
  for (size_t at = 0; at < bottoms.size();) {
    const size_t end = std::min(bottoms.find(' ', at), bottoms.size());
    text += "bottom: '" + bottoms.substr(at, end - at) + "' ";
    at = end + 1;
  }
  return text + more + " }\n";
}

std::string DataOf(const std::string& extents) {
  return LayerOf("Input", "", "data", "input_param { shape { " + extents + " } }");
}

std::string Window(const std::string& settings) { return "convolution_param { num_output: 1 " + settings + " }"; }

std::string Convolution(const std::string& bottom, const std::string& top, const std::string& settings) {
  return LayerOf("Convolution", bottom, top, Window(settings));
}

std::string Deconvolution(const std::string& bottom, const std::string& top, const std::string& settings) {
  return LayerOf("Deconvolution", bottom, top, Window(settings));
}

// VGG-16 as FCN has it, with one channel, up to what fc7 makes.
std::string FcnBody() {
  std::string net = DataOf("dim: 1 dim: 3 dim: 64 dim: 80"), last = "data";
  const int layers[] = {2, 2, 3, 3, 3};
  for (int block = 1; block <= 5; ++block) {
    for (int i = 1; i <= layers[block - 1]; ++i) {
      const std::string name = std::to_string(block) + "_" + std::to_string(i), conv = "conv" + name;
      net += Convolution(last, conv, block == 1 && i == 1 ? "kernel_size: 3 pad: 100" : "kernel_size: 3 pad: 1");
      net += "layer { name: 'relu" + name + "' type: 'ReLU' bottom: '" + conv + "' top: '" + conv + "' }\n";
      last = conv;
    }
    const std::string pool = "pool" + std::to_string(block);
    net += LayerOf("Pooling", last, pool, "pooling_param { pool: MAX kernel_size: 2 stride: 2 }");
    last = pool;
  }
  net += Convolution("pool5", "fc6", "kernel_size: 7") + LayerOf("Dropout", "fc6", "drop6");
  return net + Convolution("drop6", "fc7", "kernel_size: 1") + Convolution("fc7", "score_fr", "kernel_size: 1");
}

std::unique_ptr<CompiledNet> Compiled(const std::string& text) {
  NetOptions options;
  options.context.device = &CpuDevice();
  return Compile(ParseNet(text, "net.prototxt"), options);
}

std::vector<int> OffsetOf(const CompiledNet& net, const std::string& name) {
  for (const Node& node : net.graph.nodes) {
    if (node.name() != name) continue;
    const auto& offset = node.param->crop_param().offset();
    return {offset.begin(), offset.end()};
  }
  ADD_FAILURE() << "no layer " << name;
  return {};
}

void ExpectError(const std::string& text, const std::string& expected) {
  ExpectThrows<UserError>([&] { Compiled(text); }, {expected});
}

const char kAuto[] = "crop_param { auto: true }";

// github.com/shelhamer/fcn.berkeleyvision.org, voc-fcn32s.
TEST(AlignCrop, FindsTheOffsetOfFcn32s) {
  const std::string up = Deconvolution("score_fr", "upscore", "kernel_size: 64 stride: 32 bias_term: false");
  const auto net = Compiled(FcnBody() + up + LayerOf("AutoCrop", "upscore data", "score"));
  EXPECT_EQ(OffsetOf(*net, "score"), (std::vector<int>{19, 19}));
}

// Its three crops, which stand upon each other, with these settings.
std::string Fcn8s(const std::string& crop) {
  return FcnBody() + Deconvolution("score_fr", "upscore2", "kernel_size: 4 stride: 2") +
         Convolution("pool4", "score_pool4", "kernel_size: 1") +
         LayerOf("Crop", "score_pool4 upscore2", "score_pool4c", crop) +
         LayerOf("Eltwise", "upscore2 score_pool4c", "fuse_pool4") +
         Deconvolution("fuse_pool4", "upscore_pool4", "kernel_size: 4 stride: 2") +
         Convolution("pool3", "score_pool3", "kernel_size: 1") +
         LayerOf("Crop", "score_pool3 upscore_pool4", "score_pool3c", crop) +
         LayerOf("Eltwise", "upscore_pool4 score_pool3c", "fuse_pool3") +
         Deconvolution("fuse_pool3", "upscore8", "kernel_size: 16 stride: 8") +
         LayerOf("Crop", "upscore8 data", "score", crop);
}

// voc-fcn8s.
TEST(AlignCrop, FindsTheOffsetsOfFcn8s) {
  const auto compiled = Compiled(Fcn8s(kAuto));
  EXPECT_EQ(OffsetOf(*compiled, "score_pool4c"), (std::vector<int>{5, 5}));
  EXPECT_EQ(OffsetOf(*compiled, "score_pool3c"), (std::vector<int>{9, 9}));
  EXPECT_EQ(OffsetOf(*compiled, "score"), (std::vector<int>{31, 31}));
}

// HED: side outputs whose convolutions were padded by 35.
TEST(AlignCrop, FindsTheOffsetsOfHed) {
  const std::string body = DataOf("dim: 1 dim: 3 dim: 40 dim: 50") +
                           Convolution("data", "conv1", "kernel_size: 3 pad: 35") +
                           LayerOf("Pooling", "conv1", "pool1", "pooling_param { kernel_size: 2 stride: 2 }") +
                           Convolution("pool1", "conv2", "kernel_size: 3 pad: 1") +
                           LayerOf("Pooling", "conv2", "pool2", "pooling_param { kernel_size: 2 stride: 2 }");
  const auto net =
      Compiled(body + LayerOf("AutoCrop", "conv1 data", "first") +
               Deconvolution("conv2", "up2", "kernel_size: 4 stride: 2") + LayerOf("AutoCrop", "up2 data", "second") +
               Deconvolution("pool2", "up3", "kernel_size: 8 stride: 4") + LayerOf("AutoCrop", "up3 data", "third"));
  EXPECT_EQ(OffsetOf(*net, "first"), (std::vector<int>{34, 34}));
  EXPECT_EQ(OffsetOf(*net, "second"), (std::vector<int>{35, 35}));
  EXPECT_EQ(OffsetOf(*net, "third"), (std::vector<int>{36, 36}));
}

TEST(AlignCrop, CountsDilationAndEachAxis) {
  const std::string net =
      DataOf("dim: 1 dim: 1 dim: 20 dim: 20") + Convolution("data", "a", "kernel_size: 3 dilation: 2 pad: 5") +
      Convolution("a", "b", "kernel_h: 1 kernel_w: 5 pad_h: 1 pad_w: 4") + LayerOf("AutoCrop", "b data", "c");
  EXPECT_EQ(OffsetOf(*Compiled(net), "c"), (std::vector<int>{4, 5}));
}

TEST(AlignCrop, FollowsVolumesAndLayersThatOnlyEnlarge) {
  const std::string volumes = DataOf("dim: 1 dim: 1 dim: 4 dim: 6 dim: 6") +
                              Convolution("data", "a", "kernel_size: 3 pad: 2 pad: 3 pad: 1") +
                              LayerOf("AutoCrop", "a data", "c");
  EXPECT_EQ(OffsetOf(*Compiled(volumes), "c"), (std::vector<int>{1, 2, 0}));
  const std::string enlarged = DataOf("dim: 1 dim: 1 dim: 12 dim: 12") +
                               Convolution("data", "a", "kernel_size: 3 pad: 5") +
                               LayerOf("Pooling", "a", "p", "pooling_param { kernel_size: 2 stride: 2 }") +
                               LayerOf("Upsample", "p", "u", "upsample_param { scale: 2 }") +
                               LayerOf("Concat", "u u", "twice") + LayerOf("AutoCrop", "twice data", "c");
  EXPECT_EQ(OffsetOf(*Compiled(enlarged), "c"), (std::vector<int>{4, 4}));
}

// Numbers of the bottom's middle, not of its corner.
TEST(AlignCrop, CutsThere) {
  NetOptions options;
  options.context.device = &CpuDevice();
  Net net(ParseNet(DataOf("dim: 1 dim: 1 dim: 3 dim: 3") +
                       LayerOf("Convolution", "data", "a",
                               "convolution_param { num_output: 1 kernel_size: 1 pad: 2 bias_term: false"
                               " weight_filler { type: 'constant' value: 2 } }") +
                       LayerOf("Crop", "a data", "c", kAuto),
                   "net.prototxt"),
          options);
  const Tensor data = net.blob("data");
  for (int i = 0; i < 9; ++i) data.f32()[i] = static_cast<float>(i);
  net.Forward();
  for (int i = 0; i < 9; ++i) EXPECT_EQ(net.blob("c").f32()[i], static_cast<float>(2 * i)) << i;
}

TEST(AlignCrop, TellsWhatCannotBeAligned) {
  const std::string data = DataOf("dim: 1 dim: 4 dim: 8 dim: 8");
  const std::string half = LayerOf("Pooling", "data", "half", "pooling_param { kernel_size: 2 stride: 2 }");
  ExpectError(
      data + half + LayerOf("AutoCrop", "data half", "c"),
      "layer \"c\" (AutoCrop): cannot be aligned: axis 2: an element of \"data\", of which both are made, is 1 of "
      "\"data\", but 0.5 of \"half\"; scales must be equal");
  ExpectError(data + Convolution("data", "a", "kernel_size: 2 pad: 2") + LayerOf("Crop", "a data", "c", kAuto),
              "axis 2: the first element of \"data\" stands at 1.5 of \"a\", which is no offset");
  ExpectError(data + Convolution("data", "a", "kernel_size: 3") + LayerOf("Crop", "a data", "c", kAuto),
              "the first element of \"data\" stands at -1 of \"a\", which is no offset");
  ExpectError(data + LayerOf("Permute", "data", "p", "permute_param { order: 0 order: 1 order: 3 order: 2 }") +
                  LayerOf("Crop", "p data", "c", kAuto),
              "no blob is found that both \"p\" and \"data\" are made of: these layers have no coordinate map: \"p\" "
              "(Permute); give offset");
  ExpectError(data + LayerOf("Input", "", "other", "input_param { shape { dim: 1 dim: 4 dim: 2 dim: 2 } }") +
                  LayerOf("AutoCrop", "data other", "c"),
              "no blob is found that both \"data\" and \"other\" are made of; give offset");
  ExpectError(data + LayerOf("Crop", "data data", "c", "crop_param { auto: true axis: 1 }"),
              "only height and width can be aligned; remove axis, or give offset");
}

std::vector<std::string> Warnings(const std::string& text) {
  std::vector<std::string> warnings;
  const auto net = Compiled(text);
  for (const Diagnostic& warning : net->warnings) warnings.push_back(warning.message);
  return warnings;
}

TEST(AlignCrop, WarnsWhereACutFrom0IsElsewhere) {
  const std::string padded =
      DataOf("dim: 1 dim: 1 dim: 8 dim: 8") + Convolution("data", "a", "kernel_size: 3 pad_h: 5 pad_w: 3");
  const std::vector<std::string> warnings = Warnings(padded + LayerOf("Crop", "a data", "c"));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(
      warnings[0].find("layer \"c\" (Crop): cuts from offset 0 on, but by the layers between them \"data\" begins "
                       "at [4, 2] of \"a\""),
      std::string::npos)
      << warnings[0];
  EXPECT_TRUE(Warnings(padded + LayerOf("Crop", "a data", "c", "crop_param { offset: 0 }")).empty());
  EXPECT_TRUE(Warnings(padded + LayerOf("Crop", "a data", "c", kAuto)).empty());
  const std::string aligned = DataOf("dim: 1 dim: 1 dim: 8 dim: 8") +
                              LayerOf("Pooling", "data", "p", "pooling_param { kernel_size: 3 stride: 2 }") +
                              Deconvolution("p", "a", "kernel_size: 3 stride: 2");
  EXPECT_TRUE(Warnings(aligned + LayerOf("Crop", "a data", "c")).empty());
}

TEST(AlignCrop, WarnsOfCropsUponEachOther) {
  const std::vector<std::string> warnings = Warnings(Fcn8s({}));
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_NE(warnings[0].find("\"upscore2\" begins at [5, 5] of \"score_pool4\""), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[1].find("\"upscore_pool4\" begins at [9, 9] of \"score_pool3\""), std::string::npos)
      << warnings[1];
  EXPECT_NE(warnings[2].find("\"data\" begins at [31, 31] of \"upscore8\""), std::string::npos) << warnings[2];
}

}  // namespace
}  // namespace crema
