// What a .cfg says of training becomes a solver and a net that learns.
#include "darknet/training.h"

#include <gtest/gtest.h>

#include <string_view>

#include "crema/net.h"
#include "darknet/made_net.h"
#include "errors.h"

namespace crema::darknet {
namespace {

// One anchor of each of two grids, for one class.
constexpr const char* kSections =
    "[convolutional]\nbatch_normalize=1\nfilters=4\nsize=3\nstride=8\npad=1\nactivation=leaky\n"
    "[convolutional]\nfilters=6\nsize=1\nactivation=linear\n"
    "[yolo]\nmask=1\nanchors=8,8, 16,24\nclasses=1\nnum=2\n";

std::string Cfg(const std::string& net, const std::string& yolo = {}) {
  return "[net]\nchannels=3\nheight=32\nwidth=32\n" + net + "\n" + kSections + yolo;
}

std::string NotesOf(const ImportedNet& net) {
  std::string notes;
  for (const Diagnostic& note : net.notes) notes += note.ToString() + "\n";
  return notes;
}

struct Imported {
  ImportedNet net;
  DarknetTraining training;
};

Imported Import(const std::string& cfg, size_t channels = 3) {
  const MadeNet made(cfg, std::vector<float>(4 * 4 + 4 * 9 * channels + 6 + 24));
  Imported imported;
  imported.net = ImportDarknetNet(made.cfg(), made.weights(), {.data = "birds"}, &imported.training);
  return imported;
}

std::string TrainingError(const std::string& cfg) {
  return ThrownBy<UserError>([&] { Import(cfg); });
}

const LayerParameter& LayerCalled(const NetParameter& net, std::string_view name) {
  for (const LayerParameter& layer : net.layer()) {
    if (layer.name() == name) return layer;
  }
  ADD_FAILURE() << "no layer " << name;
  return net.layer(0);
}

constexpr const char* kLong = "max_batches=5000\n";

TEST(DarknetTraining, TakesTheSolver) {
  const SolverParameter solver =
      Import(Cfg("batch=64\nsubdivisions=16\nlearning_rate=0.01\nmomentum=0.8\ndecay=0.001\nburn_in=200\n"
                 "max_batches=5000\npolicy=steps\nsteps=4000,4500\nscales=.1,.1\n"))
          .training.solver;
  EXPECT_EQ(solver.iter_size(), 16);
  EXPECT_EQ(solver.max_iter(), 5000);
  EXPECT_EQ(solver.base_lr(), 0.01F);
  EXPECT_EQ(solver.momentum(), 0.8F);
  EXPECT_EQ(solver.weight_decay(), 0.001F);
  EXPECT_EQ(solver.warmup_iter(), 200);
  EXPECT_EQ(solver.warmup_power(), 4);
  EXPECT_EQ(solver.lr_policy(), "multistep");
  EXPECT_EQ(solver.gamma(), 0.1F);
  ASSERT_EQ(solver.stepvalue_size(), 2);
  EXPECT_EQ(solver.stepvalue(1), 4500);
  EXPECT_EQ(solver.eval_type(), "detection");
  EXPECT_EQ(solver.test_interval(), 500);
}

TEST(DarknetTraining, StepsMayHaveFactorsOfTheirOwn) {
  // As YOLOv2's: the first one at once.
  const SolverParameter solver =
      Import(Cfg("learning_rate=0.001\nmax_batches=900\npolicy=steps\nsteps=-1,100,800\nscales=.1,10,.5\n"))
          .training.solver;
  EXPECT_EQ(solver.lr_policy(), "multifixed");
  ASSERT_EQ(solver.stagelr_size(), 3);
  ASSERT_EQ(solver.stageiter_size(), 3);
  EXPECT_FLOAT_EQ(solver.stagelr(0), 0.0001F);
  EXPECT_EQ(solver.stageiter(0), 99);
  EXPECT_FLOAT_EQ(solver.stagelr(1), 0.001F);
  EXPECT_EQ(solver.stageiter(1), 799);
  EXPECT_FLOAT_EQ(solver.stagelr(2), 0.0005F);
  EXPECT_EQ(solver.stageiter(2), 900);
}

TEST(DarknetTraining, TakesEveryPolicy) {
  const auto solver = [](const std::string& lines) { return Import(Cfg(kLong + lines)).training.solver; };
  EXPECT_EQ(solver("").lr_policy(), "fixed");
  EXPECT_EQ(solver("policy=step\nstep=100\nscale=.5\n").stepsize(), 100);
  EXPECT_EQ(solver("policy=exp\ngamma=.99\n").gamma(), 0.99F);
  EXPECT_EQ(solver("policy=poly\n").power(), 4);
  EXPECT_EQ(solver("policy=sigmoid\ngamma=.01\nstep=50\n").gamma(), -0.01F);
  EXPECT_EQ(solver("policy=sgdr\nlearning_rate_min=.0002\n").min_lr(), 0.0002F);
  const SolverParameter adam = solver("adam=1\nB1=.8\nB2=.99\neps=.001\n");
  EXPECT_EQ(adam.type(), "Adam");
  EXPECT_EQ(adam.momentum(), 0.8F);
  EXPECT_EQ(adam.momentum2(), 0.99F);
  EXPECT_EQ(adam.delta(), 0.001F);
}

TEST(DarknetTraining, ChangesImages) {
  const NetParameter net =
      Import(Cfg(std::string(kLong) + "batch=8\nsubdivisions=2\nsaturation=1.5\nexposure=2\nhue=.1\n", "jitter=.25\n"))
          .training.net;
  ASSERT_GE(net.layer_size(), 2);
  const LayerParameter &train = net.layer(0), &test = net.layer(1);
  EXPECT_EQ(train.data_param().source(), "birds_train_lmdb");
  EXPECT_EQ(test.data_param().source(), "birds_val_lmdb");
  EXPECT_EQ(train.data_param().batch_size(), 4u);
  const TransformationParameter& transform = train.transform_param();
  EXPECT_TRUE(transform.mirror());
  EXPECT_FLOAT_EQ(transform.scale(), 1 / 255.0F);
  EXPECT_EQ(transform.resize_param().width(), 32u);
  EXPECT_FLOAT_EQ(transform.distort_param().saturation_lower(), 1 / 1.5F);
  EXPECT_EQ(transform.distort_param().contrast_upper(), 2);
  EXPECT_FLOAT_EQ(transform.distort_param().hue_delta(), 18);
  EXPECT_EQ(train.annotated_data_param().yolo_data_jitter(), 0.25F);
  EXPECT_EQ(train.annotated_data_param().yolo_data_type(), 1);
  // Darknet learns what is seen of objects whose middle was cut off.
  EXPECT_FALSE(transform.has_emit_constraint());
  EXPECT_FALSE(test.transform_param().mirror());
  EXPECT_FALSE(test.transform_param().has_distort_param());
  EXPECT_FALSE(test.has_annotated_data_param());
  std::string gray = Cfg(std::string(kLong) + "saturation=1.5\nexposure=2\nhue=.1\n");
  gray.replace(gray.find("channels=3"), 10, "channels=1");
  const NetParameter of_gray = Import(gray, 1).training.net;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(of_gray.layer(i).transform_param().force_gray());
  const DistortionParameter& distort = of_gray.layer(0).transform_param().distort_param();
  EXPECT_EQ(distort.contrast_upper(), 2);
  EXPECT_EQ(distort.saturation_prob() + distort.hue_prob(), 0);
  EXPECT_FALSE(Import(Cfg(std::string(kLong) + "flip=0\n")).training.net.layer(0).transform_param().mirror());
  const NetParameter fitting = Import(Cfg(std::string(kLong) + "letter_box=1\n")).training.net;
  for (int i = 0; i < 2; ++i) {
    const ResizeParameter& resize = fitting.layer(i).transform_param().resize_param();
    EXPECT_EQ(resize.resize_mode(), ResizeParameter::FIT_LARGE_SIZE_AND_PAD);
    EXPECT_EQ(resize.width(), 32u);
    EXPECT_EQ(resize.pad_value(0), 128);
    EXPECT_EQ(resize.interp_mode_size(), 1);
  }
}

TEST(DarknetTraining, LearnsAsYoloSays) {
  const Yolov3Parameter plain = LayerCalled(Import(Cfg(kLong)).training.net, "yolo_2").yolov3_param();
  EXPECT_EQ(plain.iou_loss(), Yolov3Parameter::MSE);
  EXPECT_EQ(plain.coord_scale(), 1);
  EXPECT_EQ(plain.thresh(), 0.5F);
  EXPECT_EQ(plain.iou_thresh(), 1);
  EXPECT_EQ(plain.label_smooth_eps(), 0);
  EXPECT_EQ(plain.anchors_scale(), 8u);
  ASSERT_EQ(plain.mask_size(), 1);
  EXPECT_EQ(plain.mask(0), 1u);
  const Yolov3Parameter other =
      LayerCalled(Import(Cfg(kLong,
                             "iou_loss=ciou\niou_normalizer=.07\nmax_delta=5\ncls_normalizer=.5\nobj_normalizer=2\n"
                             "ignore_thresh=.7\niou_thresh=.213\nscale_x_y=1.1\nlabel_smooth_eps=.1\n"))
                      .training.net,
                  "yolo_2")
          .yolov3_param();
  EXPECT_EQ(other.iou_loss(), Yolov3Parameter::CIOU);
  EXPECT_EQ(other.iou_normalizer(), 0.07F);
  EXPECT_EQ(other.max_delta(), 5);
  EXPECT_EQ(other.class_scale(), 0.5F);
  EXPECT_EQ(other.object_scale(), 2);
  EXPECT_EQ(other.noobject_scale(), 2);
  EXPECT_EQ(other.thresh(), 0.7F);
  EXPECT_EQ(other.iou_thresh(), 0.213F);
  EXPECT_EQ(other.scale_x_y(), 1.1F);
  EXPECT_EQ(other.label_smooth_eps(), 0.1F);
}

std::string RegionCfg(const std::string& lines) {
  return "[net]\nbatch=2\nchannels=3\nheight=32\nwidth=32\nmax_batches=5000\n"
         "[convolutional]\nbatch_normalize=1\nfilters=4\nsize=3\nstride=8\npad=1\nactivation=leaky\n"
         "[convolutional]\nfilters=6\nsize=1\nactivation=linear\n"
         "[region]\nanchors=1.5,2.25\nclasses=1\nnum=1\ncoords=4\nsoftmax=1\n" +
         lines;
}

TEST(DarknetTraining, LearnsAsRegionSays) {
  const NetParameter net = Import(RegionCfg("")).training.net;
  const RegionLossParameter plain = LayerCalled(net, "region_2").region_loss_param();
  EXPECT_EQ(plain.thresh(), 0.5F);
  for (const float scale : {plain.object_scale(), plain.noobject_scale(), plain.class_scale(), plain.coord_scale()}) {
    EXPECT_EQ(scale, 1);
  }
  EXPECT_EQ(plain.bias_match(), 0u);
  EXPECT_EQ(plain.rescore(), 0u);
  EXPECT_EQ(plain.softmax(), 1u);
  EXPECT_EQ(plain.num_class(), 1u);
  EXPECT_EQ(plain.num(), 1u);
  ASSERT_EQ(plain.biases_size(), 2);
  EXPECT_EQ(plain.biases(1), 2.25F);
  EXPECT_EQ(plain.warmup_images(), 12800u);
  EXPECT_EQ(net.layer(0).annotated_data_param().yolo_data_jitter(), 0.2F);
  EXPECT_EQ(LayerCalled(net, "region_2").bottom(1), "label");
  EXPECT_EQ(LayerCalled(net, "detection_out").type(), "YoloDetectionOutput");
  EXPECT_EQ(LayerCalled(net, "detection_eval").detection_evaluate_param().num_classes(), 2u);

  // As YOLOv2's.
  const Imported imported =
      Import(RegionCfg("bias_match=1\njitter=.3\nrescore=1\nobject_scale=5\nnoobject_scale=1.5\nclass_scale=2\n"
                       "coord_scale=3\nabsolute=1\nthresh=.6\nrandom=1\nlog=0\nmax=90\nfocal_loss=0\nclassfix=1\n"));
  const RegionLossParameter other = LayerCalled(imported.training.net, "region_2").region_loss_param();
  EXPECT_EQ(other.thresh(), 0.6F);
  EXPECT_EQ(other.object_scale(), 5);
  EXPECT_EQ(other.noobject_scale(), 1.5F);
  EXPECT_EQ(other.class_scale(), 2);
  EXPECT_EQ(other.coord_scale(), 3);
  EXPECT_EQ(other.bias_match(), 1u);
  EXPECT_EQ(other.rescore(), 1u);
  EXPECT_EQ(imported.training.net.layer(0).annotated_data_param().yolo_data_jitter(), 0.3F);
  const std::string notes = NotesOf(imported.net);
  EXPECT_EQ(imported.net.notes.size(), 2u) << notes;
  for (const char* part :
       {":33: warning: random=1 has no effect here", ":37: warning: classfix=1 has no effect here"}) {
    EXPECT_NE(notes.find(part), std::string::npos) << notes;
  }
}

// Weights decay, biases and scales do not; layers have the names that the .caffemodel has.
TEST(DarknetTraining, PreparesLayers) {
  const Imported imported = Import(Cfg(kLong));
  const NetParameter& net = imported.training.net;
  const LayerParameter &first = LayerCalled(net, "conv_0"), &second = LayerCalled(net, "conv_1"),
                       &scale = LayerCalled(net, "conv_0_scale");
  ASSERT_EQ(first.param_size(), 1);
  ASSERT_EQ(second.param_size(), 2);
  EXPECT_EQ(second.param(0).decay_mult(), 1);
  EXPECT_EQ(second.param(1).decay_mult(), 0);
  ASSERT_EQ(scale.param_size(), 2);
  EXPECT_EQ(scale.param(0).decay_mult(), 0);
  EXPECT_EQ(first.convolution_param().weight_filler().type(), "msra");
  EXPECT_EQ(LayerCalled(net, "conv_0_bn").batch_norm_param().moving_average_fraction(), 0.99F);
  for (const LayerParameter& layer : imported.net.weights.layer()) LayerCalled(net, layer.name());
  EXPECT_EQ(LayerCalled(net, "detection_eval").detection_evaluate_param().num_classes(), 2u);
}

TEST(DarknetTraining, TellsWhatIsLeftOut) {
  const Imported imported = Import(Cfg(std::string(kLong) + "mosaic=1\nmixup=0\nclip=1\n",
                                       "random=1\nfocal_loss=1\nresize=1.5\niou_thresh_kind=iou\nonlyforward=1\n"));
  const std::string notes = NotesOf(imported.net);
  for (const char* part : {"net.cfg:6: warning: mosaic=1 has no effect here", "random=1", "focal_loss=1", "resize=1.5",
                           "net.cfg:8: warning: clip=1 has no effect here", "onlyforward=1"}) {
    EXPECT_NE(notes.find(part), std::string::npos) << notes;
  }
  EXPECT_EQ(notes.find("mixup"), std::string::npos) << notes;
  EXPECT_EQ(notes.find("iou_thresh_kind"), std::string::npos) << notes;
}

// Of published files, which stand so for testing.
TEST(DarknetTraining, WarnsOfBatchesOfOneImage) {
  EXPECT_NE(NotesOf(Import(Cfg(std::string(kLong) + "batch=1\n")).net).find("net.cfg:6: warning: batch=1 changes"),
            std::string::npos);
  EXPECT_NE(NotesOf(Import(Cfg(kLong)).net).find("net.cfg:1: warning: batch=1 changes"), std::string::npos);
  EXPECT_EQ(NotesOf(Import(Cfg(std::string(kLong) + "batch=2\n")).net), "");
}

// A third convolution learns, between these two and the [yolo].
constexpr const char* kLearningSections =
    "[convolutional]\nbatch_normalize=1\nfilters=4\nsize=3\nstride=8\npad=1\nactivation=leaky\n%\n"
    "[convolutional]\nfilters=6\nsize=1\nactivation=linear\n"
    "[yolo]\nmask=1\nanchors=8,8, 16,24\nclasses=1\nnum=2\n";

Imported ImportLearning(const std::string& first_keys, const std::string& net = "batch=2\n") {
  std::string sections = kLearningSections;
  sections.replace(sections.find('%'), 1, first_keys);
  return Import("[net]\nchannels=3\nheight=32\nwidth=32\nmax_batches=5000\n" + net + sections);
}

TEST(DarknetTraining, FreezesSections) {
  for (const char* keys : {"stopbackward=1", "stopbackward=5000", "dont_update=5000", "train_only_bn=1"}) {
    const Imported imported = ImportLearning(keys);
    EXPECT_EQ(NotesOf(imported.net), "") << keys;
    const NetParameter& net = imported.training.net;
    const LayerParameter &frozen = LayerCalled(net, "conv_0"), &scale = LayerCalled(net, "conv_0_scale");
    ASSERT_EQ(frozen.param_size(), 1);
    ASSERT_EQ(scale.param_size(), 2);
    for (const ParamSpec& param : {frozen.param(0), scale.param(0), scale.param(1)}) {
      EXPECT_TRUE(param.has_lr_mult()) << keys;
      EXPECT_EQ(param.lr_mult(), 0) << keys;
      EXPECT_EQ(param.decay_mult(), 0) << keys;
    }
    EXPECT_EQ(LayerCalled(net, "conv_1").param(0).lr_mult(), 1) << keys;
    EXPECT_EQ(LayerCalled(net, "conv_1").param(0).decay_mult(), 1) << keys;
    for (const LayerParameter& layer : imported.net.net.layer()) EXPECT_EQ(layer.param_size(), 0) << layer.name();
  }
  // Of a section behind them it freezes both.
  const NetParameter all = Import(Cfg(kLong, "stopbackward=1\n")).training.net;
  for (const char* name : {"conv_0", "conv_0_scale", "conv_1"}) {
    for (const ParamSpec& param : LayerCalled(all, name).param()) EXPECT_EQ(param.lr_mult(), 0) << name;
  }
}

TEST(DarknetTraining, SectionsHaveRatesOfTheirOwn) {
  const NetParameter net = ImportLearning("learning_rate=.5").training.net;
  EXPECT_EQ(LayerCalled(net, "conv_0").param(0).lr_mult(), 0.5F);
  EXPECT_EQ(LayerCalled(net, "conv_0").param(0).decay_mult(), 1);
  EXPECT_EQ(LayerCalled(net, "conv_0_scale").param(1).lr_mult(), 0.5F);
  EXPECT_EQ(LayerCalled(net, "conv_0_scale").param(1).decay_mult(), 0);
  EXPECT_EQ(LayerCalled(net, "conv_1").param(0).lr_mult(), 1);
}

TEST(DarknetTraining, TellsOfFreezingForAPart) {
  const Imported imported = ImportLearning("stopbackward=800\ndont_update=20\nburnin_update=2");
  const std::string notes = NotesOf(imported.net);
  for (const char* part : {"net.cfg:14: warning: stopbackward=800 has no effect here: Darknet freezes this section and "
                           "those before it for the first 800 updates alone; write stopbackward=1",
                           "net.cfg:15: warning: dont_update=20 has no effect here: Darknet freezes this section for "
                           "the first 20 updates alone; write dont_update=5000",
                           "net.cfg:16: warning: burnin_update=2 has no effect here"}) {
    EXPECT_NE(notes.find(part), std::string::npos) << notes;
  }
  EXPECT_EQ(LayerCalled(imported.training.net, "conv_0").param(0).lr_mult(), 1);
}

TEST(DarknetTraining, NeedsNoWeights) {
  const MadeNet made(Cfg(std::string(kLong) + "batch=2\n"), std::vector<float>());
  DarknetTraining training;
  const ImportedNet net = ImportDarknetNet(made.cfg(), "", {.data = "birds"}, &training);
  EXPECT_EQ(net.weights.layer_size(), 0);
  EXPECT_EQ(NotesOf(net), "");
  EXPECT_EQ(LayerCalled(training.net, "conv_0").convolution_param().weight_filler().type(), "msra");
  // What swaps the channels is not learnt.
  const MadeNet grouped(
      "[net]\nbatch=2\nchannels=3\nheight=32\nwidth=32\nmax_batches=9\n[maxpool]\n" + std::string(kSections),
      std::vector<float>());
  const ImportedNet swapped = ImportDarknetNet(grouped.cfg(), "", {.data = "birds"}, &training);
  ASSERT_EQ(swapped.weights.layer_size(), 1);
  EXPECT_EQ(swapped.weights.layer(0).name(), "data_swap");
  EXPECT_EQ(swapped.weights.layer(0).blobs_size(), 1);

  const MadeNet frozen(Cfg(std::string(kLong) + "batch=2\n", "stopbackward=1\n"), std::vector<float>());
  const std::string notes = NotesOf(ImportDarknetNet(frozen.cfg(), "", {.data = "birds"}, &training));
  EXPECT_NE(notes.find("warning: layer \"conv_0\" is frozen, but has no weights"), std::string::npos) << notes;
}

TEST(DarknetTraining, MistakesAreTold) {
  const auto expect = [](const std::string& cfg, const std::string& part) {
    const std::string error = TrainingError(cfg);
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  expect(Cfg(""), "net.cfg:1: error: [net] says no max_batches");
  expect(Cfg(std::string(kLong) + "batch=10\nsubdivisions=4\n"), "subdivisions=4 does not divide batch=10");
  expect(Cfg(std::string(kLong) + "policy=steps\nsteps=10,20\nscales=.1\n"), "as many scales as steps");
  expect(Cfg(std::string(kLong) + "policy=steps\nsteps=20,10\nscales=.1,.1\n"), "increasing order");
  expect(Cfg(std::string(kLong) + "policy=random\n"), "policy=random is none of constant");
  expect(Cfg(std::string(kLong) + "policy=sgdr\nsgdr_cycle=100\n"), "begins again before max_batches=5000");
  expect(Cfg(std::string(kLong) + "saturation=.5\n"), "saturation must be 1 or more");
  expect(Cfg(std::string(kLong) + "hue=2\n"), "hue must be from 0 to 1");
  expect(Cfg(kLong, "iou_loss=siou\n"), "iou_loss=siou is none of mse");
  expect(Cfg(kLong, "jitter=1\n"), "jitter must be in [0, 1)");
  expect(Cfg(kLong, "truth_thresh=.7\n"), "truth_thresh=.7");
  expect(Cfg(kLong, "learning_rate=-1\n"), "learning_rate of a section is what the one of [net] is multiplied by");
  expect(Cfg(kLong, "numload=3\n"), "numload=3 (filters that are not in the file) is not possible");
  expect(RegionCfg("map=coco9k.map\n"), "map");
  expect(RegionCfg("rescore=2\n"), "rescore=2");
  expect(RegionCfg("jitter=-1\n"), "jitter must be in [0, 1)");
  expect("[net]\nchannels=3\nheight=8\nwidth=8\nmax_batches=1\n[avgpool]\n[softmax]\n",
         "has no [yolo] or [region] that learns objects; leave out --data, and train the net with crema finetune");
}

}  // namespace
}  // namespace crema::darknet
