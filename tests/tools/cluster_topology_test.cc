// The real `train` with workers that exchange their values among themselves: what they learn, what it costs, and what
// becomes of it when processes are killed and frozen, cannot reach each other, or are reached by strangers.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <functional>
#include <random>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "tools/cluster_training.h"
#include "tools/tcp_relay.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

const std::string kQuick = "dead_ms: 600 ";
const std::string kSharded = "topology: SHARDED local_steps: 5 ";

std::string Colon(const std::string& endpoint) { return endpoint.substr(endpoint.rfind(':')); }

// Until the coordinator has displayed so many more iterations.
bool GoesOn(Running& coordinator, int displays = 2) {
  return coordinator.WaitFor(", lr = ", Count(coordinator.Err(), ", lr = ") + displays);
}

// Where others reach a worker, as its log tells.
std::string AddressOf(Running& worker) {
  worker.WaitFor("Other workers reach this one at ");
  worker.WaitFor("Joined in place ");
  std::smatch match;
  const std::string log = worker.Err();
  return std::regex_search(log, match, std::regex(R"(Other workers reach this one at (\S+)\n)")) ? match[1].str() : "";
}

// Losses of each displayed iteration.
std::vector<double> Losses(const std::string& log) {
  static const std::regex pattern(R"(\] Iteration \d+ \([^)]*\), loss = (\S+)\n)");
  std::vector<double> losses;
  for (std::sregex_iterator at(log.begin(), log.end(), pattern), end; at != end; ++at) {
    losses.push_back(std::stod((*at)[1]));
  }
  return losses;
}

void AddBatchNorm(const ClusterFolder& folder) {
  std::string net = ReadText(folder / "net.prototxt");
  const std::string pool = "layer {\n  name: \"pool1\"";
  net.insert(net.find(pool), "layer { name: \"norm1\" type: \"BatchNorm\" bottom: \"conv1\" top: \"conv1\" }\n");
  // Statistics take a bias away again: what is left of its gradient is rounding.
  net = std::regex_replace(net, std::regex("num_output: 8 "), "num_output: 8 bias_term: false ");
  folder.Write("net.prototxt", net);
}

// A coordinator with its workers, named a, b, c and so on, that --join.
struct Cluster {
  Cluster(const ClusterFolder& where, int count, const std::vector<std::string>& worker_flags = {}) : folder(where) {
    coordinator = folder.Coordinate(count, &endpoint);
    for (int i = 0; i < count; ++i) Join(std::string(1, static_cast<char>('a' + i)), worker_flags);
  }
  Running& Join(const std::string& name, const std::vector<std::string>& flags = {}) {
    workers.push_back(folder.Join(endpoint, name, flags));
    return *workers.back();
  }
  void Kill(size_t index) {
    workers[index]->Signal(SIGKILL);
    workers[index]->Wait();
    workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(index));
  }
  void KillCoordinator() {
    coordinator->Signal(SIGKILL);
    coordinator->Wait();
  }
  void Successor(int count) {
    coordinator = folder.Start(
        {"--coordinate=tcp://127.0.0.1" + Colon(endpoint), "--expect=" + std::to_string(count), "--snapshot=auto"});
  }
  // To its end, where all is well.
  Finished Finish() {
    const Finished run = coordinator->Wait();
    EXPECT_EQ(run.exit_code, 0) << run.err;
    for (const auto& worker : workers) {
      const Finished left = worker->Wait();
      EXPECT_EQ(left.exit_code, 0) << left.err;
      logs.push_back(left.err);
    }
    return run;
  }

  const ClusterFolder& folder;
  std::string endpoint;
  std::unique_ptr<Running> coordinator;
  std::vector<std::unique_ptr<Running>> workers;
  std::vector<std::string> logs;
};

struct Way {
  const char* name;
  const char* settings;
  bool batch_norm = false;
};

std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }

class TopologyWays : public ::testing::TestWithParam<Way> {};

