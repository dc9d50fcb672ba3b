// What a snapshot holds at moments that lie beside those of the plan: around tests, and when layers change places.
#include <gtest/gtest.h>

#include <string>

#include "errors.h"
#include "files.h"
#include "solver/training_steps_test.h"

namespace crema {
namespace {

class SnapshotMoments : public SmallTraining {};

// The display at the end reads one batch more, which the run that goes on must read again.
TEST_F(SnapshotMoments, TheLastTestDoesNotWriteItAgain) {
  const std::string tests = "test_iter: 9 test_interval: 10 test_initialization: false display: 5 average_loss: 3";
  Train(tests, 20);
  const std::string state = ReadFile(folder_ / "snap_iter_20.solverstate");
  const auto asked_at_the_end = [this] {
    SolverOptions options;
    options.requested_action = [this] {
      const bool at_the_end = !recorder_.displays.empty() && recorder_.displays.back().final;
      return at_the_end ? SolverAction::kSnapshot : SolverAction::kNone;
    };
    return options;
  };
  Train(tests, 20, asked_at_the_end());
  EXPECT_EQ(recorder_.tests.size(), 2u);
  EXPECT_TRUE(ReadFile(folder_ / "snap_iter_20.solverstate") == state);
  EXPECT_EQ(recorder_.notices, "");

  std::filesystem::remove(folder_ / "snap_iter_20.solverstate");
  Train(tests + " snapshot_after_train: false", 20, asked_at_the_end());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "snap_iter_20.solverstate"));
  EXPECT_NE(recorder_.notices.find("snapshot_after_train: true writes one before it"), std::string::npos)
      << recorder_.notices;
}

// A test that no interval asks for is not repeated when the run goes on.
TEST_F(SnapshotMoments, BehindATestThatAProgramAskedFor) {
  const std::string text =
      SolverText("test_iter: 2 test_interval: 1000 test_initialization: false best { output: \"loss\" }", 100);
  auto straight = Make(text);
  straight->Step(10);
  straight->Test();
  straight->Snapshot();
  straight->Step(10);
  straight->Test();
  const float first = LossIn(recorder_.tests[0]), second = LossIn(recorder_.tests[1]);
  const auto resumed = Make(text, {.snapshot = folder_ / "snap_iter_10.solverstate"});
  resumed->Step(10);
  resumed->Test();
  EXPECT_EQ(LossIn(recorder_.tests[0]), second);
  EXPECT_NE(first, second);
}

// On the CPU parameters change within the backward pass, before displays are told.
TEST_F(SnapshotMoments, IsNotWithinAnIteration) {
  class AtDisplay : public Observer {
   public:
    void OnDisplay(const Display& display) override {
      if (display.iteration == 4) solver->Snapshot();
    }
    Solver* solver = nullptr;
  };
  AtDisplay observer;
  SolverOptions options;
  options.path = folder_ / "solver.prototxt";
  options.observers = {&observer};
  Solver solver(ParseSolver(SolverText("display: 2", 10), "solver.prototxt"), options);
  observer.solver = &solver;
  const std::string error = ThrownBy<UserError>([&] { solver.Train(); });
  EXPECT_NE(error.find("call it from OnIteration"), std::string::npos) << error;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "snap_iter_4.solverstate"));
}

TEST_F(SnapshotMoments, HistoriesFollowTheirLayers) {
  std::string net = kSmallNet;
  const size_t at = net.find("layer { name: \"ip2\"");
  const auto branch = [](const std::string& name) {
    return "layer { name: \"" + name + "\" type: \"InnerProduct\" bottom: \"ip1\" top: \"" + name +
           "\" inner_product_param { num_output: 8 weight_filler { type: \"xavier\" } } }\n";
  };
  const std::string sum =
      "layer { name: \"sum\" type: \"Eltwise\" bottom: \"a\" bottom: \"b\" top: \"sum\" "
      "eltwise_param { coeff: 1 coeff: -0.5 } }\n";
  net.replace(net.find("bottom: \"ip1\" top: \"ip2\""), 13, "bottom: \"sum\"");
  const auto write = [&](const std::string& first, const std::string& second) {
    std::string text = net;
    folder_.Write("net.prototxt", text.insert(at, branch(first) + branch(second) + sum));
  };
  for (const std::string settings : {"momentum: 0.9", "type: \"Adam\" base_lr: 0.01 momentum: 0.9"}) {
    write("a", "b");
    Train(settings, 20);
    const Recorder straight = recorder_;
    Train(settings, 10);
    write("b", "a");
    Train(settings, 20, {.snapshot = folder_ / "snap_iter_10.solverstate"});
    ASSERT_EQ(recorder_.iterations.size(), 10u);
    for (size_t i = 0; i < 10; ++i) EXPECT_EQ(recorder_.iterations[i].loss, straight.iterations[i + 10].loss) << i;
  }
}

// Whoever goes on tests again, and must see the same records.
TEST_F(Steps, ASnapshotOfATestedIterationIsOneBeforeTheTest) {
  const std::string settings = "test_iter: 1 test_interval: 10 test_initialization: false best { patience: 1 }";
  const auto solver = MakeAs(Role::kCoordinator, settings);
  TrainingSteps steps(*solver);
  steps.SetIteration(10, 10);
  ASSERT_TRUE(steps.Test());
  steps.SetIteration(20, 20);
  steps.Test();
  const Recorder straight = recorder_;
  ASSERT_TRUE(steps.TrySnapshot());

  const auto resumed = MakeAs(Role::kCoordinator, settings, false, 20, folder_ / "snap_iter_20.solverstate");
  TrainingSteps again(*resumed);
  again.Test();
  ASSERT_EQ(recorder_.tests.size(), 1u);
  ASSERT_EQ(straight.tests.size(), 2u);
  EXPECT_EQ(recorder_.tests[0].iteration, 20);
  for (size_t i = 0; i < recorder_.tests[0].outputs.size(); ++i) {
    EXPECT_EQ(recorder_.tests[0].outputs[i].value, straight.tests[1].outputs[i].value);
  }
  EXPECT_NE(straight.tests[0].outputs.back().value, straight.tests[1].outputs.back().value);
  EXPECT_EQ(again.out_of_patience(), steps.out_of_patience());
}

// Of training that goes on beside it: what is not told now would never be.
TEST_F(Steps, ATestMayBeDoneToTheEndBeforeAStop) {
  SolverOptions options;
  options.devices = Devices(1);
  options.role = Role::kCoordinator;
  options.requested_action = [] { return SolverAction::kStop; };
  const auto solver =
      Make(SolverText("test_iter: 3 test_interval: 10 test_initialization: false", 20), std::move(options));
  TrainingSteps steps(*solver);
  steps.SetIteration(10, 10);
  EXPECT_FALSE(steps.Test());
  EXPECT_TRUE(recorder_.tests.empty());
  EXPECT_FALSE(steps.Test(true));
  EXPECT_EQ(recorder_.tests.size(), 1u);
}

}  // namespace
}  // namespace crema
