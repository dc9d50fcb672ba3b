// The real `train` on a small task: what it leaves behind, and that nothing that stops it changes the result.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include "crema/net.pb.h"
#include "tools/patterns.h"
#include "tools/program.h"
#include "tools/tiny_training.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kTrain = {"train", "--solver=solver.prototxt"};

Setting In(const ScratchFolder& folder) { return {.folder = folder.path()}; }

std::string Model(const ScratchFolder& folder, int iteration) {
  return ReadText(folder / ("tiny_iter_" + std::to_string(iteration) + ".caffemodel"));
}

// Whether both folders hold the same bytes; not EXPECT_EQ, which would print them.
bool SameModel(const ScratchFolder& a, const ScratchFolder& b, int iteration) {
  const std::string model = Model(a, iteration);
  return !model.empty() && model == Model(b, iteration);
}

float LastAccuracy(const std::string& log) {
  const auto accuracies = FindAll(log, R"(Test net output #0: accuracy = ([\.\deE+-]+))");
  return accuracies.empty() ? -1 : std::stof(accuracies.back());
}

// Snapshot states in the folder, newest last.
int NewestState(const ScratchFolder& folder) {
  int newest = -1;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    const std::string name = entry.path().filename().string();
    for (const std::string& iteration : FindAll(name, R"(^tiny_iter_(\d+)\.solverstate$)")) {
      newest = std::max(newest, std::stoi(iteration));
    }
  }
  return newest;
}

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
  ASSERT_EQ(RunProgram(kTrain, In(one)).exit_code, 0);
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

TEST(Training, KilledAtRandomMomentsItEndsWithTheSameModel) {
  const ScratchFolder whole, killed;
  // Long enough that on a busy machine, too, it is seen before its end.
  const TinyTraining options{.max_iter = 1500, .snapshot = 100};
  WriteTinyTraining(whole, options);
  WriteTinyTraining(killed, options);
  const Finished run = RunProgram(kTrain, In(whole));
  ASSERT_EQ(run.exit_code, 0) << run.err;

  std::vector<std::string> again = kTrain;
  again.push_back("--snapshot=auto");
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  // By what has been logged, as the time that takes depends on the machine; then a moment more.
  std::uniform_int_distribution<int> lines(0, 150), milliseconds(0, 15);
  int kills = 0, resumed = 0;
  for (int i = 0; i < 8; ++i) {
    Running running(again, In(killed));
    if (!running.WaitFor("\n", lines(random))) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds(random)));
    if (running.ended()) break;
    running.Signal(SIGKILL);
    const Finished finished = running.Wait();
    if (finished.signal != SIGKILL) {
      // It had just come to its end.
      EXPECT_EQ(finished.exit_code, 0) << finished.err;
      break;
    }
    ++kills;
    resumed += finished.Says("Resuming from");
  }
  EXPECT_GE(kills, 3);
  // One more where the moment is known: in the middle, after a snapshot.
  if (NewestState(killed) < 1400) {
    Running running(again, In(killed));
    running.WaitFor("Snapshotting solver state");
    running.Signal(SIGKILL);
    running.Wait();
  }
  const Finished last = RunProgram(again, In(killed));
  ASSERT_EQ(last.exit_code, 0) << "seed " << seed << "\n" << last.err;
  EXPECT_TRUE(last.Says("Resuming from")) << last.err;
  EXPECT_TRUE(last.Says("Optimization Done."));
  EXPECT_TRUE(SameModel(killed, whole, 1500))
      << "seed " << seed << ", " << kills << " kills, " << resumed << " resumed";
  std::cout << kills << " kills at random moments, " << resumed << " of them in a resumed run\n";
}

TEST(Training, CtrlCWritesASnapshotThatGoesOnExactly) {
  const ScratchFolder whole, stopped;
  const TinyTraining options{.max_iter = 400, .snapshot = 0};
  WriteTinyTraining(whole, options);
  WriteTinyTraining(stopped, options);
  ASSERT_EQ(RunProgram(kTrain, In(whole)).exit_code, 0);

  Running running(kTrain, In(stopped));
  ASSERT_TRUE(running.WaitFor("Iteration 40, lr")) << running.Err();
  running.Signal(SIGINT);
  running.Signal(SIGINT);  // someone impatient
  const Finished first = running.Wait();
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_TRUE(first.Says("Optimization stopped early.")) << first.err;
  EXPECT_FALSE(first.Says("Optimization Done.")) << first.err;
  const int at = NewestState(stopped);
  ASSERT_GT(at, 0) << first.err;
  ASSERT_LT(at, 400);

  std::vector<std::string> resume = kTrain;
  resume.push_back("--snapshot=tiny_iter_" + std::to_string(at) + ".solverstate");
  const Finished second = RunProgram(resume, In(stopped));
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_TRUE(SameModel(stopped, whole, 400)) << "stopped at " << at;
}