TEST_P(TopologyWays, ShardedIsStarToTheBit) {
  const std::string settings = std::string("local_workers: 3 local_steps: 5 ") + GetParam().settings;
  const TinyTraining training{.max_iter = 60, .snapshot = 20};
  const ClusterFolder star(settings, training), sharded(settings + " topology: SHARDED", training);
  for (const ClusterFolder* folder : {&star, &sharded}) {
    if (GetParam().batch_norm) AddBatchNorm(*folder);
    const Finished run = folder->Run();
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.err.find("Warning"), std::string::npos) << run.err;
    EXPECT_EQ(AuditJournal(*folder, 60).mistake, "");
  }
  for (const int iteration : {20, 60}) {
    EXPECT_TRUE(SameModel(star, sharded, iteration));
    // Histories and the outer momentum, too.
    SolverState states[] = {star.State(iteration), sharded.State(iteration)};
    for (SolverState& state : states) {
      state.mutable_cluster()->clear_job();
      state.clear_state_crc32();
    }
    EXPECT_TRUE(states[0].SerializeAsString() == states[1].SerializeAsString()) << iteration;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, TopologyWays,
    ::testing::Values(Way{"LocalHistory", ""}, Way{"MeanHistory", "history: MEAN"},
                      Way{"ResetHistory", "history: RESET"},
                      Way{"OuterMomentum", "outer_momentum: 0.6 outer_nesterov: true outer_lr: 0.8"},
                      Way{"BlockMomentum", "outer_momentum_by_workers: true outer_nesterov: true history: RESET"},
                      Way{"BatchNorm", "", true},
                      Way{"BatchNormWithAll", "outer_momentum: 0.5 outer_nesterov: true history: MEAN", true}),
    [](const auto& info) { return std::string(info.param.name); });

struct Route {
  const char* topology;
  int workers;
};

std::ostream& operator<<(std::ostream& out, const Route& route) {
  return out << route.topology << " of " << route.workers;
}

class TopologyRoutes : public ::testing::TestWithParam<Route> {};

// Sums in another order: how far that may drive losses apart in 60 iterations of a net that learns.
constexpr double kLossTolerance = 1e-3;

TEST_P(TopologyRoutes, LossesAreThoseOfStarAndRerunsTheSameToTheBit) {
  const std::string settings = "local_workers: " + std::to_string(GetParam().workers) +
                               " local_steps: 5 history: MEAN outer_momentum: 0.4 outer_nesterov: true ";
  const TinyTraining training{.max_iter = 60, .snapshot = 60};
  const std::string topology = std::string("topology: ") + GetParam().topology;
  const ClusterFolder star(settings, training), one(settings + topology, training),
      again(settings + topology, training);
  std::vector<Finished> runs;
  for (const ClusterFolder* folder : {&star, &one, &again}) {
    AddBatchNorm(*folder);
    runs.push_back(folder->Run());
    ASSERT_EQ(runs.back().exit_code, 0) << runs.back().err;
    EXPECT_EQ(runs.back().err.find("Warning"), std::string::npos) << runs.back().err;
    EXPECT_EQ(AuditJournal(*folder, 60).mistake, "");
  }
  EXPECT_TRUE(SameModel(one, again, 60));
  const std::vector<double> expected = Losses(runs[0].err), losses = Losses(runs[1].err);
  ASSERT_EQ(expected.size(), 6u) << runs[0].err;
  ASSERT_EQ(losses.size(), expected.size());
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], kLossTolerance * expected[0]) << i;
  EXPECT_LT(Difference(star.Model(60), one.Model(60)), 1e-2);
}

