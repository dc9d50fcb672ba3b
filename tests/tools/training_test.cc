// The real `train` on a small task: what it says and leaves behind.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "crema/net.pb.h"
#include "tools/patterns.h"
#include "tools/program.h"
#include "tools/tiny_training.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

TEST(Training, LearnsAndLogsInCaffesWords) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {});
  const Finished run = RunProgram(kTrain, In(folder));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GT(LastAccuracy(run.err), 0.9f) << run.err;
  for (const char* pattern :
       {R"(\nI\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ \S+:\d+\] Solving Tiny\n)", R"(\] Learning Rate Policy: inv\n)",
        R"(\] Iteration 100 \(\S+ iter/s, \S+s/10 iters\), loss = [\d.e-]+\n)",
        R"(\] Iteration 0, Testing net \(#0\)\n)", R"(\]     Test net output #1: loss = \S+ \(\* 1 = \S+ loss\)\n)",
        R"(\] Iteration 100, lr = 0\.0[\d]+\n)", R"(\] Snapshotting to binary proto file tiny_iter_300\.caffemodel\n)",
        R"(\] Optimization Done\.\n)"}) {
    EXPECT_TRUE(Matches(run.err, pattern)) << pattern << "\n" << run.err;
  }
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err.find('\x1b'), std::string::npos) << "a progress line in a log file";
  EXPECT_EQ(run.err.find('\r'), std::string::npos);
}

TEST(Training, TakesSeveralGpus) {
  if (RunProgram({"crema", "device_query"}).out.find("No GPU") != std::string::npos) GTEST_SKIP() << "there is no GPU";
  const ScratchFolder all, two;
  WriteTinyTraining(all, {.max_iter = 4});
  WriteTinyTraining(two, {.max_iter = 4});
  auto train = kTrain;
  train.push_back("--gpu=0,1");
  const Finished run = RunProgram(train, In(two));
  if (run.Says("there is no GPU 1")) GTEST_SKIP() << "there is one GPU";
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("] Devices: 2, each with batch_size records of its own")) << run.err;
  train.back() = "--gpu=all";
  EXPECT_EQ(RunProgram(train, In(all)).exit_code, 0);
  if (RunProgram({"crema", "time", "--model=net.prototxt", "--gpu=2"}, In(all)).exit_code == 0) return;
  EXPECT_TRUE(SameModel(all, two, 4));
}

TEST(Training, CompileShowsTheKernelsOfAGpu) {
  if (RunProgram({"crema", "device_query"}).out.find("No GPU") != std::string::npos) GTEST_SKIP() << "there is no GPU";
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 4});
  const Finished run = RunProgram(
      {"crema", "compile", "--model=net.prototxt", "--dump=plan", "--gpu=0", "--precision=fp16"}, In(folder));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("cuBLASLt"), std::string::npos) << run.out;
  EXPECT_FALSE(run.Says("going on in f32")) << run.err;
}

TEST(Training, CremaTrainIsTrain) {
  const ScratchFolder one, other;
  WriteTinyTraining(one, {.max_iter = 40});
  WriteTinyTraining(other, {.max_iter = 40});
  ASSERT_EQ(RunProgram({"train", "--solver=solver.prototxt", "--threads=2"}, In(one)).exit_code, 0);
  ASSERT_EQ(RunProgram({"crema", "train", "-solver", "solver.prototxt", "--threads=2"}, In(other)).exit_code, 0);
  EXPECT_TRUE(SameModel(one, other, 40));
}

TEST(Training, TrainWorksThroughALink) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 1});
  fs::create_symlink(fs::path(CREMA_BIN_DIR) / "train", folder / "linked");
  const Finished run = RunProgram({"./linked", "--solver=solver.prototxt"}, In(folder));
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST(Training, DataThreadsDoNotChangeTheResult) {
  const ScratchFolder one, two;
  WriteTinyTraining(one, {.max_iter = 60});
  WriteTinyTraining(two, {.max_iter = 60, .data_threads = 2});
  ASSERT_EQ(RunProgram(kTrain, In(one)).exit_code, 0);
  ASSERT_EQ(RunProgram(kTrain, In(two)).exit_code, 0);
  // The models repeat the layer's settings; the weights are compared by what they score and by a third run.
  std::string a =
      RunProgram({"crema", "probe", "--model=net.prototxt", "--phase=TEST", "--weights=tiny_iter_60.caffemodel"},
                 In(one))
          .out;
  std::string b =
      RunProgram({"crema", "probe", "--model=net.prototxt", "--phase=TEST", "--weights=tiny_iter_60.caffemodel"},
                 In(two))
          .out;
  EXPECT_NE(a.find("\"loss\""), std::string::npos) << a;
  EXPECT_EQ(a, b);
}

