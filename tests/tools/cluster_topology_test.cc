// The real `train` with workers that exchange their values among themselves: what they learn and what it costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tools/cluster_training.h"
#include "tools/patterns.h"

namespace crema::testing_tools {
namespace {

// DisplayedLosses of each displayed iteration.
std::vector<double> DisplayedLosses(const std::string& log) {
  std::vector<double> losses;
  for (const std::string& loss : FindAll(log, R"(\] Iteration \d+ \([^)]*\), loss = (\S+)\n)")) {
    losses.push_back(std::stod(loss));
  }
  return losses;
}

struct TopologyWay {
  const char* name;
  const char* settings;
  bool batch_norm = false;
};

std::ostream& operator<<(std::ostream& out, const TopologyWay& way) { return out << way.name; }

class TopologyWays : public ::testing::TestWithParam<TopologyWay> {};

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
    ::testing::Values(TopologyWay{"LocalHistory", ""}, TopologyWay{"MeanHistory", "history: MEAN"},
                      TopologyWay{"ResetHistory", "history: RESET"},
                      TopologyWay{"OuterMomentum", "outer_momentum: 0.6 outer_nesterov: true outer_lr: 0.8"},
                      TopologyWay{"BlockMomentum",
                                  "outer_momentum_by_workers: true outer_nesterov: true history: RESET"},
                      TopologyWay{"BatchNorm", "", true},
                      TopologyWay{"BatchNormWithAll", "outer_momentum: 0.5 outer_nesterov: true history: MEAN", true}),
    [](const auto& info) { return std::string(info.param.name); });

struct Route {
  const char* topology;
  int workers;
};

std::ostream& operator<<(std::ostream& out, const Route& route) {
  return out << route.topology << " of " << route.workers;
}

// MB that each worker sent to others in a round, and got, by what they log.
void ReadPeerBytes(const Cluster& cluster, int rounds, std::vector<double>* sent, std::vector<double>* received) {
  const char* pattern = R"(\((\d+) rounds, \d+ examples, (\S+) MB sent to and (\S+) MB received from other workers\))";
  for (const std::string& log : cluster.logs) {
    ASSERT_TRUE(Matches(log, pattern)) << log;
    EXPECT_EQ(std::stoi(FindAll(log, pattern, 1).front()), rounds);
    sent->push_back(std::stod(FindAll(log, pattern, 2).front()) / rounds);
    received->push_back(std::stod(FindAll(log, pattern, 3).front()) / rounds);
  }
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
  const std::vector<double> expected = DisplayedLosses(runs[0].err), losses = DisplayedLosses(runs[1].err);
  ASSERT_EQ(expected.size(), 6u) << runs[0].err;
  ASSERT_EQ(losses.size(), expected.size());
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], kLossTolerance * expected[0]) << i;
  EXPECT_LT(Difference(star.Model(60), one.Model(60)), 1e-2);
}