// Payload bytes, as workers count them, against what the topology is known for.
TEST_P(TopologyRoutes, BytesAreThoseOfTheFormula) {
  constexpr int kIterations = 40, kHidden = 512;
  constexpr double kRounds = kIterations / 5.0;
  // conv1, ip1, ip2.
  constexpr double kBytes = 4.0 * (8 * 9 + 8 + kHidden * (8 * 16 + 1) + 4 * (kHidden + 1));
  const int count = GetParam().workers;
  // Slow heartbeats: nothing is sent twice because a machine is busy.
  const ClusterFolder folder(
      "heartbeat_ms: 1000 dead_ms: 10000 local_steps: 5 history: RESET topology: " + std::string(GetParam().topology),
      {.max_iter = kIterations, .snapshot = 0, .test_interval = 1000, .hidden = kHidden});
  Cluster cluster(folder, count);
  cluster.Finish();
  const std::regex pattern(R"(\(8 rounds, \d+ examples, (\S+) MB sent to and (\S+) MB received from other workers\))");
  std::vector<double> sent, received;
  for (const std::string& log : cluster.logs) {
    std::smatch match;
    ASSERT_TRUE(std::regex_search(log, match, pattern)) << log;
    sent.push_back(std::stod(match[1]) * 1e6 / kRounds / kBytes);
    received.push_back(std::stod(match[2]) * 1e6 / kRounds / kBytes);
  }
  if (std::string(GetParam().topology) == "TREE") {
    // Each edge carries them once each way; leaves have one edge.
    for (std::vector<double>* all : {&sent, &received}) {
      std::sort(all->begin(), all->end());
      double sum = 0;
      for (const double one : *all) {
        sum += one;
        EXPECT_NEAR(one / std::max(1.0, std::round(one)), 1, 0.03);
      }
      EXPECT_NEAR(sum / (2.0 * (count - 1)), 1, 0.03);
      EXPECT_NEAR(all->front(), 1, 0.03);
    }
    return;
  }
  const double expected = 2.0 * (count - 1) / count;
  for (int i = 0; i < count; ++i) {
    EXPECT_NEAR(sent[static_cast<size_t>(i)] / expected, 1, 0.03);
    EXPECT_NEAR(received[static_cast<size_t>(i)] / expected, 1, 0.03);
  }
}

INSTANTIATE_TEST_SUITE_P(Routes, TopologyRoutes,
                         ::testing::Values(Route{"SHARDED", 3}, Route{"RING", 3}, Route{"TREE", 3},
                                           Route{"HALVING", 4}),
                         [](const auto& info) { return std::string(info.param.topology); });

TEST(Topology, HalvingOfWorkersThatAreNoPowerOfTwo) {
  const TinyTraining training{.max_iter = 40, .snapshot = 40};
  const ClusterFolder one("local_workers: 3 local_steps: 5 topology: HALVING", training),
      again("local_workers: 3 local_steps: 5 topology: HALVING", training);
  for (const ClusterFolder* folder : {&one, &again}) ASSERT_EQ(folder->Run().exit_code, 0);
  EXPECT_TRUE(SameModel(one, again, 40));
}

class TopologyFaults : public ::testing::TestWithParam<const char*> {
 protected:
  std::string Topology() const { return std::string("topology: ") + GetParam() + " local_steps: 5 "; }
};

// At moments of chance, of which many are in an exchange, as steps take little.
TEST_P(TopologyFaults, WorkersThatAreKilledLoseNothingAndFreshOnesComplete) {
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  const ClusterFolder folder(kQuick + Topology() + "min_workers: 1",
                             {.max_iter = 1000000, .snapshot = 0, .test_interval = 50});
  Cluster cluster(folder, 3);
  ASSERT_TRUE(GoesOn(*cluster.coordinator)) << cluster.coordinator->Err();
  constexpr int kKills = 3;
  for (int i = 0; i < kKills; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
    cluster.Kill(random() % cluster.workers.size());
    ASSERT_TRUE(cluster.coordinator->WaitFor("was not heard of for ", i + 1)) << cluster.coordinator->Err();
    ASSERT_TRUE(GoesOn(*cluster.coordinator)) << cluster.coordinator->Err();
    const std::string name = "again" + std::to_string(i);
    cluster.Join(name);
    ASSERT_TRUE(cluster.coordinator->WaitFor("worker " + name + " joined")) << cluster.coordinator->Err();
    ASSERT_TRUE(GoesOn(*cluster.coordinator)) << cluster.coordinator->Err();
  }
  cluster.coordinator->Signal(SIGINT);
  const Finished run = cluster.Finish();
  EXPECT_GT(LastAccuracy(run.err), 0.9f) << run.err;
  EXPECT_FALSE(run.Says("could not exchange")) << run.err;
  EXPECT_EQ(AuditJournal(folder, folder.NewestState()).mistake, "") << "seed " << seed;
}

