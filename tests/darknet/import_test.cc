// What comes out of an import, and what is refused.
#include "darknet/import.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "darknet/made_net.h"

namespace crema::darknet {
namespace {

const char kNet[] = "[net]\nheight=4\nwidth=4\nchannels=1\n";  // four lines
const char kConvolution[] = "[convolutional]\nfilters=2\nactivation=linear\n";

std::vector<std::string> NamesOf(const ImportedNet& imported) {
  std::vector<std::string> names;
  for (const LayerParameter& layer : imported.net.layer()) names.push_back(layer.name() + " " + layer.type());
  return names;
}

std::string ErrorOf(const std::string& lines) { return MadeNet(kNet + lines, RandomNumbers(1, 4)).Error(); }

void ExpectError(const std::string& lines, const std::string& part) {
  const std::string error = ErrorOf(lines);
  EXPECT_NE(error.find("net.cfg:" + part), std::string::npos) << part << "\n" << error;
}

TEST(DarknetImport, NamesLayersAfterSections) {
  const std::string cfg =
      NetSection(1, 8, 8) +
      "[conv]\nfilters=2\nsize=3\nbatch_normalize=1\nactivation=leaky\n[max]\nsize=2\nstride=1\n"
      "[route]\nlayers=0,1\n[dropout]\n[avg]\n[conn]\noutput=3\nactivation=linear\n[soft]\n[cost]\n";
  const ImportedNet imported = MadeNet(cfg, RandomNumbers(1, 8 + 18 + 3 + 12)).Import();
  EXPECT_EQ(NamesOf(imported),
            (std::vector<std::string>{"data Input", "conv_0 Convolution", "conv_0_bn BatchNorm", "conv_0_scale Scale",
                                      "conv_0_leaky ReLU", "maxpool_1_pool Pooling", "maxpool_1_rows Slice",
                                      "maxpool_1_rows_rest Silence", "maxpool_1_columns Slice",
                                      "maxpool_1_columns_rest Silence", "route_2 Concat", "avgpool_4 Pooling",
                                      "connected_5 InnerProduct", "softmax_6 Softmax"}));
  EXPECT_EQ(imported.net.name(), "net");
  EXPECT_EQ(imported.nodes, 9);
  ASSERT_EQ(imported.inputs.size(), 1u);
  EXPECT_EQ(imported.inputs[0].name + imported.inputs[0].shape.ToString(), "data1x1x8x8");
  ASSERT_EQ(imported.outputs.size(), 1u);
  EXPECT_EQ(imported.outputs[0].name + imported.outputs[0].shape.ToString(), "softmax_61x3");
  EXPECT_TRUE(imported.notes.empty());
}

TEST(DarknetImport, SaysHowImagesAreMadeReady) {
  const auto transform = [](const std::string& cfg, int64_t numbers) {
    return MadeNet(cfg, RandomNumbers(1, numbers)).Import().net.layer(0).transform_param();
  };
  const std::string convolution = std::string(kConvolution);
  EXPECT_FLOAT_EQ(transform(kNet + convolution, 4).scale(), 1.0F / 255);
  EXPECT_FALSE(transform(kNet + convolution, 4).has_crop_size());
  // What classifies sees the middle of images.
  EXPECT_EQ(transform(kNet + convolution + "[softmax]\n", 4).crop_size(), 4u);
  EXPECT_FALSE(transform(NetSection(1, 4, 6) + convolution + "[softmax]\n", 4).has_crop_size());
  const std::string yolo = "[softmax]\n[route]\nlayers=0\n[yolo]\nclasses=1\nnum=1\nanchors=1,1\n";
  EXPECT_FALSE(transform(NetSection(6, 4, 4) + CopySection(6) + yolo, 42).has_crop_size());
}

TEST(DarknetImport, IgnoresWhatTrainingNeeds) {
  const std::string cfg =
      "[network]\n# "
      "Testing\nbatch=1\nsubdivisions=1\nwidth=4\nheight=4\nchannels=1\nmomentum=0.9\ndecay=0.0005\nangle=0\n"
      "saturation = 1.5\nexposure = 1.5\nhue=.1\nlearning_rate=0.001\nburn_in=1000\nmax_batches = "
      "500200\npolicy=steps\n"
      "steps=400000,450000\nscales=.1,.1\nmosaic=1\nmax_crop=320\npower=4\naspect=.75\n"
      "[convolutional]\nfilters=2\nactivation=linear\nstopbackward=1\nlearning_rate=.1\ndontload=0\nclip=1\n";
  const ImportedNet imported = MadeNet(cfg, RandomNumbers(1, 4)).Import();
  EXPECT_TRUE(imported.notes.empty()) << imported.notes[0].ToString();
}

TEST(DarknetImport, WarnsOfUnknownKeysOnce) {
  const std::string cfg = std::string(kNet) + "fancy=1\n" + kConvolution + "strid=2\nfancy=1\n" + kConvolution +
                          "strid=2\n[avgpool]\nsize=2\n";
  const MadeNet made(cfg, RandomNumbers(1, 4 + 6));
  const ImportedNet imported = made.Import();
  std::vector<std::string> notes;
  for (const Diagnostic& note : imported.notes) notes.push_back(note.ToString());
  ASSERT_EQ(notes.size(), 4u);
  EXPECT_EQ(notes[0], made.cfg() + ":5: warning: \"fancy\" is no key of [net] that is known here, and has no effect");
  EXPECT_EQ(notes[1],
            made.cfg() +
                ":9: warning: \"strid\" is no key of [convolutional] that is known here, and has no effect; did "
                "you mean \"stride\"?");
  EXPECT_EQ(notes[2].find(made.cfg() + ":10: warning: \"fancy\""), 0u) << notes[2];
  EXPECT_EQ(notes[3].find(made.cfg() + ":16: warning: \"size\""), 0u) << notes[3];
}

TEST(DarknetImport, LetterBoxKeepsTheProportionsOfImages) {
  const auto transform_of = [](const std::string& setting) {
    const ImportedNet imported = MadeNet(std::string(kNet) + setting + kConvolution, RandomNumbers(1, 4)).Import();
    EXPECT_TRUE(imported.notes.empty());
    return imported.net.layer(0).transform_param();
  };
  const ResizeParameter resize = transform_of("letter_box=1\n").resize_param();
  EXPECT_EQ(resize.resize_mode(), ResizeParameter::FIT_LARGE_SIZE_AND_PAD);
  EXPECT_GT(resize.height(), 0u);
  EXPECT_GT(resize.width(), 0u);
  ASSERT_EQ(resize.pad_value_size(), 1);
  EXPECT_EQ(resize.pad_value(0), 128);
  EXPECT_FALSE(transform_of("letter_box=0\n").has_resize_param());
}

// All of a file in one error.
TEST(DarknetImport, RefusesSectionsThatHaveNoForm) {
  std::string lines = kConvolution;
  const std::vector<std::string> kinds = {"rnn",   "lstm",      "gru",        "crnn",          "conv_lstm",
                                          "local", "crop",      "detection",  "Gaussian_yolo", "local_avgpool",
                                          "lrn",   "batchnorm", "activation", "contrastive",   "implicit"};
  for (const std::string& kind : kinds) lines += "[" + kind + "]\n";
  const std::string error = ErrorOf(lines);
  for (size_t i = 0; i < kinds.size(); ++i) {
    const std::string part =
        "net.cfg:" + std::to_string(8 + i) + ": error: [" + kinds[i] + "] is no kind of section that crema can read";
    EXPECT_NE(error.find(part), std::string::npos) << part << "\n" << error;
  }
  EXPECT_EQ(error.find("did you mean"), std::string::npos) << error;
  ExpectError("[convolutonal]\n",
              "5: error: [convolutonal] is no kind of section that crema can read; did you mean "
              "\"convolutional\"?");
  // What reads one of them is not complained about.
  const std::string followed =
      ErrorOf("[crop]\n[convolutional]\nfilters=2\n[shortcut]\nfrom=-1\nweights_type=per_channel\n");
  EXPECT_EQ(std::count(followed.begin(), followed.end(), '\n'), 1) << followed;
  EXPECT_NE(followed.find("net.cfg:10: error: weights_type"), std::string::npos) << followed;
}

TEST(DarknetImport, RefusesKeysThatHaveNoForm) {
  for (const char* key : {"antialiasing", "binary", "xnor", "bin_output", "flipped", "coordconv", "sway", "rotate",
                          "stretch", "stretch_sway", "dontload", "dontloadscales"}) {
    ExpectError(kConvolution + std::string(key) + "=1\n", std::string("8: error: ") + key + "=1 (");
    EXPECT_EQ(ErrorOf(kConvolution + std::string(key) + "=0\n"), "") << key;
  }
  ExpectError(kConvolution + std::string("share_index=0\n"), "8: error: \"share_index\" (weights of another section)");
  for (const char* key : {"maxpool_depth", "antialiasing", "maxpool_zero_nonmax"}) {
    ExpectError("[maxpool]\nsize=2\n" + std::string(key) + "=1\n", std::string("7: error: ") + key + "=1 (");
  }
  ExpectError("[softmax]\ngroups=2\n", "6: error: groups=2 (several softmaxes side by side) is not possible; only 1");
  ExpectError("[softmax]\ntemperature=2\n", "6: error: temperature=2 (");
  ExpectError("[softmax]\nspatial=1\n", "6: error: spatial=1 (");
  ExpectError("[softmax]\ntree=a\n", "6: error: \"tree\" (a hierarchy of classes) is not possible");
  ExpectError("[reorg]\nflatten=1\n", "6: error: flatten=1 (");
  ExpectError("[reorg]\nextra=4\n", "6: error: extra=4 (");
  ExpectError("[reorg3d]\nreverse=1\n", "6: error: reverse=1 (");
  ExpectError(kConvolution + std::string("[shortcut]\nfrom=-1\nweights_type=per_feature\n"), "10: error: weights_type");
  ExpectError(kConvolution + std::string("[shortcut]\nfrom=-1\nalpha=.5\n"),
              "10: error: alpha=.5 (a sum with weights)");
  for (const char* name : {"hardswish", "selu", "hard_mish", "loggy", "ramp", "sigmoid", "leeky"}) {
    ExpectError("[convolutional]\nactivation=" + std::string(name) + "\n",
                "6: error: activation=" + std::string(name) + " is none that crema has a layer for (linear, elu, ");
  }
  for (const char* name : {"swish", "mish"}) {
    ExpectError("[maxpool]\n[sam]\nfrom=0\nactivation=" + std::string(name) + "\n", "8: error: activation=");
  }
}

TEST(DarknetImport, RefusesValuesThatAreNone) {
  ExpectError("[convolutional]\nfilters=many\n", "6: error: filters=many: expected a whole number from 1 to 1048576");
  ExpectError("[convolutional]\nfilters=0\n", "6: error: filters=0: expected");
  ExpectError("[convolutional]\nfilters=99999999999999999999\n", "6: error: filters=99999999999999999999: expected");
  ExpectError("[convolutional]\nstride=-1\n", "6: error: stride=-1: expected");
  ExpectError("[convolutional]\nsize=3\nsize=5\n",
              "7: error: \"size\" has another value in line 6; remove one of them");
  EXPECT_EQ(ErrorOf(kConvolution + std::string("filters=2\n")), "");
  ExpectError("[upsample]\nscale=x\n", "6: error: scale=x: expected a number");
  ExpectError("[upsample]\nscale=nan\n", "6: error: scale=nan: expected a number");
  ExpectError("[convolutional]\nsize=3\ndilation=2\npadding=2\n", "7: error: dilation=2 is possible with pad=1");
  ExpectError("[route]\nlayers=1,,2\n", "6: error: layers=1,,2: expected whole numbers");
}

TEST(DarknetImport, RefusesSectionsThatDoNotFit) {
  const std::string conv = kConvolution;
  ExpectError("[convolutional]\nsize=9\n", "5: error: [convolutional]: ");
  ExpectError("[maxpool]\nsize=9\npadding=2\n",
              "5: error: [maxpool]: size=9 is more than the 4 pixels and the padding");
  ExpectError("[maxpool]\nsize=2\npadding=3\n", "5: error: [maxpool]: padding=3 is too much for size=2");
  ExpectError(conv + "[route]\nlayers=1\n",
              "8: error: [route]: reads section 1, but its own number is 1: those before");
  ExpectError(conv + "[route]\nlayers=-2\n", "8: error: [route]: reads section -2");
  ExpectError("[route]\nlayers=-1\n", "5: error: [route]: reads section -1");
  ExpectError(conv + "[route]\n", "8: error: [route]: does not say which sections it reads; give it layers");
  ExpectError(conv + "[route]\nlayers=0\ngroups=2\ngroup_id=2\n", "8: error: [route]: group_id must be below groups");
  ExpectError(conv + "[route]\nlayers=0\ngroups=3\n",
              "8: error: [route]: cannot divide the 2 channels of conv_0 by groups");
  ExpectError(conv + "[maxpool]\nsize=2\nstride=2\n[route]\nlayers=0,1\n",
              "11: error: [route]: joins images of different");
  ExpectError(conv + "[shortcut]\n", "8: error: [shortcut]: does not say which section it adds; give it from");
  ExpectError(conv + "[maxpool]\nsize=2\nstride=2\n[shortcut]\nfrom=0\n",
              "11: error: [shortcut]: adds conv_0 (1x2x4x4) to ");
  ExpectError(conv + "[scale_channels]\nfrom=0\n", "8: error: [scale_channels]: multiplies conv_0 (1x2x4x4) by conv_0");
  ExpectError(conv + "[scale_channels]\nfrom=0,0\n", "8: error: [scale_channels]: multiplies one section");
  ExpectError(conv + "[avgpool]\n[sam]\nfrom=0\n",
              "9: error: [sam]: multiplies conv_0 (1x2x4x4) by avgpool_1 (1x2x1x1)");
  ExpectError(conv + "[sam]\n", "8: error: [sam]: does not say which section it multiplies");
  ExpectError(conv + "[reorg]\nstride=2\n", "8: error: [reorg]: ");
  ExpectError(conv + "[reorg3d]\nstride=3\n", "8: error: [reorg3d]: cannot divide height and width of conv_0");
  ExpectError(conv + "[cost]\n[softmax]\n",
              "9: error: [softmax]: reads section 1, [cost] in line 8, which makes nothing");
  ExpectError(
      "[connected]\noutput=2\n[upsample]\nstride=64\n[upsample]\nstride=64\n[upsample]\nstride=64\n[upsample]\n"
      "stride=64\n",
      "");
  ExpectError(conv + "[net]\n", "8: error: [net] stands in the middle of the file, but must be its first section");
}

TEST(DarknetImport, RefusesNetsThatAreNone) {
  const auto error = [](const std::string& cfg) { return MadeNet(cfg, RandomNumbers(1, 4)).Error(); };
  EXPECT_NE(error("[convolutional]\n").find("net.cfg:1: error: begins with [convolutional]; a .cfg of Darknet begins"),
            std::string::npos);
  EXPECT_NE(error("[net]\nwidth=3\nheight=3\n[softmax]\n").find("net.cfg:1: error: [net] says no image; give it"),
            std::string::npos);
  EXPECT_NE(error("[net]\nwidth=0\nheight=3\nchannels=3\n[softmax]\n").find("net.cfg:2: error: width=0: expected"),
            std::string::npos);
  EXPECT_NE(error(kNet).find("net.cfg:1: error: has no section behind [net]"), std::string::npos);
  EXPECT_NE(error("").find("has no sections"), std::string::npos);
}

// Settings that would make a machine allocate without end are refused before it does.
TEST(DarknetImport, RefusesWhatNoMachineHolds) {
  ExpectError("[convolutional]\nfilters=1048576\nactivation=linear\n[upsample]\nstride=64\n[upsample]\nstride=64\n",
              "10: error: [upsample]: makes 1x1048576x16384x16384, more elements than a machine holds");
  const std::string wide =
      MadeNet("[net]\nheight=1048576\nwidth=1048576\nchannels=1048576\n[softmax]\n", WeightsBytes({})).Error();
  EXPECT_NE(wide.find("more elements than a machine holds"), std::string::npos) << wide;
}

}  // namespace
}  // namespace crema::darknet
