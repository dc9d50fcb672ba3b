// Nets for other classes, made from nets of every form.
#include "finetune/net_surgery.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "crema/error.h"
#include "crema/net.h"
#include "errors.h"
#include "source_folder.h"

namespace crema {
namespace {

constexpr char kNet[] = R"(
name: "photos"
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN }
        transform_param { crop_size: 8 mirror: true mean_value: 1 mean_value: 2 mean_value: 3 }
        data_param { source: "a" batch_size: 2 backend: LMDB } }
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TEST }
        transform_param { crop_size: 8 mean_value: 1 mean_value: 2 mean_value: 3 }
        data_param { source: "b" batch_size: 2 backend: LMDB } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
        param { lr_mult: 1 } param { lr_mult: 2 } convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: "bn1" type: "BatchNorm" bottom: "conv1" top: "conv1" }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "aux" type: "InnerProduct" bottom: "conv1" top: "aux"
        inner_product_param { num_output: 10 bias_term: false } }
layer { name: "aux_loss" type: "SoftmaxWithLoss" bottom: "aux" bottom: "label" top: "aux_loss" loss_weight: 0.3
        loss_param { weight_by_label_freqs: true class_weighting: 1 label_smoothing: 0.1 } }
layer { name: "fc" type: "InnerProduct" bottom: "conv1" top: "fc"
        param { lr_mult: 2 decay_mult: 0.5 } inner_product_param { num_output: 10 } }
layer { name: "relu2" type: "ReLU" bottom: "fc" top: "fc" }
layer { name: "top5" type: "Accuracy" bottom: "fc" bottom: "label" top: "top5" accuracy_param { top_k: 5 }
        include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss"
        loss_param { class_weight: 1 } }
)";

LayerWeights Weights(const std::string& layer, int blobs) {
  return {layer, "", std::vector<LayerWeights::Blob>(static_cast<size_t>(blobs))};
}

NewNet TwoClasses() {
  NewNet wanted;
  wanted.name = "pets";
  wanted.classes = 2;
  LayerParameter data;
  data.set_name("data");
  data.set_type("Input");
  data.add_top("data");
  data.add_top("label");
  for (const auto& extents : {std::vector<int>{2, 3, 8, 8}, std::vector<int>{2}}) {
    BlobShape* shape = data.mutable_input_param()->add_shape();
    for (const int extent : extents) shape->add_dim(extent);
  }
  wanted.data = {data};
  return wanted;
}

const LayerParameter& Layer(const NetParameter& net, std::string_view name) {
  for (const LayerParameter& layer : net.layer()) {
    if (layer.name() == name) return layer;
  }
  throw std::runtime_error("no layer " + std::string(name));
}

std::set<std::string> Names(const NetParameter& net) {
  std::set<std::string> names;
  for (const LayerParameter& layer : net.layer()) names.insert(layer.name());
  return names;
}

TEST(NetSurgery, FindsClassifiersAndTransforms) {
  const Classification found = FindClassification(ParseNet(kNet, "net.prototxt"), "net.prototxt");
  EXPECT_EQ(found.data, "data");
  EXPECT_EQ(found.label, "label");
  EXPECT_EQ(found.scores, "fc");
  EXPECT_EQ(found.classifiers, (std::vector<std::string>{"aux", "fc"}));
  EXPECT_TRUE(found.train_transform->mirror());
  EXPECT_FALSE(found.test_transform->mirror());
  ASSERT_TRUE(found.input);
  EXPECT_EQ(found.input->channels, 3);
  EXPECT_EQ(found.input->height, 8);
}

