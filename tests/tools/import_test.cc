// crema import; what comes out of models is tested in tests/onnx.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tools/colour_net.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

// Models are made by crema export.
class Import : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteColourNet(folder_);
    const Finished done = Run({"export", "--model=deploy.prototxt", "--weights=net.caffemodel", "--output=net.onnx"});
    ASSERT_EQ(done.exit_code, 0) << done.err;
  }

  Finished Run(std::vector<std::string> words) const {
    words.insert(words.begin(), "crema");
    return RunProgram(words, {.folder = folder_.path()});
  }

  const ScratchFolder folder_;
};

TEST_F(Import, WritesANetThatPredicts) {
  const Finished done = Run({"import", "--model=net.onnx", "--output=back"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.err, "");
  EXPECT_EQ(done.out.find("back.prototxt, back.caffemodel: "), 0u) << done.out;
  EXPECT_NE(done.out.find("\ninput   data  1x3x4x4\noutput  prob  1x3\n"), std::string::npos) << done.out;
  const std::string net = ReadText(folder_ / "back.prototxt");
  EXPECT_EQ(net.find("# Of net.onnx; its weights: back.caffemodel\n"), 0u) << net;
  // What both files compute for the same numbers.
  const auto probe = [&](const std::string& model, const std::string& weights) {
    return Run({"probe", "--model=" + model, "--weights=" + weights, "--phase=TEST", "--shape=data=1,3,4,4"});
  };
  const Finished old = probe("deploy.prototxt", "net.caffemodel"), back = probe("back.prototxt", "back.caffemodel");
  ASSERT_EQ(back.exit_code, 0) << back.err;
  const auto result = [](const std::string& text) { return text.substr(text.rfind("\"prob\"")); };
  ASSERT_NE(old.out.find("\"prob\""), std::string::npos) << old.out;
  EXPECT_EQ(result(old.out).substr(0, 60), result(back.out).substr(0, 60));
}

TEST_F(Import, TakesBatchAndShape) {
  const Finished batch = Run({"import", "--model=net.onnx", "--output=back", "--batch=5"});
  EXPECT_NE(batch.out.find("input   data  5x3x4x4\n"), std::string::npos) << batch.out << batch.err;
  const Finished shape = Run({"import", "--model=net.onnx", "--output=back", "--force", "--shape=data=2,3,4,4"});
  EXPECT_NE(shape.out.find("output  prob  2x3\n"), std::string::npos) << shape.out << shape.err;
}

TEST_F(Import, AddsASoftmaxForFinetuning) {
  folder_.Write("scores.prototxt", R"(
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } }
layer { name: "score" type: "InnerProduct" bottom: "data" top: "score" inner_product_param { num_output: 3 } })");
  const Finished scores =
      Run({"export", "--model=scores.prototxt", "--weights=net.caffemodel", "--output=scores.onnx"});
  ASSERT_EQ(scores.exit_code, 0) << scores.err;
  const Finished done = Run({"import", "--model=scores.onnx", "--output=back", "--softmax"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("output  prob  1x3\n"), std::string::npos) << done.out;
}

