// crema finetune on small images whose colour is their class.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "crema/files.h"
#include "image/codec.h"
#include "tools/colour_net.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

constexpr char kTunedNet[] = R"(
name: "colours"
layer { name: "data" type: "Data" top: "data" top: "label" transform_param { scale: 0.004 }
        data_param { source: "none" batch_size: 16 backend: LMDB } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
        convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "fc" type: "InnerProduct" bottom: "conv1" top: "fc"
        inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss" }
)";
constexpr char kDeploy[] = R"(
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 12 dim: 12 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
        convolution_param { num_output: 8 kernel_size: 3 } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "fc" type: "InnerProduct" bottom: "conv1" top: "fc" inner_product_param { num_output: 10 } }
layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" }
)";

class Finetune : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("model/train_val.prototxt", kTunedNet);
    folder_.Write("model/deploy.prototxt", kDeploy);
    for (int i = 0; i < 20; ++i) {
      const auto dim = static_cast<uint8_t>(5 * i);
      const std::string number = std::to_string(i);
      WriteJpeg(folder_, "photos/blue/" + number + ".jpg", Coloured(20 + i, 30, 250, dim, dim));
      WritePng(folder_, "photos/green/" + number + ".png", Coloured(30, 20 + i, dim, 250, dim));
      WriteJpeg(folder_, "photos/red/" + number + ".jpg", Coloured(16, 16 + i, dim, dim, 250));
    }
  }

  std::vector<std::string> Words(const std::string& output, std::vector<std::string> more) const {
    std::vector<std::string> words = {"crema",         "finetune",           "--model=model/train_val.prototxt",
                                      "--data=photos", "--output=" + output, "--threads=1",
                                      "--lr=0.02"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  Finished Run(const std::string& output, std::vector<std::string> more) const {
    return RunProgram(Words(output, std::move(more)), {.folder = folder_.path()});
  }

  const ScratchFolder folder_;
};

TEST_F(Finetune, GoesFromAFolderToANetThatPredicts) {
  // A truncated and an empty file harm nothing.
  const std::string whole = ReadText(folder_ / "photos/red/1.jpg");
  folder_.Write("photos/red/cut.jpg", whole.substr(0, whole.size() / 2));
  folder_.Write("photos/red/empty.jpg", "");
  const Finished first = Run("scratch", {"--from_scratch", "--epochs=8", "--patience=0"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(ReadText(folder_ / "scratch/curves.html").find(">accuracy<"), std::string::npos);
  EXPECT_NE(
      first.out.find("3 classes, 54 images to train with, 6 to validate with; 2 that cannot be read are left out"),
      std::string::npos)
      << first.out;
  EXPECT_TRUE(first.Says("photos/red/cut.jpg is damaged or cut short")) << first.err;
  EXPECT_TRUE(first.Says("photos/red/empty.jpg is empty")) << first.err;
  EXPECT_NE(first.out.find("accuracy 100.00% (6 of 6)"), std::string::npos) << first.out;
  for (const char* name :
       {"train_val.prototxt", "deploy.prototxt", "solver.prototxt", "labels.txt", "train.txt", "val.txt",
        "snapshots/model_best.caffemodel", "report/confusion.svg", "report/report.json"}) {
    EXPECT_TRUE(fs::exists(folder_ / "scratch" / name)) << name;
  }
  EXPECT_EQ(ReadText(folder_ / "scratch/labels.txt"), "blue\ngreen\nred\n");
  EXPECT_EQ(ReadText(folder_ / "scratch/train.txt").find("cut.jpg"), std::string::npos);
  // Two snapshots are kept.
  int snapshots = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "scratch/snapshots")) {
    snapshots += entry.path().extension() == ".solverstate";
  }
  EXPECT_EQ(snapshots, 2);

  // The net that came out is the one to start from, and learns two of the classes; conv1 stays as it is.
  fs::remove_all(folder_ / "photos/green");
  const Finished second = RunProgram(
      {"crema", "finetune", "--model=scratch/train_val.prototxt", "--weights=scratch/snapshots/model_best.caffemodel",
       "--data=photos", "--output=tuned", "--freeze=until:relu1", "--epochs=4", "--threads=1"},
      {.folder = folder_.path()});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_TRUE(second.Says("Copied 1 layer: conv1")) << second.err;
  EXPECT_TRUE(second.Says("Ignoring source layer fc_new")) << second.err;
  EXPECT_TRUE(second.Says("Layer fc_new_new is not in it and starts afresh")) << second.err;
  EXPECT_FALSE(second.Says("how values are made ready")) << second.err;
  const Finished of_deploy = RunProgram({"crema", "finetune", "--model=model/deploy.prototxt", "--from_scratch",
                                         "--data=photos", "--output=bytes", "--epochs=1", "--threads=1"},
                                        {.folder = folder_.path()});
  EXPECT_TRUE(of_deploy.Says("model/deploy.prototxt: warning: does not say how values are made ready"))
      << of_deploy.err;
  EXPECT_NE(second.out.find("accuracy 100.00%"), std::string::npos) << second.out;

  const Finished predicted = RunProgram(
      {"crema", "predict", "--model=tuned/deploy.prototxt", "--weights=tuned/snapshots/model_best.caffemodel",
       "--labels=tuned/labels.txt", "--top=1", "--format=csv", "photos/red/3.jpg", "photos/blue/3.jpg"},
      {.folder = folder_.path()});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_NE(predicted.out.find("photos/red/3.jpg,1,1,red,"), std::string::npos) << predicted.out;
  EXPECT_NE(predicted.out.find("photos/blue/3.jpg,1,0,blue,"), std::string::npos) << predicted.out;
}

TEST_F(Finetune, AKilledRunContinuesExactly) {
  const std::vector<std::string> flags = {"--from_scratch", "--epochs=120", "--patience=0", "--seed=7"};
  const Finished straight = Run("out", flags);
  ASSERT_EQ(straight.exit_code, 0) << straight.err;
  // Model files hold the net with its paths, so all runs work in a folder of the same name.
  fs::rename(folder_ / "out", folder_ / "straight");
  for (const char* moment : {"Snapshotting solver state", "Testing net"}) {
    {
      Running running(Words("out", flags), {.folder = folder_.path()});
      ASSERT_TRUE(running.WaitFor(moment, 10)) << running.Err();
      running.Signal(SIGKILL);
    }
    const Finished again = Run("out", flags);
    ASSERT_EQ(again.exit_code, 0) << again.err;
    EXPECT_TRUE(again.Says("Resuming from")) << again.err;
    for (const char* name : {"model_best.caffemodel", "model_iter_600.caffemodel", "model_iter_600.solverstate"}) {
      ASSERT_TRUE(fs::exists(folder_ / "straight/snapshots" / name)) << name;
      EXPECT_TRUE(ReadText(folder_ / "out/snapshots" / name) == ReadText(folder_ / "straight/snapshots" / name))
          << name << " differs after a kill at \"" << moment << "\"";
    }
    int left = 0;
    for (const auto& entry : fs::directory_iterator(folder_ / "out/snapshots")) {
      left += entry.path().extension() == ".solverstate";
    }
    EXPECT_EQ(left, 2);
    fs::remove_all(folder_ / "out");
  }
}

TEST_F(Finetune, WritesWhereNoOtherRunDoes) {
  Running running(Words("out", {"--from_scratch", "--epochs=10000", "--patience=0"}), {.folder = folder_.path()});
  ASSERT_TRUE(running.WaitFor("Snapshotting solver state")) << running.Err();
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--from_scratch", "--epochs=10000", "--patience=0"},
        std::vector<std::string>{"--from_scratch", "--epochs=1", "--force"}}) {
    const Finished other = Run("out", flags);
    EXPECT_NE(other.exit_code, 0);
    EXPECT_TRUE(other.Says("another training (process")) << other.err;
    EXPECT_TRUE(other.Says("another --output")) << other.err;
  }
  running.Signal(SIGINT);
  EXPECT_EQ(running.Wait().exit_code, 0) << running.Err();
  const std::string unfinished = folder_ / "out/snapshots/model_iter_5.caffemodel.tmp.12345";
  folder_.Write("out/snapshots/model_iter_5.caffemodel.tmp.12345", "half");
  folder_.Write("out/snapshots/another_iter_5.caffemodel", "of another training");
  EXPECT_EQ(Run("out", {"--from_scratch", "--epochs=1", "--force"}).exit_code, 0);
  EXPECT_FALSE(fs::exists(unfinished));
  EXPECT_TRUE(fs::exists(folder_ / "out/snapshots/another_iter_5.caffemodel"));
}