// Payload bytes, as workers count them, against what the topology is known for.
TEST_P(TopologyRoutes, BytesAreThoseOfTheFormula) {
  constexpr int kIterations = 40, kHidden = 512;
  // conv1, ip1, ip2.
  constexpr double kBytes = 4.0 * (8 * 9 + 8 + kHidden * (8 * 16 + 1) + 4 * (kHidden + 1));
  const int count = GetParam().workers;
  // Slow heartbeats: nothing is sent twice because a machine is busy.
  const ClusterFolder folder(
      "heartbeat_ms: 1000 dead_ms: 10000 local_steps: 5 history: RESET topology: " + std::string(GetParam().topology),
      {.max_iter = kIterations, .snapshot = 0, .test_interval = 1000, .hidden = kHidden});
  Cluster cluster(folder, count);
  cluster.Finish();
  std::vector<double> sent, received;
  ReadPeerBytes(cluster, kIterations / 5, &sent, &received);
  for (std::vector<double>* all : {&sent, &received}) {
    for (double& one : *all) one *= 1e6 / kBytes;
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

class TopologyCodes : public ::testing::TestWithParam<TopologyWay> {};

TEST_P(TopologyCodes, ShardedIsStarToTheBit) {
  const std::string settings =
      std::string("local_workers: 3 local_steps: 5 codec_warmup_rounds: 3 ") + GetParam().settings;
  const TinyTraining training{.max_iter = 60, .snapshot = 20, .hidden = 256};
  const ClusterFolder star(settings, training), sharded(settings + " topology: SHARDED", training);
  for (const ClusterFolder* folder : {&star, &sharded}) {
    if (GetParam().batch_norm) AddBatchNorm(*folder);
    const Finished run = folder->Run();
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.err.find("Warning"), std::string::npos) << run.err;
    EXPECT_EQ(AuditJournal(*folder, 60).mistake, "");
  }
  for (const int iteration : {20, 60}) EXPECT_TRUE(SameModel(star, sharded, iteration)) << iteration;
}

INSTANTIATE_TEST_SUITE_P(Ways, TopologyCodes,
                         ::testing::Values(TopologyWay{"BothWays", "codec: INT8 down_codec: INT8 history: MEAN"},
                                           TopologyWay{"Halves", "codec: BF16 down_codec: FP16 history: RESET", true},
                                           TopologyWay{"Up", "codec: THRESHOLD outer_lr: 0.8"},
                                           TopologyWay{"Gradients", "mode: GRADIENT codec: INT8"}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Topology, LearnsWithCodes) {
  for (const std::string codes :
       {"codec: TOPK topk_ratio: 0.2 codec_warmup_rounds: 2 down_codec: INT8", "codec: ONEBIT outer_momentum: 0.3",
        "codec: INT8 down_codec: INT8 mode: GRADIENT", "codec: INT8 down_codec: INT8 overlap: DELAYED"}) {
    const std::string settings = "local_workers: 3 local_steps: 5 topology: SHARDED " + codes;
    const TinyTraining training{.max_iter = 200, .snapshot = 100, .hidden = 256};
    const ClusterFolder folder(settings, training), again(settings, training);
    const Finished run = folder.Run();
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.err.find("Warning"), std::string::npos) << codes << "\n" << run.err;
    EXPECT_GT(LastAccuracy(run.err), 0.9f) << codes << "\n" << run.err;
    EXPECT_EQ(AuditJournal(folder, 200).mistake, "");
    ASSERT_EQ(again.Run().exit_code, 0);
    EXPECT_TRUE(SameModel(folder, again, 200)) << codes;
  }
}

// With INT8 both ways: a byte each and a scale for every 256, but for biases and small parameters.
TEST(Topology, BytesOfCodesAreThoseOfTheFormula) {
  constexpr int kHidden = 1024, kWorkers = 3;
  constexpr double kWeights = kHidden * 8 * 16 + 4 * kHidden, kOthers = 8 * 9 + 8 + kHidden + 4;
  constexpr double kBytes = kWeights * (1 + 4.0 / 256) + 4 * kOthers;
  for (const std::string mode : {"local_steps: 5 history: RESET ", "mode: GRADIENT "}) {
    const ClusterFolder folder(
        "heartbeat_ms: 1000 dead_ms: 10000 codec: INT8 down_codec: INT8 codec_warmup_rounds: 0 "
        "topology: SHARDED " +
            mode,
        {.max_iter = 40, .snapshot = 0, .test_interval = 1000, .hidden = kHidden});
    Cluster cluster(folder, kWorkers);
    cluster.Finish();
    std::vector<double> sent, received;
    ReadPeerBytes(cluster, mode.find("GRADIENT") == std::string::npos ? 8 : 40, &sent, &received);
    ASSERT_EQ(sent.size(), static_cast<size_t>(kWorkers));
    for (size_t i = 0; i < sent.size(); ++i) {
      EXPECT_NEAR(sent[i] * 1e6 / kBytes / (2.0 * (kWorkers - 1) / kWorkers), 1, 0.03) << mode;
      EXPECT_NEAR(received[i] * 1e6 / kBytes / (2.0 * (kWorkers - 1) / kWorkers), 1, 0.03) << mode;
    }
  }
}

TEST(Topology, HalvingOfWorkersThatAreNoPowerOfTwo) {
  const TinyTraining training{.max_iter = 40, .snapshot = 40};
  const ClusterFolder one("local_workers: 3 local_steps: 5 topology: HALVING", training),
      again("local_workers: 3 local_steps: 5 topology: HALVING", training);
  for (const ClusterFolder* folder : {&one, &again}) ASSERT_EQ(folder->Run().exit_code, 0);
  EXPECT_TRUE(SameModel(one, again, 40));
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
  for (const Case& c : {Case{"topology: TREE codec: INT8",
                             "topology is TREE, where sums that grow from worker to worker would have to be coded anew "
                             "at each of them, but codec is INT8; set topology: SHARDED, or remove codec"},
                        Case{"topology: RING down_codec: BF16",
                             "topology is RING, where sums that grow from worker to worker would have to be coded anew "
                             "at each of them, but down_codec is BF16; set topology: SHARDED, or remove down_codec"},
                        Case{"topology: SHARDED mode: ELASTIC",
                             "topology is SHARDED, where workers take means among themselves, but mode is ELASTIC; set "
                             "mode: AVERAGE or GRADIENT, or topology: STAR"}}) {
    folder.Write("solver.prototxt", solver + "distributed { local_workers: 2 " + c.settings + " }\n");
    const Finished run = folder.Run();
    EXPECT_EQ(run.exit_code, 2) << c.settings << "\n" << run.err;
    EXPECT_TRUE(run.Says(place + c.message)) << c.settings << "\n" << run.err;
  }
}

}  // namespace
}  // namespace crema::testing_tools