TEST(NetSurgery, ClassifiersGetClassesNamesAndRates) {
  const NetFile file = ParseNet(kNet, "net.prototxt");
  const NetParameter net = MakeTrainNet(file, FindClassification(file, "net.prototxt"), TwoClasses(), {});
  const LayerParameter& fc = Layer(net, "fc_new");
  EXPECT_EQ(fc.inner_product_param().num_output(), 2u);
  ASSERT_EQ(fc.param_size(), 2);
  EXPECT_EQ(fc.param(0).lr_mult(), 20);
  EXPECT_EQ(fc.param(0).decay_mult(), 0.5f);
  EXPECT_EQ(fc.param(1).lr_mult(), 20);
  EXPECT_EQ(fc.param(1).decay_mult(), 0);
  EXPECT_EQ(Layer(net, "aux_new").param_size(), 1) << "it has no bias";
  EXPECT_EQ(Layer(net, "conv1").param(1).lr_mult(), 2) << "other layers keep theirs";
  EXPECT_EQ(Layer(net, "loss").loss_param().class_weight_size(), 0) << "weights of the classes before";
  EXPECT_FALSE(Layer(net, "aux_loss").loss_param().weight_by_label_freqs());
  EXPECT_EQ(Layer(net, "aux_loss").loss_param().class_weighting_size(), 0);
  EXPECT_EQ(Layer(net, "aux_loss").loss_param().label_smoothing(), 0.1f);
  EXPECT_EQ(Names(net), (std::set<std::string>{"data", "conv1", "bn1", "relu1", "aux_new", "aux_loss", "fc_new",
                                               "relu2", "loss", "accuracy"}));
  NetFile made;
  made.net = net;
  Net compiled(made, {.phase = TEST});
  EXPECT_EQ(compiled.outputs().size(), 3u);
}

TEST(NetSurgery, FreezesWhatTheWeightsHold) {
  const NetFile file = ParseNet(kNet, "net.prototxt");
  const Classification found = FindClassification(file, "net.prototxt");
  NewNet wanted = TwoClasses();
  wanted.frozen_until = "relu1";
  const NetParameter net = MakeTrainNet(file, found, wanted, {Weights("conv1", 2), Weights("bn1", 3)});
  for (const char* name : {"conv1", "bn1"}) {
    for (const ParamSpec& param : Layer(net, name).param()) EXPECT_EQ(param.lr_mult(), 0) << name;
  }
  EXPECT_EQ(Layer(net, "bn1").param_size(), 3);
  EXPECT_TRUE(Layer(net, "bn1").batch_norm_param().use_global_stats());
  EXPECT_GT(Layer(net, "fc_new").param(0).lr_mult(), 0);
  NetFile made;
  made.net = net;
  Net compiled(made, {.phase = TRAIN});
  for (const Parameter& parameter : compiled.parameters()) {
    EXPECT_EQ(parameter.trained, parameter.layer == "fc_new" || parameter.layer == "aux_new") << parameter.name();
  }

  wanted.frozen_until = "data";
  EXPECT_NE(
      ThrownBy<UserError>([&] { MakeTrainNet(file, found, wanted, {Weights("conv1", 2)}); }).find("freezes nothing"),
      std::string::npos);
  wanted.frozen_until = "relu";
  EXPECT_EQ(ThrownBy<UserError>([&] { MakeTrainNet(file, found, wanted, {}); }),
            "error: --freeze=until:relu: the net has no layer of this name; did you mean \"relu1\"?");
  wanted.frozen_until = "fc";
  EXPECT_NE(ThrownBy<UserError>([&] { MakeTrainNet(file, found, wanted, {}); }).find("would freeze layer \"aux\""),
            std::string::npos);
  wanted.frozen_until = "conv1";
  EXPECT_NE(ThrownBy<UserError>([&] { MakeTrainNet(file, found, wanted, {}); }).find("the weights hold nothing for it"),
            std::string::npos);
}

