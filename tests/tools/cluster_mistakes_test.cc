// Mistakes in flags, settings, data and keys, as the real `train` with several workers tells of them.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "distributed/protocol/protocol_version.h"
#include "distributed/sockets/frame.h"
#include "distributed/sockets/sockets.h"
#include "tools/cluster_training.h"
#include "tools/patterns.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

TEST(ClusterMistakes, SettingsThatContradictEachOther) {
  struct Case {
    const char *settings, *message;
  };
  const ClusterFolder folder("", {.max_iter = 10});
  const std::string solver = ReadText(folder / "solver.prototxt");
  for (const Case& c : {
           Case{"local_workers: 2 local_steps: 0", "local_steps is 0; it must be from 1 to 1000000"},
           Case{"local_workers: 300", "local_workers is 300; it must be from 0 to 256"},
           Case{"local_workers: 2 heartbeat_ms: 1", "heartbeat_ms is 1; it must be from 10 to 60000"},
           Case{"local_workers: 2 heartbeat_ms: 1000 dead_ms: 2000",
                "dead_ms is 2000; it must be at least three times heartbeat_ms"},
           Case{"local_workers: 2 chunk_bytes: 10", "chunk_bytes is 10; it must be from 1024 to "},
           Case{"local_workers: 2 credits: 0", "credits is 0; it must be from 1 to 900"},
           Case{"local_workers: 3 max_workers: 2", "more workers are expected (3) than max_workers allows (2)"},
           Case{"local_workers: 2 min_workers: 3", "min_workers is 3, but only 2 workers are expected"},
           Case{"local_workers: 2 straggler_factor: 0.5", "straggler_factor must be 0 (wait for all) or at least 1"},
           Case{"local_workers: 2 expected_workers: 0", "expected_workers is 0; it must be from 1 to 100000"},
           Case{"local_workers: 2 expected_workers: 4294967295",
                "more workers are expected (4294967295) than max_workers allows (1024)"},
           Case{"local_workers: 2 expected_workers: 3",
                "3 workers are expected (expected_workers, --expect), but only 2 can come (local_workers, --workers)"},
           Case{"local_workers: 3 expected_workers: 1 max_workers: 2",
                "local_workers is 3, but max_workers lets only 2 take part"},
           Case{"local_workers: 2 join_timeout_ms: 0", "join_timeout_ms is 0; it must be at least 3000"},
           Case{"local_workers: 2 orphan_ms: 0", "orphan_ms is 0; it must be at least 3000"},
           Case{"local_workers: 2 stall_ms: 1", "stall_ms is 1; it must be at least 3000"},
           Case{"local_workers: 2 outer_lr: 0", "outer_lr must be above 0"},
           Case{"local_workers: 2 outer_momentum: 1", "outer_momentum must be at least 0 and below 1"},
           Case{"local_workers: 2 outer_nesterov: true", "outer_nesterov needs outer_momentum above 0"},
           Case{"local_workers: 2 outer_momentum: 0.5 outer_momentum_by_workers: true",
                "outer_momentum and outer_momentum_by_workers are both set; keep one"},
           Case{"local_workers: 2 mode: GRADIENT outer_momentum: 0.5", "but mode is GRADIENT; remove them"},
           Case{"local_workers: 2 mode: GRADIENT history: MEAN", "history has no meaning with mode: GRADIENT"},
           Case{"local_workers: 2 topology: RING keep_rounds: 0", "keep_rounds is 0; it must be from 1 to 1000000"},
           Case{"local_workers: 2 topology: TREE mode: STALE", "topology is TREE, where workers take means"},
           Case{"local_workers: 2 topology: HALVING codec: FP16", "but codec is FP16; set topology: SHARDED"},
           Case{"local_workers: 2 topology: RING down_codec: INT8", "but down_codec is INT8; set topology: SHARDED"},
           Case{"local_workers: 2 topology: SHARDED endpoint: \"tcp://127.0.0.1:0\"",
                "topology is SHARDED, where all workers must reach each other"},
           Case{"endpoint: \"tcp://*:0\"", "others can reach tcp://*:0, but secret_key_file and"},
           Case{"endpoint: \"localhost:5570\"", "\"localhost:5570\" is no endpoint; write tcp://localhost:5570"},
           Case{"endpoint: \"tcp://*\" security { allow_plaintext: true }", "\"tcp://*\" is no endpoint; give"},
           Case{"local_workers: 2 endpoint: \"tcp://127.0.0.1:99999\"", "is no endpoint; give tcp://*:PORT"},
           Case{"local_worker: 2", "local_workers"},
       }) {
    folder.Write("solver.prototxt", solver + "distributed { " + c.settings + " }\n");
    const Finished run = folder.Run();
    EXPECT_EQ(run.exit_code, 2) << c.settings << "\n" << run.err;
    EXPECT_TRUE(run.Says(c.message)) << c.settings << "\n" << run.err;
    EXPECT_FALSE(run.Says("Iteration 0")) << c.settings << "\n" << run.err;
  }
  // All of them at once, where they stand.
  folder.Write("solver.prototxt", solver + "distributed { local_workers: 2 local_steps: 0 credits: 0 }\n");
  const Finished run = folder.Run();
  EXPECT_TRUE(run.Says("local_steps is 0") && run.Says("credits is 0")) << run.err;
  EXPECT_TRUE(Matches(run.err, R"(solver\.prototxt:\d+:\d+: error: distributed: )")) << run.err;
}

