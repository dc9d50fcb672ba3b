// The real `train` with tournaments, and with threads that share their parameters.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "tools/cluster_training.h"
#include "tools/patterns.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

const std::string kTournament = "mode: TOURNAMENT local_steps: 10 ";

TEST(ClusterTournament, Learns) {
  for (const std::string& settings : {std::string("local_workers: 3 "),
                                      std::string("local_workers: 2 history: RESET tournament_output: \"loss\" ")}) {
    SCOPED_TRACE(settings);
    const ClusterFolder folder(settings + kTournament, {.max_iter = 120, .snapshot = 60});
    const Finished run = folder.Run();
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_GT(LastAccuracy(run.err), 0.9f) << run.err;
    EXPECT_EQ(Count(run.err, "Snapshotting to binary proto file tiny_iter_60."), 1) << run.err;
    EXPECT_EQ(AuditJournal(folder, 120).mistake, "");
  }
}

TEST(ClusterTournament, RerunsAreTheSameToTheBitAndResume) {
  const TinyTraining training{.max_iter = 60, .snapshot = 20};
  const std::string settings = "local_workers: 3 " + kTournament;
  const ClusterFolder one(settings, training), again(settings, training);
  ASSERT_EQ(one.Run().exit_code, 0);
  ASSERT_EQ(again.Run().exit_code, 0);
  for (const int iteration : {20, 40, 60}) EXPECT_TRUE(SameModel(one, again, iteration)) << iteration;
  EXPECT_GT(one.State(60).history_size(), 0);
  // From the best of iteration 40 on, all of them.
  const Finished resumed = again.Run({"--snapshot=tiny_iter_40.solverstate"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_GT(LastAccuracy(resumed.err), 0.8f) << resumed.err;
}

TEST(ClusterTournament, ScoresAreShown) {
  const ClusterFolder folder(kTournament, {.max_iter = 1000000, .snapshot = 0});
  std::string endpoint;
  const auto coordinator = folder.Coordinate(2, &endpoint, {"--timeline=timeline.json"});
  const auto a = folder.Join(endpoint, "a"), b = folder.Join(endpoint, "b");
  ASSERT_TRUE(coordinator->WaitFor(", lr = ", 5)) << coordinator->Err();
  const Finished status = folder.Ask("status", endpoint);
  EXPECT_TRUE(Matches(status.out, R"( score +won\n)")) << status.out;
  EXPECT_TRUE(Matches(status.out, R"(\n +0 +[ab] .* 0?\.?\d+ +\d+/\d+\n)")) << status.out;
  coordinator->Signal(SIGINT);
  const Finished run = coordinator->Wait();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(a->Wait().exit_code, 0);
  EXPECT_EQ(b->Wait().exit_code, 0);
  EXPECT_TRUE(Matches(run.err, R"( score +won\n)")) << run.err;
  const std::string timeline = ReadText(folder / "timeline.json");
  EXPECT_TRUE(Matches(timeline, R"("met": ?"[ab]")")) << timeline.substr(0, 3000);
  EXPECT_TRUE(Matches(timeline, R"("won by": ?")")) << timeline.substr(0, 3000);
}

TEST(ClusterTournament, GoesOnWithoutAWorkerThatDies) {
  const ClusterFolder folder(kTournament + "dead_ms: 1000 min_workers: 2 ", {.max_iter = 400, .snapshot = 200});
  Cluster cluster(folder, 3);
  ASSERT_TRUE(cluster.GoesOn());
  cluster.Kill(1);
  ASSERT_TRUE(cluster.GoesOn());
  const Finished run = cluster.Finish();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GT(LastAccuracy(run.err), 0.9f) << run.err;
  EXPECT_EQ(AuditJournal(folder, 400).mistake, "");
}

TEST(ClusterTournament, AWorkerWithoutTestDataIsTold) {
  const ClusterFolder folder(kTournament, {.max_iter = 60, .snapshot = 20});
  const ScratchFolder elsewhere;
  fs::copy(folder / "db", elsewhere / "db", fs::copy_options::recursive);
  std::string endpoint;
  const auto coordinator = folder.Coordinate(2, &endpoint);
  const auto told = folder.Join(endpoint, "a", {"--test_data=nowhere"});
  const Finished ended = told->Wait();
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_TRUE(ended.Says("mode is TOURNAMENT, where each worker tests what it learned")) << ended.err;
  EXPECT_TRUE(ended.Says("give its place here with --test_data=PATH")) << ended.err;
  const auto first = folder.Join(endpoint, "b", {"--test_data=" + (elsewhere / "db").string()});
  const auto second = folder.Join(endpoint, "c");
  const Finished run = coordinator->Wait();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(first->Wait().exit_code, 0);
  EXPECT_EQ(second->Wait().exit_code, 0);
}

TEST(ClusterTournament, NamesWhatIsWrong) {
  const ClusterFolder unknown("local_workers: 2 tournament_output: \"acuracy\" " + kTournament);
  const Finished run = unknown.Run();
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(run.Says("distributed: the test net has no output \"acuracy\"; did you mean \"accuracy\"?; it has "));
  EXPECT_TRUE(run.Says("set tournament_output to one of them")) << run.err;
  const ClusterFolder alone("local_workers: 1 " + kTournament);
  EXPECT_TRUE(alone.Run().Says("to 2 or more"));
}

TEST(HogwildProgram, LearnsStopsAndGoesOn) {
  const ScratchFolder folder;
  WriteTinyTraining(folder,
                    {.max_iter = 100, .snapshot = 50, .more = "distributed { mode: HOGWILD local_workers: 2 }\n"});
  const std::vector<std::string> train = {"train", "--solver=solver.prototxt", "--threads=2"};
  const Finished run = RunProgram(train, {.folder = folder.path()});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("Hogwild: 2 threads")) << run.err;
  EXPECT_GT(LastAccuracy(run.err), 0.9f) << run.err;
  std::vector<std::string> resume = train;
  resume.insert(resume.end(), {"--snapshot=tiny_iter_50.solverstate", "--workers=3"});
  const Finished resumed = RunProgram(resume, {.folder = folder.path()});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_TRUE(resumed.Says("Hogwild: 3 threads")) << resumed.err;
  EXPECT_GT(LastAccuracy(resumed.err), 0.9f) << resumed.err;

  const ScratchFolder stopped;
  WriteTinyTraining(stopped,
                    {.max_iter = 1000000, .snapshot = 0, .more = "distributed { mode: HOGWILD local_workers: 2 }\n"});
  Running running(train, {.folder = stopped.path()});
  ASSERT_TRUE(running.WaitFor(", lr = ", 3));
  running.Signal(SIGINT);
  const Finished end = running.Wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_TRUE(end.Says("Snapshotting solver state to binary proto file")) << end.err;
}

TEST(HogwildProgram, RefusesOtherMachines) {
  const ScratchFolder folder;
  WriteTinyTraining(folder, {.more = "distributed { mode: HOGWILD local_workers: 2 }\n"});
  const auto said = [&](const std::string& flag) {
    const Finished run = RunProgram({"train", "--solver=solver.prototxt", flag}, {.folder = folder.path()});
    EXPECT_EQ(run.exit_code, 2) << run.err;
    return run.err;
  };
  EXPECT_NE(said("--coordinate=tcp://127.0.0.1:0").find("endpoint; remove them"), std::string::npos);
  EXPECT_NE(said("--expect=2").find("expected_workers; remove them"), std::string::npos);
  EXPECT_NE(said("--timeline=t.json").find("with mode: HOGWILD there are none"), std::string::npos);
}

}  // namespace
}  // namespace crema::testing_tools