TEST(NetSurgery, FocalLossIsTheNetsLoss) {
  std::string text = kNet;
  text.replace(text.find("SoftmaxWithLoss", text.find("name: \"loss\"")), 15, "FocalLoss");
  const NetFile file = ParseNet(text, "net.prototxt");
  const Classification found = FindClassification(file, "net.prototxt");
  EXPECT_EQ(found.classifiers, (std::vector<std::string>{"aux", "fc"}));
  EXPECT_EQ(found.scores, "fc");
  NetFile made;
  made.net = MakeTrainNet(file, found, TwoClasses(), {});
  EXPECT_EQ(Layer(made.net, "loss").type(), "FocalLoss");
  EXPECT_EQ(Net(made, {.phase = TEST}).outputs().size(), 3u);
}

TEST(NetSurgery, LeavesOutWeightsOfTheDataBefore) {
  std::string text = kNet;
  for (int i = 0; i < 2; ++i) text.replace(text.find("top: \"label\" include"), 12, "top: \"label\" top: \"weight\"");
  const size_t loss = text.find("SoftmaxWithLoss", text.find("name: \"loss\""));
  text.replace(text.find("bottom: \"label\"", loss), 15, "bottom: \"label\" bottom: \"weight\"");
  text.replace(loss, 15, "WeightedSoftmaxWithLoss");
  const NetFile file = ParseNet(text, "net.prototxt");
  const Classification found = FindClassification(file, "net.prototxt");
  EXPECT_EQ(found.classifiers, (std::vector<std::string>{"aux", "fc"}));
  NetFile made;
  made.net = MakeTrainNet(file, found, TwoClasses(), {});
  EXPECT_EQ(Layer(made.net, "loss").type(), "SoftmaxWithLoss");
  EXPECT_EQ(Layer(made.net, "loss").bottom_size(), 2);
  EXPECT_EQ(Net(made, {.phase = TEST}).outputs().size(), 3u);
}

TEST(NetSurgery, FreezesStatisticsOfBn) {
  std::string text = kNet;
  const std::string type = "BatchNorm";
  text.replace(text.find(type), type.size(), "BN");
  const NetFile file = ParseNet(text, "net.prototxt");
  const Classification found = FindClassification(file, "net.prototxt");
  NewNet wanted = TwoClasses();
  wanted.frozen_until = "relu1";
  const NetParameter net = MakeTrainNet(file, found, wanted, {Weights("conv1", 2), Weights("bn1", 4)});
  EXPECT_EQ(Layer(net, "bn1").param_size(), 4);
  EXPECT_TRUE(Layer(net, "bn1").bn_param().frozen());
}

// While training alone, and in both phases.
TEST(NetSurgery, MixUpGetsTheClassesAndLeavesDeployNets) {
  for (const bool both : {false, true}) {
    SCOPED_TRACE(both);
    std::string text = kNet;
    const std::string rule = both ? "" : "include { phase: TRAIN }";
    text.insert(
        text.find("layer { name: \"conv1\""),
        "layer { name: \"mix\" type: \"MixUp\" bottom: \"data\" bottom: \"label\" top: \"data\" top: \"target\" "
        "mixup_param { num_classes: 10 alpha: 0.5 } " +
            rule + " }\n");
    for (const char* loss : {"aux_loss", "loss"}) {
      const size_t at = text.find("bottom: \"label\"", text.find("layer { name: \"" + std::string(loss) + "\""));
      text.replace(at, 15, "bottom: \"target\" " + rule);
    }
    const NetFile file = ParseNet(text, "net.prototxt");
    const Classification found = FindClassification(file, "net.prototxt");
    EXPECT_EQ(found.label, "label");
    NetFile made;
    made.net = MakeTrainNet(file, found, TwoClasses(), {});
    EXPECT_EQ(Layer(made.net, "mix").mixup_param().num_classes(), 2u);
    EXPECT_EQ(Layer(made.net, "mix").mixup_param().alpha(), 0.5f);
    const Net train(made, {.phase = TRAIN, .keep_gradients = false});
    EXPECT_EQ(Net(made, {.phase = TEST}).outputs().size(), both ? 3u : 2u);
    made.net = MakeDeployNet(made.net, found, {3, 8, 8}, {}, 5);
    EXPECT_EQ(Names(made.net).count("label"), 0u);
    const Net use(made, {.phase = TEST, .backward = false});
    ASSERT_EQ(use.outputs().size(), 1u);
    EXPECT_EQ(use.inputs().size(), 1u);
    EXPECT_EQ(use.outputs()[0].value.shape(), Shape({5, 2}));
  }
}