// One is frozen where others wait for what it has, as the coordinator says, and another one is killed then.
TEST_P(TopologyFaults, AWorkerThatIsKilledInTheMiddleOfAnExchangeLosesNothing) {
  const ClusterFolder folder(
      "dead_ms: 1000 min_workers: 1 chunk_bytes: 1024 credits: 2 local_steps: 1 topology: " + std::string(GetParam()),
      {.max_iter = 1000000, .snapshot = 0, .test_interval = 50, .hidden = 512});
  Cluster cluster(folder, 3);
  ASSERT_TRUE(GoesOn(*cluster.coordinator)) << cluster.coordinator->Err();
  bool in_exchange = false;
  for (int i = 0; i < 100 && !in_exchange; ++i) {
    cluster.workers[0]->Signal(SIGSTOP);
    for (int look = 0; look < 3 && !in_exchange; ++look) {
      in_exchange = Count(folder.Ask("status", cluster.endpoint).out, " averaging ") > 1;
    }
    if (in_exchange) break;
    cluster.workers[0]->Signal(SIGCONT);
    ASSERT_TRUE(GoesOn(*cluster.coordinator, 1)) << cluster.coordinator->Err();
  }
  ASSERT_TRUE(in_exchange) << cluster.coordinator->Err();
  cluster.Kill(1);
  ASSERT_TRUE(cluster.coordinator->WaitFor("worker b (place ")) << cluster.coordinator->Err();
  cluster.workers[0]->Signal(SIGCONT);
  ASSERT_TRUE(GoesOn(*cluster.coordinator)) << cluster.coordinator->Err();
  cluster.Join("d");
  ASSERT_TRUE(cluster.coordinator->WaitFor("worker d joined")) << cluster.coordinator->Err();
  ASSERT_TRUE(GoesOn(*cluster.coordinator)) << cluster.coordinator->Err();
  cluster.coordinator->Signal(SIGINT);
  const Finished run = cluster.Finish();
  EXPECT_FALSE(run.Says("could not exchange")) << run.err;
  EXPECT_EQ(AuditJournal(folder, folder.NewestState()).mistake, "") << run.err;
}

INSTANTIATE_TEST_SUITE_P(All, TopologyFaults, ::testing::Values("SHARDED", "RING", "TREE", "HALVING"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Topology, AWorkerThatWasFrozenComesBack) {
  const ClusterFolder folder(kQuick + kSharded + "min_workers: 1", {.max_iter = 1000000, .snapshot = 0});
  Cluster cluster(folder, 3);
  Running& coordinator = *cluster.coordinator;
  ASSERT_TRUE(GoesOn(coordinator)) << coordinator.Err();
  for (int i = 1; i <= 2; ++i) {
    cluster.workers[0]->Signal(SIGSTOP);
    ASSERT_TRUE(coordinator.WaitFor("worker a (place ", i)) << coordinator.Err();
    ASSERT_TRUE(GoesOn(coordinator)) << "the others go on: " << coordinator.Err();
    cluster.workers[0]->Signal(SIGCONT);
    ASSERT_TRUE(coordinator.WaitFor("worker a joined in place ", i + 1)) << coordinator.Err();
    ASSERT_TRUE(GoesOn(coordinator)) << coordinator.Err();
  }
  coordinator.Signal(SIGINT);
  const Finished run = cluster.Finish();
  EXPECT_EQ(AuditJournal(folder, folder.NewestState()).mistake, "") << run.err;
}

TEST(Topology, ACoordinatorsSuccessorTakesTheParametersAndTheOuterMomentumFromAWorker) {
  const std::string settings = kQuick + kSharded + "history: MEAN outer_momentum: 0.5 outer_nesterov: true ";
  const TinyTraining training{.max_iter = 400, .snapshot = 150};
  const ClusterFolder whole(settings + "local_workers: 3", training), folder(settings, training);
  ASSERT_EQ(whole.Run().exit_code, 0);
  Cluster cluster(folder, 3);
  ASSERT_TRUE(cluster.coordinator->WaitFor("Iteration 200, lr")) << cluster.coordinator->Err();
  cluster.KillCoordinator();
  cluster.Successor(3);
  const Finished run = cluster.Finish();
  EXPECT_TRUE(run.Says("Restored iteration 150")) << run.err;
  EXPECT_TRUE(std::regex_search(
      run.err, std::regex(R"(worker [abc] still had the parameters of round \d+; the last snapshot is of round 30)")))
      << run.err;
  EXPECT_FALSE(run.Says("Iteration 160, lr")) << "what workers had is trained again: " << run.err;
  EXPECT_TRUE(SameModel(whole, folder, 400)) << run.err;
  EXPECT_EQ(AuditJournal(folder, 400).mistake, "");
}

TEST(Topology, ACoordinatorKilledAtRandomMomentsLosesNothing) {
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  const std::string settings = kQuick + kSharded + "history: MEAN outer_momentum: 0.5 ";
  const TinyTraining training{.max_iter = 1000, .snapshot = 100};
  const ClusterFolder whole(settings + "local_workers: 3", training), folder(settings, training);
  ASSERT_EQ(whole.Run().exit_code, 0);
  Cluster cluster(folder, 3);
  ASSERT_TRUE(cluster.coordinator->WaitFor("Snapshotting solver state")) << cluster.coordinator->Err();
  int kills = 0;
  for (int i = 0; i < 3; ++i) {
    if (!GoesOn(*cluster.coordinator, 1 + static_cast<int>(random() % 8))) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 30));
    if (cluster.coordinator->ended()) break;
    cluster.KillCoordinator();
    ++kills;
    cluster.Successor(3);
  }
  const Finished run = cluster.Finish();
  EXPECT_GE(kills, 2) << run.err;
  EXPECT_TRUE(SameModel(whole, folder, 1000)) << "seed " << seed << "\n" << run.err;
  EXPECT_EQ(AuditJournal(folder, 1000).mistake, "") << "seed " << seed;
}