TEST(ClusterMistakes, SettingsWithoutEffectAreWarnedOf) {
  struct Case {
    const char *settings, *message;
  };
  const ClusterFolder folder("", {.max_iter = 2, .snapshot = 0});
  const std::string solver = ReadText(folder / "solver.prototxt");
  for (const Case& c :
       {Case{"local_workers: 1 mode: GRADIENT local_steps: 5", "local_steps has no effect with mode: GRADIENT"},
        Case{"local_workers: 1 staleness: 3", "staleness has no effect without straggler_factor"},
        Case{"local_workers: 1 keep_rounds: 5", "keep_rounds has no effect with topology: STAR"},
        Case{"local_steps: 5", "distributed has no effect: neither local_workers nor endpoint is set"}}) {
    folder.Write("solver.prototxt", solver + "distributed { heartbeat_ms: 50 " + c.settings + " }\n");
    const Finished run = folder.Run();
    EXPECT_EQ(run.exit_code, 0) << c.settings << "\n" << run.err;
    EXPECT_TRUE(run.Says(c.message)) << c.settings << "\n" << run.err;
  }
}

TEST(ClusterMistakes, FlagsThatDoNotGoTogether) {
  struct Case {
    std::vector<std::string> flags;
    const char* message;
  };
  const ClusterFolder folder("", {.max_iter = 2, .snapshot = 0});
  const std::string solver = "--solver=solver.prototxt";
  for (const Case& c : {
           Case{{solver, "--data=db"}, "--data goes with --join"},
           Case{{solver, "--worker_name=a"}, "--worker_name goes with --join"},
           Case{{solver, "--workers=2", "--quiet"}, "--quiet goes with --join"},
           Case{{solver, "--coordinate=tcp://127.0.0.1:*", "--secret_key=a.secret"}, "--secret_key goes with --join"},
           Case{{solver, "--expect=2"}, "--expect=2: nobody can join; add --coordinate=ENDPOINT"},
           Case{{solver, "--workers=0"}, "workers"},
           Case{{solver, "--workers=1000"}, "workers"},
           Case{{solver, "--workers=2", "--gpu=all"}, "--gpu=all with --workers: name the GPUs"},
           Case{{solver, "--coordinate=tcp://127.0.0.1:*", "--gpu=0"}, "--gpu: a coordinator does not train"},
           Case{{solver, "--workers=2", "--profile=trace.json"}, "--profile: a coordinator runs no layers"},
           Case{{solver, "--coordinate=tcp://*:5571"}, "run `crema keygen --output=coordinator`"},
           Case{{solver, "--coordinate=localhost:5571"}, "train: error: \"localhost:5571\" is no endpoint; write tcp:"},
           Case{{"--join=tcp://127.0.0.1:1", solver}, "--solver does not go with --join"},
           Case{{"--join=tcp://127.0.0.1:1", "--snapshot=auto"}, "--snapshot does not go with --join"},
           Case{{"--join=tcp://192.0.2.1:5570"}, "is on another machine, but --secret_key and"},
           Case{{"--join=127.0.0.1:5570"}, "\"127.0.0.1:5570\" is no endpoint; write tcp://127.0.0.1:5570"},
           Case{{"--join=tcp://127.0.0.1"}, "\"tcp://127.0.0.1\" is no endpoint; give tcp://HOST:PORT"},
           Case{{"--join=tcp://127.0.0.1:99999"}, "\"tcp://127.0.0.1:99999\" is no endpoint"},
           Case{{"--join="}, "--join needs a value: --join=ENDPOINT"},
           Case{{}, "--solver=FILE is missing (or --join=ENDPOINT, for a worker)"},
       }) {
    std::vector<std::string> words = {"train"};
    words.insert(words.end(), c.flags.begin(), c.flags.end());
    const Finished run = RunProgram(words, folder.setting());
    EXPECT_EQ(run.exit_code, 2) << ::testing::PrintToString(c.flags) << "\n" << run.err;
    EXPECT_TRUE(run.Says(c.message)) << ::testing::PrintToString(c.flags) << "\n" << run.err;
  }
  const ClusterFolder off("mode: OFF");
  const Finished run = off.Run({"--workers=2"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(run.Says("the solver file says distributed { mode: OFF }; remove that")) << run.err;
  const Finished bare = RunProgram({"crema", "cluster", "status", "--address=node0:5570"}, folder.setting());
  EXPECT_EQ(bare.exit_code, 2);
  EXPECT_TRUE(bare.Says("\"node0:5570\" is no endpoint; write tcp://node0:5570")) << bare.err;
  const Finished asked = RunProgram({"crema", "cluster", "pause"}, folder.setting());
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_TRUE(asked.Says("\"pause\" is no request; it is one of status, drain, stop")) << asked.err;
}

TEST(ClusterMistakes, AnAddressThatIsTaken) {
  const ClusterFolder one(""), other("");
  std::string endpoint;
  const auto coordinator = one.Coordinate(1, &endpoint);
  const Finished run = other.Run({"--coordinate=" + endpoint});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_TRUE(run.Says("cannot listen at " + endpoint)) << run.err;
  EXPECT_TRUE(run.Says("another program does")) << run.err;
  EXPECT_FALSE(std::filesystem::exists(other / "tiny_cluster.journal")) << "nothing has begun";
  EXPECT_EQ(other.NewestState(), -1);
}

TEST(ClusterMistakes, TwoCoordinatorsOfOneTraining) {
  const ClusterFolder folder("", {.max_iter = 50});
  std::string endpoint;
  const auto coordinator = folder.Coordinate(1, &endpoint);
  for (const auto& flags : {std::vector<std::string>{"--coordinate=tcp://127.0.0.1:*"},
                            {"--workers=2"},
                            {"--workers=2", "--snapshot=auto"}}) {
    const Finished second = folder.Run(flags);
    EXPECT_EQ(second.exit_code, 1) << second.err;
    EXPECT_TRUE(second.Says("another training (process ")) << second.err;
    EXPECT_TRUE(second.Says("a snapshot_prefix of its own")) << second.err;
  }
  const auto worker = folder.Join(endpoint, "one");
  EXPECT_EQ(coordinator->Wait().exit_code, 0) << "the first one goes on";
  EXPECT_EQ(worker->Wait().exit_code, 0);
}

TEST(ClusterMistakes, ABadRecordEndsTrainingEverywhere) {
  const TinyTraining training{.test_interval = 100000, .bad_record = 123, .more = "test_initialization: false\n"};
  const ClusterFolder folder("local_steps: 5", training);
  std::string endpoint;
  const auto coordinator = folder.Coordinate(2, &endpoint);
  const auto one = folder.Join(endpoint, "one"), two = folder.Join(endpoint, "two");
  const Finished run = coordinator->Wait(), first = one->Wait(), second = two->Wait();
  for (const Finished& finished : {run, first, second}) {
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_TRUE(finished.Says("00000123")) << finished.err;
    EXPECT_TRUE(finished.Says("worker one: ") || finished.Says("worker two: ")) << finished.err;
  }
  // With processes of this machine, too.
  const ClusterFolder local("local_workers: 2 local_steps: 5", training);
  const Finished alone = local.Run();
  EXPECT_EQ(alone.exit_code, 2) << alone.err;
  EXPECT_EQ(Count(alone.err, "error: worker local-"), 1) << alone.err;
  EXPECT_TRUE(alone.Says("00000123")) << alone.err;
}

TEST(ClusterMistakes, ABadRecordThatTheCoordinatorFindsEndsTrainingEverywhere) {
  // Among those that it tests with, which no worker has.
  const ClusterFolder folder("local_steps: 5", {.snapshot = 1000, .more = "test_initialization: false\n"});
  const ClusterFolder bad("", {.bad_record = 123});
  std::string net = ReadText(folder / "net.prototxt");
  net.replace(net.rfind("\"db\""), 4, "\"" + (bad / "db").string() + "\"");
  folder.Write("net.prototxt", net);
  std::string endpoint;
  const auto coordinator = folder.Coordinate(1, &endpoint);
  const auto worker = folder.Join(endpoint, "one");
  const Finished run = coordinator->Wait(), left = worker->Wait();
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_TRUE(run.Says("net.prototxt:") && run.Says("00000123")) << run.err;
  EXPECT_EQ(left.exit_code, 2) << left.err;
  EXPECT_TRUE(left.Says("error: training at " + endpoint + " failed: ") && left.Says("00000123")) << left.err;
  EXPECT_GE(folder.NewestState(), 50) << "what was trained is kept";
}

TEST(ClusterMistakes, WorkersHearOfWhatFailsWhileAveraging) {
  const ClusterFolder folder("local_steps: 1 outer_lr: 3e38 down_codec: INT8", {.base_lr = "1000"});
  std::string endpoint;
  const auto coordinator = folder.Coordinate(1, &endpoint);
  const auto worker = folder.Join(endpoint, "one");
  const Finished run = coordinator->Wait(), left = worker->Wait();
  for (const Finished& finished : {run, left}) {
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_TRUE(finished.Says("the parameters are not finite any more")) << finished.err;
  }
}

TEST(ClusterMistakes, AWorkerWithOtherData) {
  const ClusterFolder folder("local_steps: 5", {.max_iter = 40}), other("", {.bad_record = 0});
  std::string endpoint;
  const auto coordinator = folder.Coordinate(1, &endpoint);
  const Finished refused = folder.Join(endpoint, "one", {"--data=" + (other / "db").string()})->Wait();
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_TRUE(refused.Says("has other records than the coordinator's")) << refused.err;
  EXPECT_TRUE(coordinator->WaitFor("Warning: worker one (place 0) left: error: layer")) << coordinator->Err();
  const auto right = folder.Join(endpoint, "two");
  EXPECT_EQ(coordinator->Wait().exit_code, 0) << coordinator->Err();
  EXPECT_EQ(right->Wait().exit_code, 0) << right->Err();
}

TEST(ClusterMistakes, AWorkerWithoutTheData) {
  const ClusterFolder folder("local_steps: 5", {.max_iter = 40}), empty("");
  std::string endpoint;
  const auto coordinator = folder.Coordinate(1, &endpoint);
  const Finished absent = empty.Join(endpoint, "empty", {"--data=" + (empty / "none").string()})->Wait();
  EXPECT_EQ(absent.exit_code, 2) << absent.err;
  EXPECT_TRUE(absent.Says("there is no database \"" + (empty / "none").string())) << absent.err;
  EXPECT_TRUE(absent.Says("--data=PATH")) << absent.err;
  const auto good = folder.Join(endpoint, "good");
  EXPECT_EQ(coordinator->Wait().exit_code, 0) << "training goes on without: " << coordinator->Err();
  EXPECT_EQ(good->Wait().exit_code, 0);
}

TEST(ClusterMistakes, ALossThatIsNoNumber) {
  for (const std::string settings :
       {"local_workers: 2 local_steps: 5", "local_workers: 2 local_steps: 5 drop_nonfinite: false",
        "local_workers: 2 mode: GRADIENT"}) {
    const ClusterFolder folder(settings, {.base_lr = "1e20"});
    const Finished run = folder.Run();
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_TRUE(Matches(run.err, R"(error: worker local-\d: iteration \d+: the loss is )")) << settings << "\n"
                                                                                            << run.err;
    EXPECT_TRUE(Matches(run.err, R"((parameter|layer "?)(conv1|ip1|ip2|loss))")) << run.err;
    EXPECT_TRUE(run.Says("base_lr")) << run.err;
    EXPECT_FALSE(run.Says("error: training at ")) << "once, not by each worker: " << run.err;
  }
  // Nobody tries again what would come out the same.
  const ClusterFolder folder("local_steps: 5", {.base_lr = "1e20"});
  std::string endpoint;
  const auto coordinator = folder.Coordinate(2, &endpoint);
  const auto one = folder.Join(endpoint, "one"), two = folder.Join(endpoint, "two");
  for (Running* process : {coordinator.get(), one.get(), two.get()}) {
    const Finished run = process->Wait();
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_TRUE(run.Says(": the loss is ")) << run.err;
  }
}

TEST(ClusterMistakes, AWorkerOfAnotherTrainingOrProtocolIsToldWhy) {
  const ClusterFolder folder("");
  std::string endpoint;
  const auto coordinator = folder.Coordinate(1, &endpoint);
  const auto refused = [&](uint32_t major, uint64_t job) {
    zmq::context_t context;
    WorkerSockets sockets(context, endpoint, std::nullopt);
    Outgoing hello;
    hello.message.set_job(job);
    hello.message.set_sequence(1);
    hello.message.mutable_hello()->set_major(major);
    hello.message.mutable_hello()->set_process(7);
    hello.message.mutable_hello()->set_incarnation(8);
    std::string reason;
    for (int i = 0; i < 100 && reason.empty(); ++i) {
      sockets.Send(hello);
      sockets.Receive(100, [&](const std::string&, const ClusterMessage& message, std::span<const std::byte>) {
        if (message.has_refusal()) reason = message.refusal().reason();
      });
    }
    return reason;
  };
  EXPECT_EQ(refused(99, 0), "this coordinator speaks version " + std::to_string(kProtocolMajor) +
                                " of the protocol, the worker 99; run the same crema on all machines");
  EXPECT_EQ(refused(kProtocolMajor, 12345), "this coordinator runs another training than the worker was part of");
}

TEST(ClusterMistakes, MoreWorkersThanAllowedWait) {
  const ClusterFolder folder("local_steps: 5 max_workers: 1", {.max_iter = 1000000, .snapshot = 0});
  std::string endpoint;
  const auto coordinator = folder.Coordinate(1, &endpoint);
  const auto one = folder.Join(endpoint, "one");
  ASSERT_TRUE(coordinator->WaitFor("worker one joined")) << coordinator->Err();
  const auto two = folder.Join(endpoint, "two");
  ASSERT_TRUE(two->WaitFor("Waiting for a place at " + endpoint + ": there are max_workers workers (1)")) << two->Err();
  two->Signal(SIGINT);
  EXPECT_EQ(two->Wait().exit_code, 0) << two->Err();
  EXPECT_EQ(folder.Ask("stop", endpoint).exit_code, 0);
  EXPECT_EQ(coordinator->Wait().exit_code, 0) << coordinator->Err();
  EXPECT_FALSE(coordinator->Err().find("worker two joined") != std::string::npos) << coordinator->Err();
  EXPECT_EQ(one->Wait().exit_code, 0);
}

class ClusterKeys : public ::testing::Test {
 protected:
  ClusterKeys() : folder_("local_steps: 5", {.max_iter = 40}) {
    for (const char* name : {"coordinator", "worker", "stranger"}) {
      EXPECT_EQ(RunProgram({"crema", "keygen", std::string("--output=") + name}, folder_.setting()).exit_code, 0);
    }
    fs::create_directory(folder_ / "authorized");
    fs::copy(folder_ / "worker.public", folder_ / "authorized/worker.public");
    folder_.Write("solver.prototxt", Replaced(ReadText(folder_ / "solver.prototxt"), "local_steps",
                                              "security { secret_key_file: \"coordinator.secret\" "
                                              "authorized_keys_dir: \"authorized\" } local_steps"));
  }

  ClusterFolder folder_;
};

TEST_F(ClusterKeys, OnlyWhoHasOneGetsIn) {
  std::string endpoint;
  const auto coordinator = folder_.Coordinate(1, &endpoint);
  const auto none = folder_.Join(endpoint, "none");
  const auto wrong =
      folder_.Join(endpoint, "wrong", {"--secret_key=stranger.secret", "--server_key=coordinator.public"});
  const auto misled = folder_.Join(endpoint, "misled", {"--secret_key=worker.secret", "--server_key=stranger.public"});
  ASSERT_TRUE(coordinator->WaitFor("Warning: ", 2)) << coordinator->Err();
  const Finished status =
      folder_.Ask("status", endpoint, {"--secret_key=worker.secret", "--server_key=coordinator.public"});
  EXPECT_EQ(status.exit_code, 0) << status.err;
  for (const char* name : {"none", "wrong", "misled"})
    EXPECT_EQ(status.out.find(name), std::string::npos) << status.out;
  EXPECT_TRUE(status.out.find("waiting for workers: iteration 0 of 40") != std::string::npos) << status.out;

  const auto good = folder_.Join(endpoint, "good", {"--secret_key=worker.secret", "--server_key=coordinator.public"});
  const Finished run = coordinator->Wait(), joined = good->Wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(joined.exit_code, 0) << joined.err;
  for (const char* name : {"none", "wrong", "misled"}) {
    EXPECT_FALSE(run.Says(std::string("worker ") + name)) << run.err;
  }
  EXPECT_TRUE(none->WaitFor("does it want keys, of which this worker has none?")) << none->Err();
  EXPECT_TRUE(misled->WaitFor("is --server_key its own?")) << misled->Err();
  for (const auto* outside : {&none, &wrong, &misled}) {
    (*outside)->Signal(SIGINT);
    EXPECT_FALSE((*outside)->Wait().Says("Joined in place"));
  }
}

TEST_F(ClusterKeys, AListenerForAllNeedsThem) {
  const auto coordinator = folder_.Start({"--coordinate=tcp://*:*", "--expect=1"});
  ASSERT_TRUE(coordinator->WaitFor("Listening for workers at tcp://")) << coordinator->Err();
  EXPECT_EQ(coordinator->Err().find("allow_plaintext"), std::string::npos) << coordinator->Err();
  coordinator->Signal(SIGINT);
  EXPECT_EQ(coordinator->Wait().exit_code, 0);
}

TEST(ClusterMistakes, PlaintextForAllIsWarnedOf) {
  const ClusterFolder folder("security { allow_plaintext: true }");
  const auto coordinator = folder.Start({"--coordinate=tcp://*:*", "--expect=1"});
  ASSERT_TRUE(coordinator->WaitFor("can join this training, read the net and change what it learns"))
      << coordinator->Err();
  coordinator->Signal(SIGINT);
  EXPECT_EQ(coordinator->Wait().exit_code, 0);
}

}  // namespace
}  // namespace crema::testing_tools