TEST_F(Finetune, FilesOfAnotherRequestAreNotReplaced) {
  ASSERT_EQ(Run("out", {"--from_scratch", "--epochs=1"}).exit_code, 0);
  const Finished other = Run("out", {"--from_scratch", "--epochs=2"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(other.Says("says `max_iter: 5`, and this request `max_iter: 10`: ")) << other.err;
  EXPECT_TRUE(other.Says("holds files of another request or of other images, or edited ones (solver.prototxt)"))
      << other.err;
  EXPECT_TRUE(other.Says("crema train --solver=" + (folder_ / "out/solver.prototxt").string())) << other.err;
  EXPECT_EQ(Run("out", {"--from_scratch", "--epochs=2", "--force"}).exit_code, 0);
}

// As after an upgrade: the model and its weights lie elsewhere, and so does the folder that is copied.
TEST_F(Finetune, GoesOnInAnotherPlace) {
  ASSERT_EQ(Run("start", {"--from_scratch", "--epochs=1"}).exit_code, 0);
  const auto tune = [&](const std::string& version, const std::string& output, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"crema",
                                      "finetune",
                                      "--model=" + version + "/train_val.prototxt",
                                      "--weights=" + version + "/colours.caffemodel",
                                      "--data=photos",
                                      "--output=" + output,
                                      "--threads=1",
                                      "--epochs=200",
                                      "--patience=0",
                                      "--lr=0.02"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  fs::create_directories(folder_ / "v1");
  for (const char* file : {"train_val.prototxt", "deploy.prototxt"}) {
    fs::copy_file(folder_ / "model" / file, folder_ / "v1" / file);
  }
  fs::copy_file(folder_ / "start/snapshots/model_best.caffemodel", folder_ / "v1/colours.caffemodel");
  {
    Running running(tune("v1", "out"), {.folder = folder_.path()});
    ASSERT_TRUE(running.WaitFor("Snapshotting solver state", 2)) << running.Err();
    running.Signal(SIGINT);
    EXPECT_EQ(running.Wait().exit_code, 0) << running.Err();
  }
  fs::copy(folder_ / "v1", folder_ / "v2");
  folder_.Write("v2/colours.caffemodel", "other ones");
  Finished run = RunProgram(tune("v2", "out"), {.folder = folder_.path()});
  EXPECT_EQ(run.exit_code, 2);

  fs::copy(folder_ / "start/snapshots/model_best.caffemodel", folder_ / "v2/colours.caffemodel",
           fs::copy_options::overwrite_existing);
  fs::rename(folder_ / "v1", folder_ / "v3");
  fs::copy(folder_ / "out", folder_ / "copy", fs::copy_options::recursive);
  // As `cp -r` may copy them: the first snapshot last.
  std::map<int, fs::path> states;
  for (const auto& entry : fs::directory_iterator(folder_ / "copy/snapshots")) {
    const std::string name = entry.path().filename().string(), before = "model_iter_";
    if (name.ends_with(".solverstate")) states[std::stoi(name.substr(before.size()))] = entry.path();
  }
  ASSERT_GE(states.size(), 2u);
  fs::last_write_time(states.begin()->second, fs::file_time_type::clock::now());
  folder_.Write("copy/solver.prototxt", "# mine\n" + ReadText(folder_ / "copy/solver.prototxt"));
  const std::string left = ReadText(folder_ / "out/solver.prototxt");
  run = RunProgram(tune("v2", "copy"), {.folder = folder_.path()});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("Resuming from " + states.rbegin()->second.string())) << run.err;
  EXPECT_NE(run.out.find("which was " + (folder_ / "out").string()), std::string::npos) << run.out;
  EXPECT_TRUE(fs::exists(folder_ / "copy/snapshots/model_iter_1000.caffemodel"));
  EXPECT_FALSE(fs::exists(folder_ / "out/snapshots/model_iter_1000.caffemodel"));
  const std::string solver = ReadText(folder_ / "copy/solver.prototxt");
  EXPECT_TRUE(solver.starts_with("# mine\n"));
  EXPECT_NE(solver.find("weights: \"" + (folder_ / "v2/colours.caffemodel\"").string()), std::string::npos) << solver;
  EXPECT_EQ(ReadText(folder_ / "copy/train_val.prototxt").find((folder_ / "out/").string()), std::string::npos);
  EXPECT_EQ(ReadText(folder_ / "out/solver.prototxt"), left);

  // Edited in a third place: the command that goes on would write to the second.
  fs::rename(folder_ / "copy", folder_ / "edited");
  run = RunProgram(tune("v2", "edited", {"--seed=9"}), {.folder = folder_.path()});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(run.Says("solver.prototxt trains elsewhere (snapshot_prefix: \"" + (folder_ / "copy/").string()))
      << run.err;
  EXPECT_FALSE(run.Says("--snapshot=auto")) << run.err;
}

TEST_F(Finetune, BalancesTheClassesItTrainsWith) {
  for (int i = 3; i < 20; ++i) fs::remove(folder_ / ("photos/red/" + std::to_string(i) + ".jpg"));
  const Finished run = Run("rare", {"--from_scratch", "--epochs=6", "--patience=0", "--balance_classes"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string net = ReadText(folder_ / "rare/train_val.prototxt");
  EXPECT_EQ(net.find("balance_classes: true"), net.rfind("balance_classes: true")) << "of the layer of TRAIN alone";
  EXPECT_NE(net.find("balance_classes: true"), std::string::npos);
  EXPECT_EQ(net.find("shuffle"), std::string::npos);
}

TEST_F(Finetune, LearnsFromDatabases) {
  const Finished converted = RunProgram(
      {"convert_imageset", "--encoded", "--split=train:0.8,val:0.2", "photos", "colours"}, {.folder = folder_.path()});
  ASSERT_EQ(converted.exit_code, 0) << converted.err;
  const Finished run =
      RunProgram({"crema", "finetune", "--model=model/train_val.prototxt", "--from_scratch", "--data=colours",
                  "--output=out", "--epochs=8", "--lr=0.02", "--threads=1", "--patience=0"},
                 {.folder = folder_.path()});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("3 classes, 48 images to train with, 12 to validate with"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("accuracy 100.00% (12 of 12)"), std::string::npos) << run.out;
  EXPECT_EQ(ReadText(folder_ / "out/labels.txt"), "blue\ngreen\nred\n");
  EXPECT_NE(run.out.find("class     train       val\nblue         16         4\n"), std::string::npos) << run.out;
}

TEST_F(Finetune, DatabasesThatNumberClassesOtherwiseAreRefused) {
  ASSERT_EQ(RunProgram({"convert_imageset", "--encoded", "photos", "tr_lmdb"}, {.folder = folder_.path()}).exit_code,
            0);
  fs::rename(folder_ / "photos/blue", folder_ / "blue");
  const auto convert = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"convert_imageset", "--encoded", "photos", "va_lmdb"};
    words.insert(words.begin() + 1, more.begin(), more.end());
    return RunProgram(words, {.folder = folder_.path()});
  };
  const auto tune = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"crema",          "finetune",       "--model=model/train_val.prototxt",
                                      "--from_scratch", "--data=tr_lmdb", "--val=va_lmdb",
                                      "--output=out",   "--epochs=1",     "--threads=1"};
    words.insert(words.end(), more.begin(), more.end());
    return RunProgram(words, {.folder = folder_.path()});
  };
  ASSERT_EQ(convert({}).exit_code, 0);
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--labels=tr_labels.txt"}}) {
    const Finished run = tune(more);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_TRUE(run.Says("va_lmdb: error: has \"green\" as class 0, says \"va_labels.txt\"")) << run.err;
  }
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  const Finished again = convert({"--labels=tr_labels.txt", "--force"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_TRUE(again.Says("warning: there is no record of \"blue\"")) << again.err;
  const Finished run = tune({});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(ReadText(folder_ / "out/labels.txt"), "blue\ngreen\nred\n");
  // Of the label of each image no class is made.
  fs::remove_all(folder_ / "out");
  fs::remove(folder_ / "va_labels.txt");
  folder_.Write("tr_labels.txt", "0\n1\n0\n2\n2\n");
  const Finished numbered = tune({});
  EXPECT_EQ(numbered.exit_code, 0) << numbered.err;
  EXPECT_TRUE(numbered.Says("the name \"0\" stands twice")) << numbered.err;
  EXPECT_EQ(ReadText(folder_ / "out/labels.txt"), "0\n1\n2\n");
}

TEST_F(Finetune, MistakesAreNamed) {
  const auto expect = [&](const std::vector<std::string>& words, const std::string& text) {
    std::vector<std::string> all = {"crema", "finetune"};
    all.insert(all.end(), words.begin(), words.end());
    const Finished run = RunProgram(all, {.folder = folder_.path()});
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_TRUE(run.Says(text)) << run.err;
    EXPECT_FALSE(fs::exists(folder_ / "out"));
  };
  const std::string model = "--model=model/train_val.prototxt";
  expect({model, "--data=photos", "--output=out"}, "--weights=FILE is missing");
  NetParameter other;
  LayerParameter& layer = *other.add_layer();
  layer.set_name("of_another_net");
  layer.add_blobs()->add_data(1);
  folder_.Write("other.caffemodel", other.SerializeAsString());
  expect({model, "--data=photos", "--output=out", "--weights=other.caffemodel"},
         "other.caffemodel: error: no layer of model/train_val.prototxt but its classifier has the name of one in it");
  expect({model, "--data=nothing", "--output=out", "--from_scratch"}, "there is neither such a folder nor");
  expect({model, "--data=photos", "--output=out", "--from_scratch", "--freeze=conv1"}, "expected until:LAYER");
  expect({"--model=no/such.prototxt", "--data=photos", "--output=out", "--from_scratch"}, "there is no such file");
  expect({"--model=photos", "--data=photos", "--output=out"}, "--model=photos is a folder; give the net in it");
  expect({"--model=./photos", "--data=photos", "--output=out"}, "--model=./photos/deploy.prototxt --weights=FILE");
  expect({"--model=lenet", "--data=photos", "--output=a,b", "--from_scratch"}, "commas part the names of files");
  expect({"--model=alexnet", "--data=photos", "--output=out"}, "the zoo has no weights of alexnet here");
  expect({model, "--data=photos", "--output=out", "--from_scratch", "--val=other"},
         "--val=other: it goes with a database");
  expect({model, "--data=photos", "--output=out", "--from_scratch", "--labels=l.txt"}, "leave --labels out");
  folder_.Write("list.txt", "photos/blue/0.jpg 0\nphotos/red/0.jpg 1\nphotos/red/1.jpg 2000000000\n");
  ASSERT_EQ(RunProgram({"convert_imageset", "--encoded", "./", "list.txt", "db"}, {.folder = folder_.path()}).exit_code,
            0);
  expect({model, "--data=db", "--val=db", "--output=out", "--from_scratch"},
         "record \"00000002_photos/red/1.jpg\" of db has the label 2000000000");
  folder_.Write("old/CURRENT", "MANIFEST-000002\n");
  expect({model, "--data=old", "--output=out", "--from_scratch"}, "\"old\" is a LevelDB, and only LMDB is read");
  fs::create_directories(folder_ / "photos/void");
  expect({model, "--data=photos", "--output=out", "--from_scratch"}, "photos/void\" holds no image");
}

}  // namespace
}  // namespace crema::testing_tools