TEST_F(Import, ReplacesWhatItDidNotWriteByForceOnly) {
  const std::vector<std::string> words = {"import", "--model=net.onnx", "--output=back"};
  folder_.Write("back.caffemodel", "of a training");
  const Finished weights = Run(words);
  EXPECT_EQ(weights.exit_code, 2);
  EXPECT_TRUE(weights.Says("back.caffemodel: error: exists already")) << weights.err;
  EXPECT_FALSE(fs::exists(folder_ / "back.prototxt"));
  fs::remove(folder_ / "back.caffemodel");
  ASSERT_EQ(Run(words).exit_code, 0);
  EXPECT_EQ(Run(words).exit_code, 0) << "the same once more";
  const std::string net = ReadText(folder_ / "back.prototxt");
  folder_.Write("back.prototxt", net + "# edited\n");
  const Finished edited = Run(words);
  EXPECT_EQ(edited.exit_code, 2);
  EXPECT_TRUE(edited.Says("back.prototxt: error: exists already")) << edited.err;
  EXPECT_EQ(ReadText(folder_ / "back.prototxt"), net + "# edited\n");
  std::vector<std::string> forced = words;
  forced.push_back("--force");
  EXPECT_EQ(Run(forced).exit_code, 0);
  EXPECT_EQ(ReadText(folder_ / "back.prototxt"), net);
  // All of it or nothing.
  fs::remove(folder_ / "back.prototxt");
  fs::create_directory(folder_ / "back.prototxt");
  folder_.Write("back.caffemodel", "of a training");
  const Finished blocked = Run(forced);
  EXPECT_EQ(blocked.exit_code, 1);
  EXPECT_TRUE(blocked.Says("cannot write back.prototxt: it is a folder")) << blocked.err;
  EXPECT_EQ(ReadText(folder_ / "back.caffemodel"), "of a training");
}

TEST_F(Import, LeavesNothingBehindAMistake) {
  const auto expect = [&](const std::vector<std::string>& words, const std::string& said) {
    const Finished done = Run(words);
    EXPECT_EQ(done.exit_code, 2) << said;
    EXPECT_TRUE(done.Says(said)) << done.err;
  };
  expect({"import", "--model=net.onnx", "--output=net.prototxt"},
         "--output=net.prototxt: expected a name without its end");
  expect({"import", "--model=net.onnx"}, "--output=PREFIX");
  expect({"import", "--model=deploy.prototxt", "--output=back"}, "deploy.prototxt: error: is no file of ONNX");
  expect({"import", "--model=absent.onnx", "--output=back"}, "absent.onnx");
  expect({"import", "--model=net.onnx", "--output=back", "--shape=image=1,3,4,4"},
         "--shape=image=...: has no input of this name");
  const Finished full = RunProgram({"crema", "import", "--model=net.onnx", "--output=back"},
                                   {.folder = folder_.path(), .file_size_limit = 100});
  EXPECT_EQ(full.exit_code, 1) << full.err;
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    EXPECT_EQ(entry.path().filename().string().find("back"), std::string::npos) << entry.path();
  }
}

// A net of Darknet whose classes are red, green and blue: the means of the channels, and a Softmax.
class ImportDarknet : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("net.cfg",
                  "[net]\nwidth=4\nheight=4\nchannels=3\nmomentum=0.9\n[convolutional]\nfilters=3\nactivation=linear\n"
                  "[avgpool]\n[softmax]\n");
    WriteWeights("net.weights", {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1});
    WritePng(folder_, "red.png", Coloured(4, 4, 0, 0, 255));
    WritePng(folder_, "blue.png", Coloured(4, 4, 255, 0, 0));
  }

  void WriteWeights(const std::string& name, const std::vector<float>& numbers) const {
    const int32_t header[] = {0, 2, 0, 100, 0};
    folder_.Write(name, std::string(reinterpret_cast<const char*>(header), sizeof header) +
                            std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)));
  }
  Finished Run(std::vector<std::string> words) const {
    words.insert(words.begin(), "crema");
    return RunProgram(words, {.folder = folder_.path()});
  }

  const ScratchFolder folder_;
};