TEST(NetSurgery, DeployNetsHaveNoLabels) {
  const NetFile file = ParseNet(kNet, "net.prototxt");
  const Classification found = FindClassification(file, "net.prototxt");
  TransformationParameter transform;
  transform.set_crop_size(8);
  const NetParameter net = MakeDeployNet(MakeTrainNet(file, found, TwoClasses(), {}), found, {3, 8, 8}, transform, 5);
  EXPECT_EQ(Names(net), (std::set<std::string>{"data", "conv1", "bn1", "relu1", "fc_new", "relu2", "prob"}));
  EXPECT_EQ(Layer(net, "data").transform_param().crop_size(), 8u);
  NetFile made;
  made.net = net;
  Net compiled(made, {.phase = TEST, .backward = false});
  ASSERT_EQ(compiled.outputs().size(), 1u);
  EXPECT_EQ(compiled.outputs()[0].value.shape(), Shape({5, 2}));
}

TEST(NetSurgery, EveryClassifierOfTheZooCanBeReplaced) {
  for (const char* name :
       {"alexnet", "cifar_quick", "googlenet", "lenet", "mobilenet", "resnet20", "resnet50", "squeezenet"}) {
    for (const char* form : {"train_val", "deploy"}) {
      const std::string path = SourceFolder() + "/model_zoo/" + name + "/" + form + ".prototxt";
      const NetFile file = ReadNetFile(path);
      const Classification found = FindClassification(file, path);
      EXPECT_EQ(found.classifiers.size(), std::string(name) == "googlenet" && form[0] == 't' ? 3u : 1u) << path;
      const NetFile deploy = ReadNetFile(SourceFolder() + "/model_zoo/" + name + "/deploy.prototxt");
      const NetInputSize input = *FindClassification(deploy, path).input;
      NewNet wanted = TwoClasses();
      BlobShape* shape = wanted.data[0].mutable_input_param()->mutable_shape(0);
      shape->set_dim(1, input.channels);
      shape->set_dim(2, input.height);
      shape->set_dim(3, input.width);
      wanted.data[0].set_top(0, found.data);
      wanted.data[0].set_top(1, found.label);
      NetFile made;
      made.net = MakeTrainNet(file, found, wanted, {});
      const Net train(made, {.phase = TRAIN, .keep_gradients = false});
      made.net = MakeDeployNet(made.net, found, input, {}, 1);
      const Net use(made, {.phase = TEST, .backward = false});
      EXPECT_EQ(use.outputs()[0].value.shape()[1], 2) << path;
    }
  }
}

TEST(NetSurgery, TheSoftmaxOfAttentionStays) {
  const NetFile file = ParseNet(R"(
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 6 dim: 4 } } }
layer { name: "like" type: "MatMul" bottom: "data" bottom: "data" top: "like" matmul_param { transpose_b: true } }
layer { name: "weigh" type: "Softmax" bottom: "like" top: "weigh" softmax_param { axis: 2 } }
layer { name: "mix" type: "MatMul" bottom: "weigh" bottom: "data" top: "mix" }
layer { name: "fc" type: "InnerProduct" bottom: "mix" top: "fc" inner_product_param { num_output: 5 } }
layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" }
)",
                                "net.prototxt");
  const Classification found = FindClassification(file, "net.prototxt");
  EXPECT_EQ(found.classifiers, std::vector<std::string>{"fc"});
  EXPECT_EQ(found.scores, "fc");
  const NetParameter net = MakeTrainNet(file, found, TwoClasses(), {});
  EXPECT_TRUE(Names(net).count("weigh"));
  EXPECT_FALSE(Names(net).count("prob"));
}

