// Profiles that the programs write, and the threads that read data.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "crema/files.h"
#include "crema/net.h"
#include "tools/program.h"
#include "tools/tiny_training.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

// Events whose `key` is `value`.
int CountEvents(const std::string& trace, const std::string& key, const std::string& value) {
  const std::string wanted = "\"" + key + "\": \"" + value + "\"";
  int count = 0;
  for (size_t at = 0; (at = trace.find(wanted, at)) != std::string::npos; ++at) ++count;
  return count;
}

// Whole: tests/report reads such files in full.
std::string ReadTrace(const ScratchFolder& folder) {
  const std::string text = ReadText(folder / "trace.json");
  EXPECT_TRUE(text.ends_with("]}\n"));
  return text;
}

TEST(Profile, OfTrainingHoldsTheFirstIterations) {
  const ScratchFolder plain, profiled;
  WriteTinyTraining(plain, {.max_iter = 40});
  WriteTinyTraining(profiled, {.max_iter = 40});
  ASSERT_EQ(RunProgram({"train", "--solver=solver.prototxt"}, In(plain)).exit_code, 0);
  const Finished run = RunProgram(
      {"train", "--solver=solver.prototxt", "--profile=trace.json", "--profile_iterations=3", "--data_threads=2"},
      In(profiled));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string trace = ReadTrace(profiled);
  EXPECT_EQ(CountEvents(trace, "cat", "iteration"), 3);
  EXPECT_EQ(CountEvents(trace, "cat", "update"), 3 * 6);  // of each parameter, within the backward pass
  EXPECT_EQ(CountEvents(trace, "cat", "data wait"), 3);
  EXPECT_EQ(CountEvents(trace, "cat", "test"), 1);
  EXPECT_EQ(CountEvents(trace, "name", "loss"), 6);  // forward and backward
  EXPECT_EQ(ReadText(plain / "tiny_iter_40.caffemodel"), ReadText(profiled / "tiny_iter_40.caffemodel"));
}

TEST(Profile, IsWrittenWhenTrainingIsStopped) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 1000000});
  Running running({"train", "--solver=solver.prototxt", "--profile=trace.json", "--profile_iterations=100000"},
                  In(folder));
  ASSERT_TRUE(running.WaitFor("Iteration 10 "));
  EXPECT_FALSE(fs::exists(folder / "trace.json"));
  running.Signal(SIGINT);
  const Finished run = running.Wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GE(CountEvents(ReadTrace(folder), "cat", "iteration"), 10);
}

TEST(Profile, IsWrittenWhenTrainingFails) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.base_lr = "1e30"});
  const Finished run = RunProgram({"train", "--solver=solver.prototxt", "--profile=trace.json"}, In(folder));
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_GE(CountEvents(ReadTrace(folder), "cat", "iteration"), 1);
}

TEST(Profile, ThatCannotBeWrittenIsReportedAtTheStart) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 1});
  for (const std::vector<std::string>& command : {std::vector<std::string>{"train", "--solver=solver.prototxt"},
                                                  std::vector<std::string>{"crema", "time", "--model=net.prototxt"}}) {
    std::vector<std::string> arguments = command;
    arguments.push_back("--profile=no/such/folder/trace.json");
    const Finished run = RunProgram(arguments, In(folder));
    EXPECT_EQ(run.exit_code, 1) << run.err;
    EXPECT_TRUE(run.Says("no/such/folder/trace.json")) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_FALSE(run.Says("Iteration")) << run.err;
  }
}

TEST(Profile, IsNotWrittenOverTheNet) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {});
  const std::string net = ReadText(folder / "net.prototxt");
  const Finished run = RunProgram({"crema", "time", "--model=net.prototxt", "--profile=./net.prototxt"}, In(folder));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(run.Says("is what is read")) << run.err;
  EXPECT_EQ(ReadText(folder / "net.prototxt"), net);
}

TEST(Profile, NorAnythingElseThatTrainWritesLiesOverWhatItReads) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.max_iter = 1});
  ASSERT_EQ(RunProgram(kTrain, In(folder)).exit_code, 0);
  fs::copy(folder / "tiny_iter_1.caffemodel", folder / "w.caffemodel");
  const std::vector<std::string> files = {"solver.prototxt", "net.prototxt", "w.caffemodel"};
  std::vector<std::string> before;
  for (const std::string& file : files) before.push_back(ReadText(folder / file));
  for (const char* flag : {"--profile=./solver.prototxt", "--profile=net.prototxt", "--metrics=net.prototxt",
                           "--metrics=w.caffemodel", "--timeline=net.prototxt"}) {
    std::vector<std::string> words = {"train", "--solver=solver.prototxt", "--weights=w.caffemodel", flag};
    if (std::string(flag).starts_with("--timeline")) words.push_back("--workers=1");
    const Finished run = RunProgram(words, In(folder));
    EXPECT_EQ(run.exit_code, 2) << flag;
    EXPECT_TRUE(run.Says("is what is read")) << flag << ": " << run.err;
    for (size_t i = 0; i < files.size(); ++i) EXPECT_TRUE(ReadText(folder / files[i]) == before[i]) << flag;
  }
}

TEST(Profile, OfTimeHoldsItsPasses) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {});
  const Finished run = RunProgram(
      {"crema", "time", "--model=net.prototxt", "--iterations=5", "--profile=trace.json", "--profile_iterations=2"},
      In(folder));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const char* text : {"GFLOP/s", "GB/s", "\ntotal "}) EXPECT_NE(run.out.find(text), std::string::npos) << run.out;
  const std::string trace = ReadTrace(folder);
  EXPECT_EQ(CountEvents(trace, "name", "forward"), 2);
  EXPECT_EQ(CountEvents(trace, "name", "backward"), 2);
  EXPECT_EQ(CountEvents(trace, "name", "loss"), 4);
}

int Threads() {
  int threads = 0;
  for ([[maybe_unused]] const auto& task : fs::directory_iterator("/proc/self/task")) ++threads;
  return threads;
}

TEST(DataThreads, AreAsManyAsTold) {
  if (!fs::exists("/proc/self/task")) GTEST_SKIP() << "this system does not list a process's threads";
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.data_threads = 2});
  const NetFile file = ReadNetFile((folder / "net.prototxt").string());
  for (const auto& [asked, expected] : {std::pair{0, 2}, {1, 1}, {5, 5}}) {
    NetOptions options;
    options.context.data_threads = asked;
    auto net = std::make_unique<Net>(file, options);
    net->Forward();
    const int with = Threads();
    net.reset();
    EXPECT_EQ(with - Threads(), expected) << asked;
  }
}

}  // namespace
}  // namespace crema::testing_tools