TEST_F(ImportDarknet, WritesANetThatPredicts) {
  const Finished done = Run({"import", "--model=net.cfg", "--weights=net.weights", "--output=net"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.err, "");
  EXPECT_EQ(done.out,
            "net.prototxt, net.caffemodel: 4 sections in 5 layers, 12 parameters\ninput   data  1x3x4x4\n"
            "output  softmax_2  1x3\n");
  EXPECT_EQ(ReadText(folder_ / "net.prototxt").find("# Of net.cfg; its weights: net.caffemodel\n"), 0u);
  const Finished told = Run({"predict", "--model=net.prototxt", "--weights=net.caffemodel", "--top=1", "--format=csv",
                             "red.png", "blue.png"});
  // 15 of 16 pixels are of the colour, which is 1: e^0.9375 / (e^0.9375 + 2).
  EXPECT_NE(told.out.find("red.png,1,0,0,0.56078"), std::string::npos) << told.out << told.err;
  EXPECT_NE(told.out.find("blue.png,1,2,2,0.56078"), std::string::npos) << told.out << told.err;
}

TEST_F(ImportDarknet, WritesANetThatDetects) {
  // Objectness is the mean of red, the class that of blue; the box is its anchor, in the middle of the only cell.
  folder_.Write(
      "yolo.cfg",
      "[net]\nwidth=4\nheight=4\nchannels=3\n[convolutional]\nfilters=7\nsize=4\nstride=4\nactivation=linear\n"
      "[yolo]\nanchors=2,1\nclasses=2\nnum=1\n");
  std::vector<float> numbers(7 + 7 * 48);
  for (int i = 0; i < 16; ++i) {
    numbers[static_cast<size_t>(7 + 4 * 48 + i)] = 1;       // objectness, of red
    numbers[static_cast<size_t>(7 + 5 * 48 + 32 + i)] = 1;  // the first class, of blue
    numbers[static_cast<size_t>(7 + 6 * 48 + i)] = 1;       // the second class, of red
  }
  WriteWeights("yolo.weights", numbers);
  const Finished done = Run({"import", "--model=yolo.cfg", "--weights=yolo.weights", "--output=yolo"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("output  detection_out  1x1x1x7\n"), std::string::npos) << done.out;
  const Finished found =
      Run({"detect", "--model=yolo.prototxt", "--weights=yolo.caffemodel", "--threshold=0.4", "red.png", "blue.png"});
  EXPECT_EQ(found.exit_code, 0) << found.err;
  EXPECT_EQ(found.out, "red.png  2  1.0000  1.0 1.5 3.0 2.5\nblue.png  1  0.5000  1.0 1.5 3.0 2.5\n");
}

// From images with YOLO's labels to a net that detects, by the commands that a user of Darknet takes.
TEST_F(ImportDarknet, WritesWhatTrainsIt) {
  folder_.Write("birds.cfg",
                "[net]\nbatch=4\nsubdivisions=2\nwidth=8\nheight=8\nchannels=3\nburn_in=2\nmax_batches=6\nmosaic=1\n"
                "[convolutional]\nbatch_normalize=1\nfilters=4\nsize=3\nstride=4\npad=1\nactivation=leaky\n"
                "[convolutional]\nfilters=7\nsize=1\nactivation=linear\n[yolo]\nanchors=4,4\nclasses=2\nnum=1\n");
  std::vector<float> numbers(4 * 4 + 4 * 27 + 7 + 28, 0.1F);
  WriteWeights("birds.weights", numbers);
  std::string list;
  for (const std::string name : {"a", "b", "c", "d"}) {
    WritePng(folder_, name + ".png", Coloured(8, 8, 0, 0, 255));
    folder_.Write(name + ".txt", "1 0.5 0.5 0.5 0.5\n");
    list += name + ".png\n";
  }
  folder_.Write("all.txt", list);
  folder_.Write("birds.names", "crow\nwren\n");
  const Finished converted = RunProgram({"convert_annoset", "--label_type=yolo", "--label_map_file=birds.names",
                                         "--split=train:0.5,val:0.5", "", "all.txt", "birds"},
                                        {.folder = folder_.path()});
  ASSERT_EQ(converted.exit_code, 0) << converted.err;
  const Finished imported =
      Run({"import", "--model=birds.cfg", "--weights=birds.weights", "--output=birds", "--data=birds"});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_TRUE(imported.Says("birds.cfg:9: warning: mosaic=1 has no effect here")) << imported.err;
  EXPECT_NE(imported.out.find("birds_solver.prototxt, birds_train_val.prototxt: train it on birds_train_lmdb"),
            std::string::npos)
      << imported.out;
  const Finished trained = RunProgram({"train", "--solver=birds_solver.prototxt"}, {.folder = folder_.path()});
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_TRUE(trained.Says("detection_eval = ")) << trained.err;
  const Finished found = Run({"detect", "--model=birds.prototxt", "--weights=birds_iter_6.caffemodel",
                              "--labels=birds.names", "--threshold=0.01", "a.png"});
  EXPECT_EQ(found.exit_code, 0) << found.err;

  const Finished anew = Run({"import", "--model=birds.cfg", "--output=anew", "--data=birds"});
  ASSERT_EQ(anew.exit_code, 0) << anew.err;
  EXPECT_EQ(anew.out.find("anew.prototxt: 4 sections in 7 layers, without weights\n"), 0u) << anew.out;
  EXPECT_FALSE(fs::exists(folder_ / "anew.caffemodel"));
  EXPECT_EQ(ReadText(folder_ / "anew_solver.prototxt").find("weights:"), std::string::npos);
  EXPECT_EQ(ReadText(folder_ / "anew.prototxt").find("# Of birds.cfg\n"), 0u);
  const Finished from_scratch = RunProgram({"train", "--solver=anew_solver.prototxt"}, {.folder = folder_.path()});
  EXPECT_EQ(from_scratch.exit_code, 0) << from_scratch.err;
}

TEST_F(ImportDarknet, TakesABatchAndTheFirstWeights) {
  const Finished batch = Run({"import", "--model=net.cfg", "--weights=net.weights", "--output=net", "--batch=4"});
  EXPECT_NE(batch.out.find("output  softmax_2  4x3\n"), std::string::npos) << batch.out << batch.err;
  folder_.Write("long.cfg", ReadText(folder_ / "net.cfg") + "[connected]\noutput=2\n");
  const Finished first = Run({"import", "--model=long.cfg", "--weights=net.weights", "--output=long"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_TRUE(first.Says("net.weights: note: ends behind layer \"conv_0\": from \"connected_3\"")) << first.err;
}

TEST_F(ImportDarknet, LeavesNothingBehindAMistake) {
  WriteWeights("short.weights", {0, 0, 0, 1});
  folder_.Write("net.onnx", "");
  const auto expect = [&](const std::vector<std::string>& flags, const std::string& said) {
    std::vector<std::string> words = {"import", "--output=back"};
    words.insert(words.end(), flags.begin(), flags.end());
    const Finished done = Run(words);
    EXPECT_EQ(done.exit_code, 2) << said;
    EXPECT_TRUE(done.Says(said)) << done.err;
  };
  const std::string net = "--model=net.cfg", weights = "--weights=net.weights";
  expect({net},
         "--model=net.cfg: is a net of Darknet, whose weights are in a file of their own; give it with "
         "--weights=FILE.weights, or --data=DB to train it from scratch");
  expect({net, "--weights=", "--data=birds"}, "--weights");
  expect({"--model=net.onnx", "--data=birds"}, "--data: is for nets of Darknet (.cfg), which say how they are trained");
  expect({net, weights, "--data=birds"}, "net.cfg:1: error: [net] says no max_batches");
  expect({"--model=net.onnx", weights}, "--weights: is for nets of Darknet (.cfg); a file of ONNX holds its weights");
  expect({net, weights, "--softmax"}, "--softmax: is for files of ONNX; a net of Darknet that classifies has");
  expect({net, weights, "--swap_channels"}, "--swap_channels: is for files of ONNX; a net of Darknet is always made");
  expect({net, weights, "--shape=data=1,3,8,8"}, "--shape: is for files of ONNX; of a net of Darknet change height");
  expect({net, "--weights=short.weights"}, "short.weights: error: breaks off in layer \"conv_0\"");
  expect({net, "--weights=absent.weights"}, "absent.weights");
  expect({"--model=absent.cfg", weights}, "absent.cfg");
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    EXPECT_EQ(entry.path().filename().string().find("back"), std::string::npos) << entry.path();
  }
}

}  // namespace
}  // namespace crema::testing_tools