// An embedding of images, then `layers`, which make "scores", and their loss.
NetFile Embedding(const std::string& layers) {
  return ParseNet(R"(
layer { name: "data" type: "Input" top: "data" top: "label"
        input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } shape { dim: 2 } } }
layer { name: "embedding" type: "InnerProduct" bottom: "data" top: "embedding" inner_product_param { num_output: 4 } }
)" + layers + R"(
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "scores" bottom: "label" top: "loss" }
)",
                  "net.prototxt");
}

constexpr char kSphere[] = R"(
layer { name: "sphere" type: "MarginInnerProduct" bottom: "embedding" bottom: "label" top: "scores" top: "lambda"
        margin_inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
)";

TEST(NetSurgery, ScoresWithMarginsAreMadeForOtherClasses) {
  const std::string cosines = R"(
layer { name: "cosines" type: "InnerProduct" bottom: "embedding" top: "cosines"
        inner_product_param { num_output: 10 bias_term: false normalize: true weight_filler { type: "xavier" } } }
layer { name: "margin" type: "LabelSpecificAdd" bottom: "cosines" bottom: "label" top: "margins"
        label_specific_add_param { bias: -0.35 } }
)";
  const std::string power =
      "layer { name: \"x30\" type: \"Power\" bottom: \"margins\" top: \"scores\" power_param { scale: 30 } }";
  const std::string scale =
      "layer { name: \"x30\" type: \"Scale\" bottom: \"margins\" top: \"scores\" scale_param { num_axes: 0 } }";
  const std::string center = R"(
layer { name: "center_loss" type: "CenterLoss" bottom: "embedding" bottom: "label" top: "center_loss"
        center_loss_param { num_output: 10 } }
)";
  for (const auto& [layers, classifier] :
       {std::pair(std::string(kSphere), "sphere"), std::pair(cosines + power, "cosines"),
        std::pair(cosines + scale, "cosines"), std::pair(center + kSphere, "sphere")}) {
    const NetFile file = Embedding(layers);
    const Classification found = FindClassification(file, "net.prototxt");
    EXPECT_EQ(found.classifiers, std::vector<std::string>{classifier});
    NewNet wanted = TwoClasses();
    wanted.frozen_until = "embedding";
    NetFile made;
    made.net = MakeTrainNet(file, found, wanted, {Weights("embedding", 2)});
    for (const Phase phase : {TRAIN, TEST}) {
      const Net net(made, {.phase = phase, .backward = phase == TRAIN});
      EXPECT_EQ(net.blob("scores").shape(), Shape({2, 2})) << layers;
      for (const Parameter& parameter : net.parameters()) {
        if (parameter.layer.find("_new") == std::string::npos) continue;
        EXPECT_EQ(parameter.shape[0], parameter.layer == "x30" ? 1 : 2) << parameter.name();
      }
    }
    made.net = MakeDeployNet(made.net, found, {3, 8, 8}, {}, 1);
    const Net use(made, {.phase = TEST, .backward = false});
    ASSERT_EQ(use.outputs().size(), 1u) << layers;
    EXPECT_EQ(use.outputs()[0].value.shape(), Shape({1, 2}));
  }
  const NetFile file = Embedding(center + kSphere);
  const NetParameter net = MakeTrainNet(file, FindClassification(file, "net.prototxt"), TwoClasses(), {});
  EXPECT_EQ(Layer(net, "center_loss_new").center_loss_param().num_output(), 2u) << "centres of other classes";
}