// A list of images that nobody ever writes.
TEST(Training, CtrlCThreeTimesEndsWhatHangs) {
  const ScratchFolder folder;
  const EndlessFile list;
  folder.Write("net.prototxt", R"(layer { name: "data" type: "ImageData" top: "data" top: "label"
  image_data_param { source: ")" + list.path() +
                                   R"(" batch_size: 4 new_height: 2 new_width: 2 } }
)");
  folder.Write("solver.prototxt",
               "net: \"net.prototxt\" base_lr: 0.1 lr_policy: \"fixed\" max_iter: 10 snapshot_prefix: \"tiny\"\n");
  Running running(kTrain, In(folder));
  ASSERT_TRUE(running.WaitForOpening(list.path())) << running.Err();
  while (!running.ended()) {
    running.Signal(SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const Finished run = running.Wait();
  EXPECT_EQ(run.signal, SIGINT) << run.err;
  EXPECT_TRUE(run.Says("Ctrl-C once more ends all at once, without a snapshot")) << run.err;
}

TEST(Training, SignalsDoWhatTheFlagsSay) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 2000, .snapshot = 0});
  Running running({"train", "--solver=solver.prototxt", "--sigint_effect=none", "--sighup_effect=snapshot"},
                  In(folder));
  ASSERT_TRUE(running.WaitFor("Iteration 20, lr")) << running.Err();
  running.Signal(SIGINT);
  running.Signal(SIGHUP);
  ASSERT_TRUE(running.WaitFor("Snapshotting solver state")) << running.Err();
  EXPECT_FALSE(running.ended());
  running.Signal(SIGKILL);
  running.Wait();
  const int at = NewestState(folder);
  EXPECT_GT(at, 0);
  EXPECT_LT(at, 2000);
}

TEST(Training, TerminationStopsLikeCtrlC) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 4000, .snapshot = 0});
  Running running(kTrain, In(folder));
  ASSERT_TRUE(running.WaitFor("Iteration 20, lr")) << running.Err();
  running.Signal(SIGTERM);
  const Finished run = running.Wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("Optimization stopped early.")) << run.err;
  EXPECT_GT(NewestState(folder), 0);
}

// The parameter is a line of the solver file.
class SnapshotFormats : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()).find("HDF5") != std::string::npos &&
        !fs::exists(CREMA_BIN_DIR "/../lib/libcrema_hdf5.so")) {
      GTEST_SKIP() << "built without HDF5 (libhdf5-dev)";
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Training, SnapshotFormats,
                         ::testing::Values("snapshot_format: BINARYPROTO", "snapshot_format: HDF5"),
                         [](const auto& info) { return info.index == 0 ? "Binary" : "Hdf5"; });

TEST_P(SnapshotFormats, AreGoneOnWithExactly) {
  const std::string end = std::string(GetParam()).find("HDF5") != std::string::npos ? ".h5" : "";
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 60, .more = std::string(GetParam()) + " type: \"Adam\""});
  ASSERT_EQ(RunProgram(kTrain, In(folder)).exit_code, 0);
  const std::string whole = ReadText(folder / ("tiny_iter_60.caffemodel" + end));
  for (const char* file : {"tiny_iter_60.caffemodel", "tiny_iter_60.solverstate"}) fs::remove(folder / (file + end));
  const Finished resumed = RunProgram({"train", "--solver=solver.prototxt", "--snapshot=auto"}, In(folder));
  EXPECT_TRUE(resumed.Says("Restored iteration 40")) << resumed.err;
  EXPECT_FALSE(whole.empty());
  EXPECT_TRUE(whole == ReadText(folder / ("tiny_iter_60.caffemodel" + end)));
}

TEST_P(SnapshotFormats, AFullDiskLosesNothingAndIsReported) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 40, .hidden = 512, .more = GetParam()});
  Setting setting = In(folder);
  setting.file_size_limit = 64 << 10;  // below one model
  const Finished run = RunProgram(kTrain, setting);
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_TRUE(run.Says("Snapshot at iteration 20 failed: ")) << run.err;
  EXPECT_TRUE(run.Says("Snapshot at iteration 40 failed: ")) << run.err;
  EXPECT_TRUE(run.Says("Iteration 30, lr")) << "training goes on: " << run.err;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("tiny_iter")) << entry.path();
  }
}

TEST(Training, AnUnusableSnapshotFolderIsFoundAtTheStart) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.more = "snapshot_prefix: \"no_such_folder/tiny\"\n"});
  const Finished run = RunProgram(kTrain, In(folder));
  EXPECT_NE(run.exit_code, 0) << run.err;
  EXPECT_FALSE(run.Says("Iteration 0")) << run.err;
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

TEST(Training, TestWarnsOnceOfWhatNoWeightsFileHas) {
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
  const Finished run = RunProgram(
      {"crema", "test", "--model=net.prototxt", "--weights=conv1.caffemodel,ip1.caffemodel", "--iterations=1"},
      In(folder));
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