TEST(Topology, WithoutWorkersItGoesBackToWhatItKept) {
  const std::string settings = kQuick + kSharded + "keep_rounds: 4 history: RESET outer_momentum: 0.5 ";
  const TinyTraining training{.max_iter = 300, .snapshot = 100};
  const ClusterFolder whole(settings + "local_workers: 3", training), folder(settings, training);
  ASSERT_EQ(whole.Run().exit_code, 0);
  Cluster cluster(folder, 3);
  ASSERT_TRUE(cluster.coordinator->WaitFor("Iteration 130, lr")) << cluster.coordinator->Err();
  for (const auto& worker : cluster.workers) worker->Signal(SIGKILL);
  while (!cluster.workers.empty()) cluster.Kill(0);
  ASSERT_TRUE(cluster.coordinator->WaitFor("was not heard of for ", 3)) << cluster.coordinator->Err();
  for (const char* name : {"d", "e", "f"}) cluster.Join(name);
  const Finished run = cluster.Finish();
  // All were gone in the one round of four that ends with the coordinator having them, or else:
  if (run.Says("all workers that had the parameters of rounds ")) {
    EXPECT_TRUE(std::regex_search(run.err, std::regex(R"(rounds \d+ to \d+ are lost and will be trained again)")))
        << run.err;
  }
  EXPECT_TRUE(SameModel(whole, folder, 300)) << run.err;
  EXPECT_EQ(AuditJournal(folder, 300).mistake, "");
}

// An address of which the standard says that nobody has it.
TEST(Topology, WorkersThatDoNotReachEachOtherGoThroughTheCoordinator) {
  const std::string settings = kQuick + kSharded;
  const TinyTraining training{.max_iter = 100, .snapshot = 50};
  const ClusterFolder whole("local_workers: 3 local_steps: 5", training), folder(settings, training);
  ASSERT_EQ(whole.Run().exit_code, 0);
  std::string endpoint;
  const auto coordinator = folder.Coordinate(3, &endpoint);
  const std::unique_ptr<Running> workers[] = {
      folder.Join(endpoint, "a"), folder.Join(endpoint, "b"),
      folder.Join(endpoint, "c", {"--peer_address=192.0.2.1", "--allow_plaintext"})};
  const Finished run = coordinator->Wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const auto& worker : workers) EXPECT_EQ(worker->Wait().exit_code, 0) << worker->Err();
  EXPECT_TRUE(run.Says("workers could not exchange their values (")) << run.err;
  EXPECT_TRUE(run.Says("the next 10 rounds go through the coordinator. Can all workers reach each other's ports?"))
      << run.err;
  EXPECT_TRUE(SameModel(whole, folder, 100)) << run.err;
  EXPECT_EQ(AuditJournal(folder, 100).mistake, "");
}

