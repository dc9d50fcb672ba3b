// Which files MetricsObserver writes, and the curves that are drawn of them.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>

#include "crema/error.h"
#include "curves/metrics_testing.h"
#include "files.h"

namespace crema {
namespace {

TEST_F(Metrics, CurvesNeedAFileThatCanBeReadAgain) {
  MetricsOptions options = Options();
  options.path = "/dev/null";
  EXPECT_NO_THROW(MetricsObserver{options});
  options.curves = folder_ / "net.svg";
  EXPECT_THROW(MetricsObserver{options}, UserError);
}

TEST_F(Metrics, APipeThatNobodyEmptiesIsNotWaitedFor) {
  MetricsOptions options = Options();
  options.path = folder_ / "pipe";
  ASSERT_EQ(mkfifo(options.path.c_str(), 0600), 0);
  const int reader = open(options.path.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(fcntl(reader, F_SETPIPE_SZ, 4096), 0);
  {
    MetricsObserver observer(options);
    observer.OnStart(Start(0, 100));
    Iterate(observer, 0, 100, 1);
  }
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("cannot be written: the pipe is full, and nobody reads it"), std::string::npos)
      << warnings_[0];
  char first[10] = {};
  EXPECT_EQ(read(reader, first, 9), 9);
  EXPECT_EQ(std::string(first), "{\"event\":");
  close(reader);
}

TEST_F(Metrics, AFolderThatIsRenamedTakesItsFileWithIt) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::create_directory(folder_ / "here");
  std::filesystem::current_path(folder_ / "here");
  MetricsOptions options = Options();
  options.path = "m.jsonl";
  MetricsObserver observer(options);
  observer.OnStart(Start());
  observer.OnDisplay(Shown(0, 0.1f, {}));
  std::filesystem::rename(folder_ / "here", folder_ / "there");
  for (const bool another : {false, true}) {
    const std::string written = ReadFile(folder_ / "there/m.jsonl");
    if (another) std::filesystem::create_directory(folder_ / "here");
    observer.OnTest(Tested(1, 0, {{"accuracy", 0.5f, 0}}));
    EXPECT_GT(ReadFile(folder_ / "there/m.jsonl").size(), written.size());
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "here"));
  EXPECT_TRUE(warnings_.empty());
  std::filesystem::current_path(before);
}

TEST_F(Metrics, APipeInPlaceOfTheFileIsLeftAlone) {
  MetricsOptions options = Options();
  options.path = path();
  options.curves = folder_ / "net.svg";
  MetricsObserver observer(options);
  observer.OnStart(Start());
  std::filesystem::remove(path());
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = open_files();
  const int reader = open(path().c_str(), O_RDONLY | O_NONBLOCK);
  for (int i = 0; i < 5; ++i) observer.OnTest(Tested(i, 0, {{"accuracy", 0.5f, 0}}));
  close(reader);
  EXPECT_EQ(open_files(), before);
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(Metrics, ValuesThatAreNotFiniteArePassedOver) {
  MetricsObserver observer(Options());
  observer.OnStart(Start());
  observer.OnTest(Tested(0, 0, {{"accuracy", std::numeric_limits<float>::quiet_NaN(), 0}}));
  observer.OnTest(Tested(1, 0, {{"accuracy", std::numeric_limits<float>::infinity(), 0}}));
  Iterate(observer, 0, 1, 1);
  EXPECT_NE(ReadFile(path()).find("{\"accuracy\": null}"), std::string::npos) << ReadFile(path());
  EXPECT_EQ(Names(ReadTrainingRun(path())), (std::vector<std::string>{"train loss"}));
}

TEST_F(Metrics, ARunWithoutSnapshotsLeavesNoFile) {
  MetricsObserver observer(Options());
  TrainingStart start = Start();
  start.snapshot_prefix = "";
  observer.OnStart(start);
  Iterate(observer, 0, 1, 1);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(Metrics, ATrainingThatDoesNotBeginLeavesNoFile) {
  MetricsOptions options = Options();
  options.path = path();
  { const MetricsObserver observer(options); }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  Write("net_metrics.jsonl", "kept\n");
  { const MetricsObserver observer(options); }
  EXPECT_EQ(ReadFile(path()), "kept\n");
}

TEST_F(Metrics, AFolderThatIsNotThereIsAnErrorWhereItWasNamedAndAWarningElsewhere) {
  MetricsOptions options = Options();
  options.path = folder_ / "none/a.jsonl";
  EXPECT_THROW(MetricsObserver{options}, EnvironmentError);
  options = Options();
  options.curves = folder_ / "none/a.svg";
  EXPECT_THROW(MetricsObserver{options}, EnvironmentError);
  MetricsObserver observer(Options());
  TrainingStart start = Start();
  start.snapshot_prefix = folder_ / "none/net";
  observer.OnStart(start);
  Iterate(observer, 0, 1, 1);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("none/net_metrics.jsonl"), std::string::npos);
}

TEST_F(Metrics, CurvesAreDrawnWhileTrainingGoesOnAndAtItsEnd) {
  MetricsOptions options = Options();
  options.curves = folder_ / "net.png";
  EXPECT_THROW(MetricsObserver{options}, UserError);
  options.curves = folder_ / "net.html";
  std::optional<MetricsObserver> observer(options);
  observer->OnStart(Start());
  Iterate(*observer, 0, 1, 1);
  EXPECT_NE(ReadFile(options.curves).find("http-equiv=\"refresh\""), std::string::npos);
  // Training fails.
  observer.reset();
  EXPECT_NE(ReadFile(options.curves).find("<svg"), std::string::npos);
  EXPECT_EQ(ReadFile(options.curves).find("http-equiv=\"refresh\""), std::string::npos);
}

TEST_F(Metrics, CurvesOfARunWithoutSnapshotsHaveTheirRecordsBesideThem) {
  MetricsOptions options = Options();
  options.curves = folder_ / "net.svg";
  MetricsObserver observer(options);
  TrainingStart start = Start();
  start.snapshot_prefix = "";
  observer.OnStart(start);
  Iterate(observer, 0, 1, 1);
  EXPECT_EQ(observer.path(), path());
  EXPECT_TRUE(std::filesystem::exists(options.curves));
}

}  // namespace
}  // namespace crema