TEST(NetSurgery, StagesAreThoseOfTheFile) {
  const std::string staged =
      std::string(kSphere).replace(std::string(kSphere).rfind('}'), 1, "include { stage: \"s\" } }");
  EXPECT_EQ(ThrownBy<UserError>([&] { FindClassification(Embedding(staged), "net.prototxt"); }),
            "net.prototxt:9:1: error: nothing makes the blob \"scores\" that layer \"loss\" reads; layer \"sphere\" "
            "does in other stages only, and fine-tuning chooses none: name the one that is meant in the file, state { "
            "stage: ... }");
  const std::string other =
      "layer { name: \"e\" type: \"Exp\" bottom: \"embedding\" top: \"scores\" "
      "include { stage: \"other\" } }";
  const NetFile file = Embedding(staged + other + " state { stage: \"s\" }");
  const Classification found = FindClassification(file, "net.prototxt");
  EXPECT_EQ(found.classifiers, std::vector<std::string>{"sphere"});
  const NetParameter net = MakeTrainNet(file, found, TwoClasses(), {});
  EXPECT_FALSE(Names(net).count("e"));
  NetFile made;
  made.net = net;
  EXPECT_EQ(Net(made, {.phase = TRAIN}).blob("scores").shape(), Shape({2, 2}));
}

TEST(NetSurgery, MistakesAreNamed) {
  const auto message = [](const std::string& text) {
    return ThrownBy<UserError>([&] { FindClassification(ParseNet(text, "n"), "n"); });
  };
  EXPECT_EQ(message("layer { name: \"x\" type: \"ReLU\" bottom: \"a\" top: \"b\" }"),
            "n: error: has no layer that gives it images (Data, ImageData, Input)");
  const std::string input = "layer { name: \"data\" type: \"Input\" top: \"data\" }";
  EXPECT_EQ(message(input),
            "n: error: has neither a SoftmaxWithLoss nor a Softmax at its end: it is no net that classifies; a net "
            "that gives scores "
            "is imported with --softmax");
  EXPECT_NE(message(input + "layer { name: \"e\" type: \"Eltwise\" bottom: \"data\" bottom: \"data\" top: \"e\" }"
                            "layer { name: \"p\" type: \"Softmax\" bottom: \"e\" top: \"p\" }")
                .find("the scores of layer \"p\" come from layer \"e\" (Eltwise)"),
            std::string::npos);
  // Its softmax is a part of what finds objects.
  EXPECT_NE(message(input + "layer { name: \"p\" type: \"Softmax\" bottom: \"data\" top: \"p\" }"
                            "layer { name: \"found\" type: \"DetectionOutput\" bottom: \"p\" top: \"found\" }")
                .find("layer \"found\" (DetectionOutput) finds objects, while crema finetune makes nets that classify"),
            std::string::npos);
  // Also where crema detect adds that layer.
  EXPECT_NE(message(input + "layer { name: \"rpn\" type: \"Proposal\" bottom: \"data\" top: \"rpn\" }"
                            "layer { name: \"p\" type: \"Softmax\" bottom: \"data\" top: \"p\" }")
                .find("layer \"rpn\" (Proposal) finds objects"),
            std::string::npos);
  EXPECT_NE(message(input + "layer { name: \"p\" type: \"Softmax\" bottom: \"e\" top: \"p\" }")
                .find("nothing makes the blob \"e\""),
            std::string::npos);
  EXPECT_NE(message(input + "layer { name: \"t\" type: \"InnerProduct\" bottom: \"data\" top: \"t\" }"
                            "layer { name: \"teacher\" type: \"Softmax\" bottom: \"t\" top: \"teacher\" }"
                            "layer { name: \"fc\" type: \"InnerProduct\" bottom: \"data\" top: \"fc\" }"
                            "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"fc\" bottom: \"teacher\" }")
                .find("layer \"loss\" learns what layer \"teacher\" (Softmax) says, which knows nothing of other "
                      "classes; give a net whose loss reads labels"),
            std::string::npos);
}

}  // namespace
}  // namespace crema