TEST(Topology, DrainedAndResumedItCompletes) {
  const std::string settings = kSharded + "history: MEAN outer_momentum: 0.5 ";
  const TinyTraining training{.max_iter = 300, .snapshot = 0};
  const ClusterFolder whole(settings + "local_workers: 3", training), folder(settings, training);
  ASSERT_EQ(whole.Run().exit_code, 0);
  int at = 0;
  {
    Cluster cluster(folder, 3);
    ASSERT_TRUE(GoesOn(*cluster.coordinator)) << cluster.coordinator->Err();
    const Finished drain = folder.Ask("drain", cluster.endpoint);
    EXPECT_EQ(drain.exit_code, 0) << drain.err;
    const Finished run = cluster.Finish();
    EXPECT_TRUE(run.Says("Optimization stopped early.")) << run.err;
    at = folder.NewestState();
    EXPECT_GT(at, 0) << run.err;
    EXPECT_EQ(AuditJournal(folder, at).mistake, "");
  }
  const Finished run = folder.Run({"--snapshot=auto", "--workers=3"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.Says("Restored iteration " + std::to_string(at))) << run.err;
  EXPECT_TRUE(SameModel(whole, folder, 300)) << "drained at " << at;
  EXPECT_EQ(AuditJournal(folder, 300).mistake, "");
}

TEST(Topology, StoppedAndResumedItCompletes) {
  for (const char* topology : {"SHARDED", "TREE"}) {
    const ClusterFolder folder(std::string("local_steps: 5 topology: ") + topology, {.max_iter = 300, .snapshot = 40});
    {
      Cluster cluster(folder, 3);
      ASSERT_TRUE(cluster.coordinator->WaitFor("Snapshotting solver state")) << cluster.coordinator->Err();
      ASSERT_TRUE(GoesOn(*cluster.coordinator, 1)) << cluster.coordinator->Err();
      const Finished stop = folder.Ask("stop", cluster.endpoint);
      EXPECT_EQ(stop.exit_code, 0) << stop.err;
      const Finished run = cluster.Finish();
      EXPECT_TRUE(run.Says("Optimization stopped early.")) << run.err;
      EXPECT_EQ(AuditJournal(folder, folder.NewestState()).mistake, "") << run.err;
    }
    const Finished run = folder.Run({"--snapshot=auto", "--workers=3"});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_GT(LastAccuracy(run.err), 0.9f) << run.err;
    EXPECT_EQ(AuditJournal(folder, 300).mistake, "");
  }
}

TEST(Topology, AnAddressForOthersWithStarIsRefused) {
  const ClusterFolder folder("local_steps: 5", {.max_iter = 20});
  std::string endpoint;
  const auto coordinator = folder.Coordinate(1, &endpoint);
  const Finished refused = folder.Join(endpoint, "one", {"--peer_address=127.0.0.1"})->Wait();
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_TRUE(refused.Says("--peer_address has no effect: the coordinator's topology is STAR")) << refused.err;
  EXPECT_TRUE(refused.Says("remove it, or set distributed { topology: SHARDED } there")) << refused.err;
  const auto right = folder.Join(endpoint, "two");
  EXPECT_EQ(coordinator->Wait().exit_code, 0) << coordinator->Err();
  EXPECT_EQ(right->Wait().exit_code, 0) << right->Err();
}

TEST(Topology, SettingsThatContradictNameTheirPlaceAndARemedy) {
  struct Case {
    const char *settings, *message;
  };
  const ClusterFolder folder("", {.max_iter = 10});
  const std::string solver = ReadText(folder / "solver.prototxt");
  const std::string place = "solver.prototxt:" + std::to_string(Count(solver, "\n") + 1) + ":1: error: distributed: ";
  for (const Case& c : {Case{"topology: SHARDED codec: INT8",
                             "topology is SHARDED, where workers exchange plain numbers, but codec is INT8; remove "
                             "codec, or set topology: STAR"},
                        Case{"topology: RING down_codec: BF16",
                             "topology is RING, where workers exchange plain numbers, but down_codec is BF16; remove "
                             "down_codec, or set topology: STAR"},
                        Case{"topology: SHARDED mode: GRADIENT",
                             "topology is SHARDED, which averages parameters among workers, but mode is GRADIENT; set "
                             "mode: AVERAGE, or topology: STAR"}}) {
    folder.Write("solver.prototxt", solver + "distributed { local_workers: 2 " + c.settings + " }\n");
    const Finished run = folder.Run();
    EXPECT_EQ(run.exit_code, 2) << c.settings << "\n" << run.err;
    EXPECT_TRUE(run.Says(place + c.message)) << c.settings << "\n" << run.err;
  }
}

class TopologyKeys : public ::testing::Test {
 protected:
  static constexpr int kIterations = 300;

  TopologyKeys()
      : whole_(kSharded + "local_workers: 3", {.max_iter = kIterations}),
        folder_(kSharded + "security { secret_key_file: \"coordinator.secret\" authorized_keys_dir: \"authorized\" }",
                {.max_iter = kIterations}) {
    EXPECT_EQ(whole_.Run().exit_code, 0);
    fs::create_directory(folder_ / "authorized");
    for (const std::string name : {"coordinator", "a", "b", "c"}) {
      EXPECT_EQ(RunProgram({"crema", "keygen", "--output=" + name}, folder_.setting()).exit_code, 0);
      if (name != "coordinator") fs::copy(folder_ / (name + ".public"), folder_ / ("authorized/" + name + ".public"));
    }
  }

  std::unique_ptr<Running> Join(const std::string& endpoint, const std::string& name) const {
    return folder_.Join(endpoint, name, {"--secret_key=" + name + ".secret", "--server_key=coordinator.public"});
  }

  ClusterFolder whole_, folder_;
};

TEST_F(TopologyKeys, WorkersWithKeysExchangeAndStrangersAtTheirPortsHarmNothing) {
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  const auto noise = [&](size_t count) {
    std::string bytes(count, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
  };
  std::string endpoint;
  const auto coordinator = folder_.Coordinate(3, &endpoint);
  std::unique_ptr<Running> workers[] = {Join(endpoint, "a"), Join(endpoint, "b"), nullptr};
  const std::string address = AddressOf(*workers[0]);
  ASSERT_NE(address, "") << workers[0]->Err();
  const int port = PortOf(address);
  // ZMTP 3.1 of a stranger without keys, which gets the greeting of CURVE and then nothing.
  std::string greeting("\xFF\0\0\0\0\0\0\0\x01\x7F\x03\x01NULL", 16);
  greeting.resize(64, '\0');
  const std::string ready = std::string("\4\x1C", 2) + std::string("\5READY\13Socket-Type\0\0\0\6DEALER", 28);
  {
    const Connection stranger(port);
    stranger.Send(greeting + ready);
    const std::string got = stranger.Receive(300);
    EXPECT_LE(got.size(), 64u);
    EXPECT_EQ(got.find("READY"), std::string::npos);
  }
  std::vector<Connection> lasting;
  for (int i = 0; i < 200; ++i) {
    if (i == 50) workers[2] = Join(endpoint, "c");
    // Half of them while training goes on.
    if (i == 100) {
      ASSERT_TRUE(GoesOn(*coordinator, 1)) << coordinator->Err();
    }
    Connection connection(port);
    if (!connection.open()) {
      EXPECT_GT(i, 100) << workers[0]->Err();
      break;
    }
    const size_t count = random() % 300;
    connection.Send(i % 3 == 0 ? noise(count) : i % 3 == 1 ? greeting + noise(count) : greeting + ready + noise(count));
    if (i % 10 == 0) lasting.push_back(std::move(connection));
  }
  const Finished run = coordinator->Wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_FALSE(run.Says("could not exchange")) << run.err;
  EXPECT_FALSE(run.Says("was not heard of")) << run.err;
  for (const auto& worker : workers) {
    const Finished left = worker->Wait();
    EXPECT_EQ(left.exit_code, 0) << left.err;
    EXPECT_FALSE(left.Says(" 0.00 MB sent to")) << left.err;
  }
  EXPECT_TRUE(SameModel(whole_, folder_, kIterations)) << "seed " << seed << "\n" << run.err;
  EXPECT_EQ(AuditJournal(folder_, kIterations).mistake, "");
}

}  // namespace
}  // namespace crema::testing_tools