TEST(Training, ALossThatIsNoNumberNamesItsCause) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.base_lr = "1e20"});
  const Finished run = RunProgram(kTrain, In(folder));
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_TRUE(Matches(run.err, R"(train: error: iteration \d+: the loss is )")) << run.err;
  EXPECT_TRUE(Matches(run.err, R"((parameter|layer "?)(conv1|ip1|ip2|loss))")) << run.err;
  EXPECT_TRUE(run.Says("base_lr")) << run.err;
}

TEST(Training, ALabelOutOfRangeNamesItsRecord) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.bad_record = 123});
  const Finished run = RunProgram(kTrain, In(folder));
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_TRUE(run.Says("00000123")) << run.err;
  EXPECT_TRUE(run.Says("net.prototxt:")) << run.err;
  EXPECT_TRUE(run.Says("7")) << run.err;
}

TEST(Training, OnATerminalThereIsAProgressLine) {
  if (!TerminalsExist()) GTEST_SKIP() << "no pseudo-terminals here (/dev/pts is not mounted)";
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 100});
  Setting setting = In(folder);
  setting.on_terminal = true;
  const Finished run = RunProgram(kTrain, setting);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(Matches(run.err, R"(\r\x1b\[K\[=* *\] \d+/100 \d+%  [\d.]+ it/s  loss )")) << run.err;
  // Log lines start where the progress line was erased.
  EXPECT_TRUE(Matches(run.err, R"(\x1b\[KI\d+ .*Iteration)")) << run.err;
  EXPECT_TRUE(run.err.ends_with("Optimization Done.\r\n")) << run.err;
}

TEST(Training, TestScoresWhatTrainingWrote) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {});
  const Finished trained = RunProgram(kTrain, In(folder));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Finished run = RunProgram(
      {"crema", "test", "--model=net.prototxt", "--weights=tiny_iter_300.caffemodel", "--iterations=10"}, In(folder));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("] Batch 9, accuracy = ")) << run.err;
  EXPECT_TRUE(run.Says("] Loss: ")) << run.err;
  const auto accuracies = FindAll(run.err, R"(\] accuracy = (\S+)\n)");
  ASSERT_FALSE(accuracies.empty()) << run.err;
  EXPECT_FLOAT_EQ(std::stof(accuracies.front()), LastAccuracy(trained.err));
  EXPECT_TRUE(Matches(run.err, R"(\] loss = \S+ \(\* 1 = \S+ loss\)\n)")) << run.err;
}

TEST(Training, TestSaysWhichRecordsItLeftOut) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 1});
  ASSERT_EQ(RunProgram(kTrain, In(folder)).exit_code, 0);
  const std::string net = ReadText(folder / "net.prototxt");
  const auto test = [&](int iterations) {
    return RunProgram({"crema", "test", "--model=net.prototxt", "--weights=tiny_iter_1.caffemodel",
                       "--iterations=" + std::to_string(iterations)},
                      In(folder));
  };
  EXPECT_TRUE(
      test(4).Says("means of the first 92 of the 230 records of layer \"data\"; --iterations=10 reads all of "
                   "them\n"));
  EXPECT_FALSE(test(10).Says("--iterations="));
  EXPECT_FALSE(test(20).Says("--iterations="));
  EXPECT_TRUE(test(11).Says("means of 253 records, but layer \"data\" has 230, some of which count more often"));
  folder.Write("net.prototxt", Replaced(net, "batch_size: 23", "batch_size: 25"));
  EXPECT_TRUE(test(9).Says("--iterations=10 reads all of them, the first 20 twice\n"));
  EXPECT_FALSE(test(10).Says("--iterations="));
  folder.Write("net.prototxt", Replaced(net, "batch_size: 23", "batch_size: 500"));
  EXPECT_TRUE(test(2).Says("--iterations=1 reads all of them, each 2 times, the first 40 once more\n"));
}

TEST(Training, TestRefusesWhatNoWeightsFileHas) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 1});
  ASSERT_EQ(RunProgram(kTrain, In(folder)).exit_code, 0);
  NetParameter model;
  ASSERT_TRUE(model.ParseFromString(Model(folder, 1)));
  for (const LayerParameter& layer : model.layer()) {
    NetParameter part;
    *part.add_layer() = layer;
    folder.Write(layer.name() + ".caffemodel", part.SerializeAsString());
  }
  std::vector<std::string> words = {"crema", "test", "--model=net.prototxt",
                                    "--weights=conv1.caffemodel,ip1.caffemodel", "--iterations=1"};
  const Finished refused = RunProgram(words, In(folder));
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_TRUE(
      refused.Says("conv1.caffemodel,ip1.caffemodel: error: has nothing for layer \"ip2\", and what its "
                   "fillers make is numbers that no training found"))
      << refused.err;
  words.push_back("--missing=fill");
  const Finished run = RunProgram(words, In(folder));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("conv1.caffemodel,ip1.caffemodel: warning: has nothing for layer \"ip2\"")) << run.err;
  EXPECT_EQ(FindAll(run.err, "(has nothing for layer)").size(), 1u) << run.err;
}

