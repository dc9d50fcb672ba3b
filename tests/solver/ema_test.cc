// The solver's `ema`: the moving average of parameters is what is tested and written, and training goes on without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

#include "crema/error.h"
#include "crema/files.h"
#include "errors.h"
#include "files.h"
#include "solver/training_test.h"

namespace crema {
namespace {

constexpr char kEma[] = "momentum: 0.9 ema { decay: 0.8 } ";

std::vector<float> ParametersOf(const Net& net) {
  std::vector<float> all;
  for (const Parameter& parameter : net.parameters()) {
    std::vector<float> values(static_cast<size_t>(parameter.shape.count()));
    parameter.CopyDataTo(values.data());
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

class Ema : public SmallTraining {
 protected:
  std::vector<float> ParametersIn(const std::string& name) {
    Net net(ParseNet(kSmallNet, folder_ / "net.prototxt"), {.phase = TRAIN});
    const WeightsReport report = net.LoadWeights(ReadWeights(folder_ / name));
    EXPECT_TRUE(report.fresh.empty()) << name;
    return ParametersOf(net);
  }
  std::string File(const std::string& name) const { return ReadFile(folder_ / name); }
};

TEST_F(Ema, FollowsTheFormula) {
  const auto solver = Make(SolverText(kEma, 12));
  std::vector<float> expected = ParametersOf(solver->net());
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(solver->Step(1));
    const std::vector<float> now = ParametersOf(solver->net());
    const float decay = std::min(0.8f, (1.0f + static_cast<float>(i)) / (10.0f + static_cast<float>(i)));
    for (size_t k = 0; k < now.size(); ++k) expected[k] = decay * expected[k] + (1 - decay) * now[k];
  }
  solver->Snapshot();
  ASSERT_EQ(recorder_.snapshots.size(), 1u);
  EXPECT_EQ(recorder_.snapshots[0].ema_path, folder_ / "snap_ema.caffemodel");
  const std::vector<float> average = ParametersIn("snap_ema.caffemodel");
  ASSERT_EQ(average.size(), expected.size());
  float largest = 0;
  for (size_t k = 0; k < average.size(); ++k) largest = std::max(largest, std::abs(average[k] - expected[k]));
  EXPECT_LT(largest, 1e-6f);
  EXPECT_EQ(ParametersIn("snap_iter_12.caffemodel"), ParametersOf(solver->net()));
}

TEST_F(Ema, TrainingDoesNotSeeIt) {
  Train("momentum: 0.9 test_iter: 2 test_interval: 3", 10);
  const std::string model = File("snap_iter_10.caffemodel");
  const float loss = LossIn(recorder_.tests.back());
  Train(std::string(kEma) + "test_iter: 2 test_interval: 3", 10);
  EXPECT_EQ(File("snap_iter_10.caffemodel") == model, true);
  EXPECT_NE(LossIn(recorder_.tests.back()), loss);
}

TEST_F(Ema, TestsAndTheBestAreItsOwn) {
  // 9 batches of 4 are the 18 records twice.
  Train(std::string(kEma) + "test_iter: 9 test_interval: 10 test_initialization: false best { output: \"loss\" }", 10);
  ASSERT_EQ(recorder_.tests.size(), 1u);
  const float loss = LossIn(recorder_.tests[0]);
  EXPECT_EQ(ParametersIn("snap_best.caffemodel"), ParametersIn("snap_ema.caffemodel"));
  Train("test_iter: 9 test_interval: 1 base_lr: 0", 1, {.weights = {folder_ / "snap_ema.caffemodel"}});
  EXPECT_EQ(LossIn(recorder_.tests[0]), loss);
}

TEST_F(Ema, GoesOnExactly) {
  for (const std::string format : {"BINARYPROTO", "HDF5"}) {
    SCOPED_TRACE(format);
    const std::string ending = format == "HDF5" ? ".h5" : "";
    const std::string settings =
        std::string(kEma) + "snapshot: 7 test_iter: 9 test_interval: 4 snapshot_format: " + format;
    Train(settings, 15);
    const std::string average = File("snap_ema.caffemodel" + ending), state = File("snap_iter_15.solverstate" + ending);
    ASSERT_FALSE(average.empty());
    std::filesystem::remove(folder_ / ("snap_ema.caffemodel" + ending));
    Train(settings, 15, {.snapshot = folder_ / ("snap_iter_7.solverstate" + ending)});
    EXPECT_EQ(recorder_.notices, "");
    EXPECT_EQ(File("snap_ema.caffemodel" + ending) == average, true);
    EXPECT_EQ(File("snap_iter_15.solverstate" + ending) == state, true);
  }
}

// A snapshot that is asked for while a test sees the average has the trained parameters.
TEST_F(Ema, ASnapshotDuringATestIsOfTraining) {
  const std::string tests = "test_iter: 3 test_interval: 5 test_initialization: false ";
  Train("momentum: 0.9 snapshot: 5 " + tests, 6);
  const std::string model = File("snap_iter_5.caffemodel"), last = File("snap_iter_6.caffemodel");
  std::filesystem::remove(folder_ / "snap_iter_5.caffemodel");
  SolverOptions options;
  options.requested_action = [&] {
    const bool begins = !recorder_.order.empty() && recorder_.order.back() == 't';
    return begins ? SolverAction::kSnapshot : SolverAction::kNone;
  };
  Train(kEma + tests, 6, std::move(options));
  EXPECT_EQ(File("snap_iter_5.caffemodel") == model, true);
  EXPECT_EQ(File("snap_iter_6.caffemodel") == last, true);
}

// ... and averages that the test has not touched.
TEST_F(Ema, TestsMoveNoStatisticsOfIt) {
  std::string net = kSmallNet;
  net.insert(net.find("layer { name: \"relu1\""),
             "layer { name: \"norm\" type: \"BatchNorm\" bottom: \"ip1\" top: \"ip1\" "
             "batch_norm_param { use_global_stats: false } }\n");
  folder_.Write("net.prototxt", net);
  const std::string settings = kEma + std::string("test_iter: 3 test_interval: 5 test_initialization: false ");
  Train(settings, 10);
  const std::string average = File("snap_ema.caffemodel"), state = File("snap_iter_10.solverstate");
  for (const SolverAction action : {SolverAction::kStop, SolverAction::kSnapshot}) {
    int asked = 0;
    SolverOptions options;
    options.requested_action = [&] {
      const bool tests = !recorder_.order.empty() && recorder_.order.back() == 't';
      return tests && ++asked == 2 ? action : SolverAction::kNone;
    };
    Train(settings, 10, std::move(options));
    ASSERT_TRUE(std::filesystem::exists(folder_ / "snap_iter_5.solverstate"));
    Train(settings, 10, {.snapshot = folder_ / "snap_iter_5.solverstate"});
    EXPECT_EQ(File("snap_ema.caffemodel") == average, true);
    EXPECT_EQ(File("snap_iter_10.solverstate") == state, true);
    std::filesystem::remove(folder_ / "snap_iter_5.solverstate");
  }
}

TEST_F(Ema, BeginsWithASnapshotThatHasNone) {
  Train("momentum: 0.9 snapshot: 5", 5);
  Train(kEma, 6, {.snapshot = folder_ / "snap_iter_5.solverstate"});
  EXPECT_NE(recorder_.notices.find("knows no moving average of parameter ip1[0] and others"), std::string::npos)
      << recorder_.notices;
  Train("momentum: 0.9", 7, {.snapshot = folder_ / "snap_iter_6.solverstate"});
  EXPECT_NE(recorder_.notices.find("has a moving average of the parameters, which ends here"), std::string::npos)
      << recorder_.notices;
}

TEST_F(Ema, IsRefusedWhereItCannotBe) {
  const std::string beyond = ThrownBy<UserError>([&] { Train("ema { decay: 1 }", 2); });
  EXPECT_NE(beyond.find("decay is 1 but must be at least 0 and below 1"), std::string::npos) << beyond;
  const std::string threads =
      ThrownBy<UserError>([&] { Train("ema { } distributed { mode: HOGWILD local_workers: 2 }", 2); });
  EXPECT_NE(threads.find("ema is not there where threads share parameters"), std::string::npos) << threads;
  const std::string workers =
      ThrownBy<UserError>([&] { Train("ema { }", 2, {.role = SolverOptions::Role::kCoordinator}); });
  EXPECT_NE(workers.find("ema is not there where workers train"), std::string::npos) << workers;
}

}  // namespace
}  // namespace crema
