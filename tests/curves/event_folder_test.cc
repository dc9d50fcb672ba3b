#include "curves/event_folder.h"

#include <cstring>
#include <filesystem>
#include <map>

#include "crema/error.h"
#include "curves/curve_writers.h"
#include "curves/event.pb.h"
#include "curves/run_files.h"
#include "files.h"

namespace crema {
namespace {

namespace fs = std::filesystem;
using tensorboard::Event;

class Events : public RunFiles {
 protected:
  static Curve CurveOf(const std::string& output, CurveKind kind, const std::vector<double>& values) {
    Curve curve;
    curve.output = output;
    curve.kind = kind;
    for (size_t i = 0; i < values.size(); ++i) {
      curve.points.push_back({static_cast<int>(i) * 100, static_cast<double>(i) * 60, values[i]});
    }
    return curve;
  }
  static TrainingRun RunOf(size_t points) {
    const std::vector<double> losses = {2, 1, 0.5, 0.25};
    TrainingRun run;
    run.name = "logs/net.log";
    run.curves = {CurveOf("loss", CurveKind::kTraining, {losses.begin(), losses.begin() + static_cast<long>(points)}),
                  CurveOf("accuracy", CurveKind::kTest, {0.1, 0.9}),
                  CurveOf("learning rate", CurveKind::kLearningRate, {0.01})};
    return run;
  }

  // The one file of events there, as bytes.
  static std::string Bytes(const std::string& folder) {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().filename().string().starts_with("events.out.tfevents.")) files.push_back(entry.path());
    }
    EXPECT_EQ(files.size(), 1u) << folder;
    return files.empty() ? "" : ReadFile(files[0]);
  }
  static std::vector<Event> EventsOf(const std::string& bytes) {
    std::vector<Event> events;
    for (size_t at = 0; at < bytes.size();) {
      uint64_t length = 0;
      std::memcpy(&length, bytes.data() + at, sizeof length);
      Event event;
      EXPECT_TRUE(event.ParseFromString(bytes.substr(at + 12, length)));
      events.push_back(event);
      at += 12 + length + 4;
    }
    return events;
  }
  // "0:2 100:1", of a tag; times must be those of the points.
  static std::string Scalars(const std::string& folder, const std::string& tag) {
    std::string text;
    std::map<int64_t, double> times;
    for (const Event& event : EventsOf(Bytes(folder))) {
      for (const auto& value : event.summary().value()) {
        if (value.tag() != tag) continue;
        text += (text.empty() ? "" : " ") + std::to_string(event.step()) + ":" +
                std::to_string(value.simple_value()).substr(0, 4);
        times[event.step()] = event.wall_time();
      }
    }
    for (const auto& [step, time] : times)
      EXPECT_NEAR(time - times.begin()->second, static_cast<double>(step) * 0.6, 1e-3);
    return text;
  }
};

TEST_F(Events, AreInAFolderForEachNet) {
  const std::string folder = folder_ / "board/";
  WriteCurves({RunOf(4)}, {}, folder);
  EXPECT_EQ(Scalars(folder + "train", "loss"), "0:2.00 100:1.00 200:0.50 300:0.25");
  EXPECT_EQ(Scalars(folder + "train", "learning_rate"), "0:0.01");
  EXPECT_EQ(Scalars(folder + "test", "accuracy"), "0:0.10 100:0.90");
}

// As every file that TensorFlow writes begins, checksum included.
TEST_F(Events, BeginAsThoseOfTensorFlow) {
  WriteCurves({RunOf(1)}, {}, folder_ / "board/");
  const std::string bytes = Bytes(folder_ / "board/train");
  EXPECT_EQ(bytes.substr(0, 12), std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12));
  EXPECT_EQ(bytes.substr(21, 15),
            "\x1a\x0d"
            "brain.Event:2");
  const std::vector<Event> events = EventsOf(bytes);
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(events[1].session_log().status(), tensorboard::SessionLog::START);
}

TEST_F(Events, GrowByWhatIsNew) {
  EventFolder folder(folder_ / "board");
  folder.Write({RunOf(2)});
  const std::string before = Bytes(folder_ / "board/train");
  folder.Write({RunOf(2)});
  EXPECT_TRUE(Bytes(folder_ / "board/train") == before);
  folder.Write({RunOf(4)});
  EXPECT_TRUE(Bytes(folder_ / "board/train").starts_with(before));
  EXPECT_EQ(Scalars(folder_ / "board/train", "loss"), "0:2.00 100:1.00 200:0.50 300:0.25");
}

// The loss may turn from a mean into that of a batch.
TEST_F(Events, NeverGoBack) {
  EventFolder folder(folder_ / "board");
  folder.Write({RunOf(3)});
  TrainingRun other = RunOf(4);
  other.curves[0].points.erase(other.curves[0].points.begin());
  folder.Write({other});
  EXPECT_EQ(Scalars(folder_ / "board/train", "loss"), "0:2.00 100:1.00 200:0.50 300:0.25");
}

TEST_F(Events, ReplaceThoseOfAnEarlierProgramOnly) {
  WriteCurves({RunOf(4)}, {}, folder_ / "board/");
  Write("board/train/events.out.tfevents.1.host", "another program's");
  WriteCurves({RunOf(2)}, {}, folder_ / "board/");
  EXPECT_EQ(ReadFile(folder_ / "board/train/events.out.tfevents.1.host"), "another program's");
  fs::remove(folder_ / "board/train/events.out.tfevents.1.host");
  EXPECT_EQ(Scalars(folder_ / "board/train", "loss"), "0:2.00 100:1.00");
}

TEST_F(Events, OfSeveralRunsLieApart) {
  TrainingRun other = RunOf(1);
  other.name = "..";
  TrainingRun above = RunOf(1);
  above.name = "../../elsewhere/.net.log";  // listings do not show names that begin with a point
  WriteCurves({RunOf(2), other, above}, {}, folder_ / "board/");
  EXPECT_EQ(Scalars(folder_ / "board/elsewhere_.net.log/train", "loss"), "0:2.00");
  EXPECT_EQ(Scalars(folder_ / "board/logs_net.log/train", "loss"), "0:2.00 100:1.00");
  EXPECT_EQ(Scalars(folder_ / "board/run/train", "loss"), "0:2.00");
}

TEST_F(Events, WithoutAFolderAreRefused) {
  Write("file", "");
  EXPECT_THROW(EventFolder(folder_ / "file/below"), EnvironmentError);
  EXPECT_THROW(EventFolder(folder_ / "file"), EnvironmentError);
}

}  // namespace
}  // namespace crema