TEST(Training, LogFilesAreWrittenWhereAsked) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 1});
  std::vector<std::string> logged = kTrain;
  logged.push_back("--log_dir=logs");
  folder.Write("logs", "a file");
  const Finished refused = RunProgram(logged, In(folder));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(refused.Says("--log_dir=logs: ")) << refused.err;
  fs::remove(folder / "logs");
  const Finished run = RunProgram(logged, In(folder));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("] Solving Tiny\n")) << "on stderr as well";
  EXPECT_NE(ReadText(folder / "logs/train.INFO").find("] Solving Tiny\n"), std::string::npos);
}

TEST(Training, LogFilesHoldWarningsAndWhyItEnded) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 50, .base_lr = "1e30"});
  folder.Write("solver.prototxt",
               Replaced(ReadText(folder / "solver.prototxt"), "solver_mode: CPU", "solver_mode: GPU\ndevice_id: 2"));
  std::vector<std::string> logged = kTrain;
  logged.push_back("--log_dir=logs");
  const Finished run = RunProgram(logged, In(folder));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(Count(run.err, "train: error: iteration "), 1) << run.err;
  EXPECT_EQ(Count(run.err, "the loss is "), 1) << "twice: " << run.err;
  const std::string log = ReadText(folder / "logs/train.INFO"), errors = ReadText(folder / "logs/train.ERROR");
  EXPECT_NE(log.find("solver_mode is GPU"), std::string::npos) << log;
  EXPECT_NE(log.find("`train --gpu=2`"), std::string::npos) << log;
  EXPECT_NE(log.find("] iteration "), std::string::npos) << log;
  EXPECT_NE(errors.find("the loss is "), std::string::npos) << errors;
}

TEST(Training, SaysOnWhatItComputes) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 1});
  std::vector<std::string> words = kTrain;
  words.push_back("--threads=1");
  const Finished run = RunProgram(words, In(folder));
  EXPECT_EQ(Count(run.err, "] Using the CPU, 1 thread\n"), 1) << run.err;
  const Finished test = RunProgram(
      {"crema", "test", "--model=net.prototxt", "--weights=tiny_iter_1.caffemodel", "--iterations=1", "--threads=2"},
      In(folder));
  EXPECT_EQ(Count(test.err, "] Using the CPU, 2 threads\n"), 1) << test.err;
}

TEST(Training, StartedElsewhereItNamesTheNetAndTheFolder) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 1});
  const std::string solver =
      Replaced(ReadText(folder / "solver.prototxt"), "\"net.prototxt\"", "\"nets/net.prototxt\"");
  folder.Write("solver.prototxt", Replaced(solver, "\"tiny\"", "\"nets/tiny\""));
  const Finished run = RunProgram(kTrain, In(folder));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(Count(run.err, "error: "), 1) << run.err;
  EXPECT_TRUE(run.Says("net \"nets/net.prototxt\" does not exist; looked in the working directory " +
                       fs::canonical(folder.path()).string() + ", ."))
      << run.err;
  folder.Write("absent.prototxt", Replaced(ReadText(folder / "net.prototxt"), "source: \"db\"", "source: \"no/db\""));
  const Finished test = RunProgram({"crema", "test", "--model=absent.prototxt", "--weights=w"}, In(folder));
  EXPECT_TRUE(test.Says("\"no/db\" does not exist")) << test.err;
  EXPECT_TRUE(test.Says("relative paths start at the working directory " + fs::canonical(folder.path()).string()))
      << test.err;
}

TEST(Training, FineTuningNamesWhatIsNew) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 1});
  ASSERT_EQ(RunProgram(kTrain, In(folder)).exit_code, 0);
  std::string net = ReadText(folder / "net.prototxt");
  net = Replaced(net, "name: \"ip2\"", "name: \"ip3\"");
  folder.Write("net.prototxt", net);
  std::vector<std::string> tune = kTrain;
  tune.push_back("--weights=tiny_iter_1.caffemodel");
  const Finished run = RunProgram(tune, In(folder));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("] Finetuning from tiny_iter_1.caffemodel")) << run.err;
  EXPECT_TRUE(run.Says("] Ignoring source layer ip2")) << run.err;
}

TEST(Training, TimeShowsEveryLayer) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {});
  const Finished run = RunProgram({"crema", "time", "--model=net.prototxt", "--iterations=3"}, In(folder));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const char* text : {"conv1", "Convolution", "SoftmaxWithLoss", "backward", "share", "a second"}) {
    EXPECT_NE(run.out.find(text), std::string::npos) << text << "\n" << run.out;
  }
}

}  // namespace
}  // namespace crema::testing_tools
