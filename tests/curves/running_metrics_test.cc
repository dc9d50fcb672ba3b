// What becomes of the file of records while a training writes it, and of drawings of a long one.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "curves/metrics_testing.h"
#include "files.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

TEST_F(Metrics, FileThatIsTakenAwayBeginsAnew) {
  const std::string path = this->path(), kept = folder_ / "kept.jsonl";
  std::optional<MetricsObserver> observer(Options());
  observer->OnStart(Start(10));
  Iterate(*observer, 10, 12, 0);
  fs::rename(path, kept);
  Iterate(*observer, 12, 14, 0);
  EXPECT_EQ(Points(ReadTrainingRun(kept), "train loss"), "10:10 11:11");
  EXPECT_EQ(Points(ReadTrainingRun(path), "train loss"), "12:12 13:13");
  fs::remove(path);
  Iterate(*observer, 14, 15, 0);
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
  Iterate(*observer, 0, 3, 0);
  EXPECT_EQ(warnings_.size(), 1u);
}

// Of an earlier run of `records` iterations.
void WriteLongFile(const std::string& path, int records) {
  std::ofstream file(path);
  file << "{\"event\": \"start\", \"iteration\": 0, \"max_iter\": 100}\n";
  for (int i = 0; i < records; ++i) {
    file << "{\"event\": \"train\", \"iteration\": " << i % 100
         << ", \"seconds\": 1, \"iterations\": 1, \"loss\": 1}\n";
  }
}

TEST_F(Metrics, FileThatIsLongIsDrawnWholeAtTheEnd) {
  MetricsOptions options = Options();
  options.curves = folder_ / "net.svg";
  WriteLongFile(path(), 20000);  // more than training waits for
  MetricsObserver observer(options);
  observer.OnStart(Start());
  Iterate(observer, 0, 3, 0);
  observer.OnEnd({.iteration = 3});
  EXPECT_NE(ReadFile(options.curves).find("iteration 3 of 100"), std::string::npos) << "the last drawing has all";
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(Metrics, FileThatIsLongDelaysNeitherTrainingNorItsStop) {
  MetricsOptions options = Options();
  options.curves = folder_ / "net.svg";
  WriteLongFile(path(), 400000);  // 30 MB, which take seconds
  {
    MetricsObserver observer(options);
    observer.OnStart(Start());
    Iterate(observer, 0, 3, 0);
    EXPECT_FALSE(fs::exists(options.curves)) << "training waited for the drawing";
    observer.OnEnd({.iteration = 3, .stopped_early = true});
  }
  EXPECT_FALSE(fs::exists(options.curves)) << "the stop waited for the drawing";
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("the end of this run is not drawn, as that takes long"), std::string::npos);
}

}  // namespace
}  // namespace crema
