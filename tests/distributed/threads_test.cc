// Coordinator and workers as threads of one process, with everything between them as in several: so that the thread
// sanitizer sees both sides of each conversation.
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "crema/error.h"
#include "distributed/training/coordinate.h"
#include "solver/data_parallel_test.h"

namespace crema {
namespace {

constexpr int kIterations = 40;

// What is told of workers.
class ClusterRecorder : public Recorder {
 public:
  void OnCluster(const ClusterChanged& event) override { said += event.text + "\n"; }
  void OnClusterEnd(const ClusterSummary& event) override { summary = event; }

  std::string said;
  ClusterSummary summary;
};

class ClusterOfThreads : public DataParallel {
 protected:
  SolverFile Solver(int workers, const std::string& settings) {
    const std::string count = std::to_string(workers);
    return ParseSolver(
        SolverText("momentum: 0.9 test_iter: 4 test_interval: 20 snapshot: 20 distributed { local_steps: 4 "
                   "heartbeat_ms: 50 expected_workers: " +
                       count + " min_workers: " + count + " " + settings + " }",
                   kIterations),
        "solver.prototxt");
  }
  SolverOptions Options() {
    told_ = ClusterRecorder();
    SolverOptions options;
    options.path = folder_ / "solver.prototxt";
    options.observers = {&told_};
    return options;
  }

  // Trains with threads that Coordinate starts; `settings` go into `distributed`.
  TrainingResult Run(int workers, const std::string& settings) {
    const SolverFile file =
        Solver(workers, "local_workers: " + std::to_string(workers) + " worker_threads: true " + settings);
    CoordinateOptions cluster;
    cluster.worker_devices = Devices(workers);
    return Coordinate(file, Options(), cluster);
  }

  // Trains with threads that join over loopback.
  TrainingResult RunOverLoopback(int workers, const std::string& settings) {
    const SolverFile file = Solver(workers, "endpoint: 'tcp://127.0.0.1:*' " + settings);
    std::vector<std::future<JoinResult>> joined;
    CoordinateOptions cluster;
    cluster.on_listening = [&](const std::string& endpoint) {
      for (int i = 0; i < workers; ++i) {
        joined.push_back(std::async(std::launch::async, [endpoint, i] {
          JoinOptions join;
          join.endpoint = endpoint;
          join.name = "thread " + std::to_string(i);
          return Join(join);
        }));
      }
    };
    const TrainingResult result = Coordinate(file, Options(), cluster);
    for (std::future<JoinResult>& worker : joined) {
      const JoinResult one = worker.get();
      EXPECT_TRUE(one.completed) << one.reason;
      EXPECT_GT(one.rounds, 0u);
    }
    return result;
  }

  void ExpectTrained(const TrainingResult& result, int workers) {
    EXPECT_EQ(result.iteration, kIterations);
    EXPECT_FALSE(result.stopped_early);
    ASSERT_FALSE(told_.tests.empty());
    EXPECT_GT(told_.tests.back().outputs[0].value, 0.6);
    uint64_t examples = 0;
    std::set<std::string> names;
    for (const ClusterSummary::Worker& worker : told_.summary.workers) {
      EXPECT_GT(worker.rounds, 0u);
      EXPECT_FALSE(worker.left) << told_.said;
      names.insert(worker.name);
      examples += worker.examples;
    }
    EXPECT_EQ(names.size(), static_cast<size_t>(workers)) << told_.said;
    // A step of each worker uses 6 records.
    EXPECT_GE(examples, static_cast<uint64_t>(6 * kIterations * workers));
  }

  ClusterRecorder told_;
};

struct ThreadedWay {
  const char* name;
  const char* settings;
  int workers;
};

void PrintTo(const ThreadedWay& way, std::ostream* out) { *out << way.name; }

class EveryWay : public ClusterOfThreads, public ::testing::WithParamInterface<ThreadedWay> {};

TEST_P(EveryWay, TrainsToTheEnd) {
  const TrainingResult result = Run(GetParam().workers, GetParam().settings);
  ExpectTrained(result, GetParam().workers);
  EXPECT_EQ(told_.summary.workers[0].name.find("local-"), 0u);
  EXPECT_EQ(told_.said.find("through the coordinator"), std::string::npos) << told_.said;
}

// While one thread makes gradients another one sends those that are there.
TEST_F(ClusterOfThreads, GradientsOfAWideNetLeaveInManyBuckets) {
  folder_.Write("net.prototxt", SharedNet(6, 8000));
  EXPECT_EQ(Run(3, "mode: GRADIENT topology: SHARDED overlap: BACKWARD").iteration, kIterations);
}

INSTANTIATE_TEST_SUITE_P(
    Cluster, EveryWay,
    ::testing::Values(ThreadedWay{"Average", "", 3}, ThreadedWay{"Gradient", "mode: GRADIENT", 3},
                      ThreadedWay{"Elastic", "mode: ELASTIC", 3}, ThreadedWay{"Stale", "mode: STALE", 3},
                      ThreadedWay{"Tournament", "mode: TOURNAMENT", 2},
                      ThreadedWay{"Coded", "codec: INT8 down_codec: BF16 codec_warmup_rounds: 2", 2},
                      ThreadedWay{"Delayed", "overlap: DELAYED", 2},
                      ThreadedWay{"Sharded", "topology: SHARDED overlap: DELAYED", 3},
                      ThreadedWay{"ShardedGradient", "topology: SHARDED mode: GRADIENT", 3},
                      ThreadedWay{"Backward", "mode: GRADIENT topology: SHARDED overlap: BACKWARD", 3},
                      ThreadedWay{"Ring", "topology: RING history: MEAN", 3}, ThreadedWay{"Tree", "topology: TREE", 4},
                      ThreadedWay{"Halving", "topology: HALVING", 3}),
    [](const auto& info) { return info.param.name; });

class OverLoopback : public ClusterOfThreads, public ::testing::WithParamInterface<ThreadedWay> {};

TEST_P(OverLoopback, TrainsToTheEnd) {
  ExpectTrained(RunOverLoopback(GetParam().workers, GetParam().settings), GetParam().workers);
}

INSTANTIATE_TEST_SUITE_P(Cluster, OverLoopback,
                         ::testing::Values(ThreadedWay{"Average", "", 3},
                                           ThreadedWay{"Sharded", "topology: SHARDED overlap: DELAYED", 3}),
                         [](const auto& info) { return info.param.name; });

TEST(ClusterWithinAProcess, CannotBeJoinedFromOutside) {
  JoinOptions join;
  join.endpoint = "inproc://coordinator";
  try {
    Join(join);
    FAIL() << "joined nobody";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("nobody joins at inproc://coordinator"), std::string::npos);
  }
}

}  // namespace
}  // namespace crema
