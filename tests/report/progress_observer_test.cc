#include "report/progress_observer.h"

#include <gtest/gtest.h>

#include <string>

namespace crema {
namespace {

class Progress : public testing::Test {
 protected:
  Terminal FakeTerminal() {
    return {[this](const std::string& text) { screen_ += text; }, [this] { return columns_; }, [this] { return now_; }};
  }
  // Starts, then ends `count` iterations of `seconds` each.
  void Run(ProgressObserver& progress, int max_iter, int count, double seconds) {
    TrainingStart start;
    start.max_iter = max_iter;
    progress.OnStart(start);
    for (int i = 0; i < count; ++i) {
      now_ += seconds;
      progress.OnIteration({i, 0.5f, seconds});
    }
  }
  int Draws() const {
    int draws = 0;
    for (size_t at = screen_.find('['); at != std::string::npos; at = screen_.find("it/s", at + 1)) ++draws;
    return draws - 1;
  }
  // What the last draw shows.
  std::string Line() const {
    const size_t begin = screen_.rfind("\x1b[K") + 3;
    return screen_.substr(begin, screen_.size() - begin - 1);
  }

  std::string screen_;
  int columns_ = 80;
  double now_ = 100;
};

TEST_F(Progress, ShowsPlaceRateLossAndTimeLeft) {
  ProgressObserver progress(FakeTerminal());
  Run(progress, 1000, 250, 0.25);
  EXPECT_EQ(Line(), "[=====               ] 250/1000 25%  4.00 it/s  loss 0.5  3m08s left");
}

TEST_F(Progress, RedrawsTenTimesASecondAtMost) {
  ProgressObserver progress(FakeTerminal());
  Run(progress, 10000, 5000, 0.001);
  EXPECT_GE(Draws(), 45);
  EXPECT_LE(Draws(), 51);
}

TEST_F(Progress, NeverFillsTheLine) {
  for (int columns : {0, 1, 2, 20, 40, 60, 200}) {
    columns_ = columns;
    screen_.clear();
    ProgressObserver progress(FakeTerminal());
    Run(progress, 1000000, 1, 0.5);
    EXPECT_LT(static_cast<int>(Line().size()), std::max(columns, 1)) << columns;
  }
}

TEST_F(Progress, EveryEventThatIsLoggedErasesItOnce) {
  ProgressObserver progress(FakeTerminal());
  const auto erases = [&](auto event) {
    now_ += 1;
    progress.OnIteration({0, 1, 1});
    screen_.clear();
    event();
    EXPECT_EQ(screen_, "\r\x1b[K");
    event();
    EXPECT_EQ(screen_, "\r\x1b[K");
  };
  erases([&] { progress.OnDisplay({}); });
  erases([&] { progress.OnTestStart({}); });
  erases([&] { progress.OnTest({}); });
  erases([&] { progress.OnSnapshot({}); });
  erases([&] { progress.OnSnapshotFailed({}); });
  erases([&] { progress.OnNotice({}); });
  erases([&] { progress.OnWeights({}); });
  erases([&] { progress.OnRestored({}); });
  erases([&] { progress.OnClipped({}); });
  erases([&] { progress.OnOverflowed({}); });
  erases([&] { progress.OnStep({}); });
  erases([&] { progress.OnEnd({}); });
}

TEST_F(Progress, IsErasedWhenTrainingThrows) {
  {
    ProgressObserver progress(FakeTerminal());
    Run(progress, 10, 1, 1);
    screen_.clear();
  }
  EXPECT_EQ(screen_, "\r\x1b[K");
}

TEST(FormatDuration, HasTwoUnits) {
  EXPECT_EQ(FormatDuration(0), "0s");
  EXPECT_EQ(FormatDuration(59.4), "59s");
  EXPECT_EQ(FormatDuration(59.6), "1m00s");
  EXPECT_EQ(FormatDuration(3599), "59m59s");
  EXPECT_EQ(FormatDuration(7620), "2h07m");
  EXPECT_EQ(FormatDuration(273600), "3d04h");
  EXPECT_EQ(FormatDuration(1e30), "long");
}

}  // namespace
}  // namespace crema
