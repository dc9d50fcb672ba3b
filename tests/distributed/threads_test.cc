// Coordinator and workers as threads of one process, with everything between them as in several: so that the thread
// sanitizer sees both sides of each conversation.
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "crema/error.h"
#include "distributed/coordinate.h"
#include "solver/data_parallel_test.h"

namespace crema {
namespace {

constexpr int kIterations = 40;

class ClusterOfThreads : public DataParallel {
 protected:
  // Trains with `workers` threads that join over loopback; `settings` go into `distributed`.
  TrainingResult Run(int workers, const std::string& settings, const std::string& more = "momentum: 0.9") {
    const std::string count = std::to_string(workers);
    SolverFile file = ParseSolver(
        SolverText(more + " test_iter: 4 test_interval: 20 snapshot: 20 distributed { endpoint: 'tcp://127.0.0.1:*' " +
                       "local_steps: 4 heartbeat_ms: 50 expected_workers: " + count + " min_workers: " + count + " " +
                       settings + " }",
                   kIterations),
        "solver.prototxt");
    recorder_ = Recorder();
    SolverOptions options;
    options.path = folder_ / "solver.prototxt";
    options.observers = {&recorder_};
    std::promise<std::string> listening;
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
    const TrainingResult result = Coordinate(file, std::move(options), cluster);
    examples_ = 0;
    for (std::future<JoinResult>& worker : joined) {
      const JoinResult one = worker.get();
      EXPECT_TRUE(one.completed) << one.reason;
      EXPECT_GT(one.rounds, 0u);
      examples_ += one.examples;
    }
    return result;
  }

  // Of the last test.
  float Accuracy() const { return recorder_.tests.empty() ? -1 : recorder_.tests.back().outputs[0].value; }

  uint64_t examples_ = 0;
};

struct Way {
  const char* name;
  const char* settings;
  int workers;
};

class EveryWay : public ClusterOfThreads, public ::testing::WithParamInterface<Way> {};

TEST_P(EveryWay, TrainsToTheEnd) {
  const TrainingResult result = Run(GetParam().workers, GetParam().settings);
  EXPECT_EQ(result.iteration, kIterations);
  EXPECT_FALSE(result.stopped_early);
  EXPECT_GT(Accuracy(), 0.6);
  // A step of each worker uses 6 records.
  EXPECT_GE(examples_, static_cast<uint64_t>(6 * kIterations * GetParam().workers));
}

// While one thread makes gradients another one sends those that are there.
TEST_F(ClusterOfThreads, GradientsOfAWideNetLeaveInManyBuckets) {
  folder_.Write("net.prototxt", SharedNet(6, 8000));
  EXPECT_EQ(Run(3, "mode: GRADIENT topology: SHARDED overlap: BACKWARD").iteration, kIterations);
}

INSTANTIATE_TEST_SUITE_P(Cluster, EveryWay,
                         ::testing::Values(Way{"Average", "", 3}, Way{"Gradient", "mode: GRADIENT", 3},
                                           Way{"Elastic", "mode: ELASTIC", 3}, Way{"Stale", "mode: STALE", 3},
                                           Way{"Coded", "codec: INT8 down_codec: BF16 codec_warmup_rounds: 2", 2},
                                           Way{"Delayed", "overlap: DELAYED", 2},
                                           Way{"Sharded", "topology: SHARDED overlap: DELAYED", 3},
                                           Way{"Backward", "mode: GRADIENT topology: SHARDED overlap: BACKWARD", 3},
                                           Way{"Ring", "topology: RING history: MEAN", 3},
                                           Way{"Tree", "topology: TREE", 4}, Way{"Halving", "topology: HALVING", 3}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace crema
