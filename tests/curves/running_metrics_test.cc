// What becomes of the file of records while a training writes it, and of drawings of a long one.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "curves/metrics_observer.h"
#include "curves/run_files.h"
#include "files.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

class MetricsFile : public RunFiles {
 protected:
  MetricsOptions Options() {
    MetricsOptions options;
    options.path = folder_ / "net_metrics.jsonl";
    options.warn = [this](const std::string& message) { warnings_.push_back(message); };
    return options;
  }
  static TrainingStart Start(int iteration = 0) {
    TrainingStart start;
    start.net = "net";
    start.iteration = iteration;
    start.max_iter = 100;
    return start;
  }
  static void Iterate(Observer& observer, int from, int to) {
    for (int i = from; i < to; ++i) {
      IterationEnd end;
      end.iteration = i;
      end.loss = static_cast<float>(i);
      observer.OnIteration(end);
    }
  }

  std::vector<std::string> warnings_;
};

TEST_F(MetricsFile, ThatIsTakenAwayBeginsAnew) {
  const std::string path = Options().path, kept = folder_ / "kept.jsonl";
  std::optional<MetricsObserver> observer(Options());
  observer->OnStart(Start(10));
  Iterate(*observer, 10, 12);
  fs::rename(path, kept);
  Iterate(*observer, 12, 14);
  EXPECT_EQ(Points(ReadTrainingRun(kept), "train loss"), "10:10 11:11");
  EXPECT_EQ(Points(ReadTrainingRun(path), "train loss"), "12:12 13:13");
  fs::remove(path);
  Iterate(*observer, 14, 15);
  EXPECT_EQ(Points(ReadTrainingRun(path), "train loss"), "14:14");
  EXPECT_NE(ReadFile(path).find("\"iteration\": 14, \"max_iter\": 100"), std::string::npos) << ReadFile(path);
  observer->OnEnd({.iteration = 15});
  observer.reset();
  EXPECT_TRUE(warnings_.empty());
  // Where it cannot be made again a warning says so, once.
  observer.emplace(Options());
  observer->OnStart(Start());
  fs::remove(path);
  fs::create_directory(path);
  Iterate(*observer, 0, 3);
  EXPECT_EQ(warnings_.size(), 1u);
}

// Drawing it takes longer than training is to wait.
TEST_F(MetricsFile, ThatIsLongIsDrawnBesideTraining) {
  MetricsOptions options = Options();
  options.curves = folder_ / "net.svg";
  {
    std::ofstream file(options.path);
    file << "{\"event\": \"start\", \"iteration\": 0, \"max_iter\": 100}\n";
    for (int i = 0; i < 20000; ++i) {
      file << "{\"event\": \"train\", \"iteration\": " << i % 100
           << ", \"seconds\": 1, \"iterations\": 1, \"loss\": 1}\n";
    }
  }
  MetricsObserver observer(options);
  observer.OnStart(Start());
  Iterate(observer, 0, 3);
  observer.OnEnd({.iteration = 3});
  EXPECT_NE(ReadFile(options.curves).find("iteration 3 of 100"), std::string::npos) << "the last drawing has all";
  EXPECT_TRUE(warnings_.empty());
}

}  // namespace
}  // namespace crema
