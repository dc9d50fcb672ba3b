// The solver's `best`: keeping the best parameters, and stopping when nothing improves any more.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <utility>

#include "crema/files.h"
#include "errors.h"
#include "files.h"
#include "solver/snapshots/snapshot.h"
#include "solver/training_test.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

// 9 batches of 4 are the 18 records twice, so that equal parameters give equal results.
constexpr char kTests[] = "test_iter: 9 test_interval: 2 ";

class BestTest : public SmallTraining {
 protected:
  std::string BestModel() const { return folder_ / "snap_best.caffemodel"; }
};

TEST_F(BestTest, KeepsTheParametersOfTheBestTest) {
  // Much too high a rate: the loss goes up and down.
  const TrainingResult result = Train(std::string(kTests) + "base_lr: 1.5 best { output: \"loss\" }", 30);
  ASSERT_EQ(recorder_.tests.size(), 16u);
  float least = 1e30f;
  std::vector<int> improved;
  for (const TestResult& test : recorder_.tests) {
    if (LossIn(test) >= least) continue;
    least = LossIn(test);
    improved.push_back(test.iteration);
  }
  ASSERT_EQ(recorder_.bests.size(), improved.size());
  ASSERT_GT(improved.size(), 1u) << "the loss never fell";
  ASSERT_LT(improved.back(), 30) << "the loss never rose at the end";
  for (size_t i = 0; i < improved.size(); ++i) EXPECT_EQ(recorder_.bests[i].iteration, improved[i]);
  EXPECT_FALSE(result.out_of_patience);
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.best->value, least);
  EXPECT_EQ(result.best->model_path, BestModel());
  ASSERT_TRUE(recorder_.ends[0].best);
  EXPECT_EQ(recorder_.ends[0].best->iteration, improved.back());

  // The file gives the same loss again.
  Train(std::string(kTests) + "base_lr: 0", 1, {.weights = {BestModel()}});
  EXPECT_EQ(LossIn(recorder_.tests[0]), least);
}

TEST_F(BestTest, HigherIsBetterForWhatIsNoLoss) {
  Train(std::string(kTests) + "best { }", 20);
  ASSERT_GT(recorder_.bests.size(), 0u);
  for (size_t i = 1; i < recorder_.bests.size(); ++i) {
    EXPECT_GT(recorder_.bests[i].value, recorder_.bests[i - 1].value);
  }
  EXPECT_EQ(recorder_.bests[0].output, "accuracy");
  Train(std::string(kTests) + "best { output: \"loss\" better: HIGHER }", 20);
  EXPECT_EQ(recorder_.bests.size(), 1u) << "the loss falls from the first test on";
}

TEST_F(BestTest, LowerIsBetterForLossesThatTrainNothing) {
  std::string net = kSmallNet;
  net +=
      R"(layer { name: "other" type: "MultinomialLogisticLoss" bottom: "p" bottom: "label" top: "other" loss_weight: 0
            include { phase: TEST } }
)";
  net.insert(net.find("layer { name: \"accuracy\""),
             "layer { name: \"p\" type: \"Softmax\" bottom: \"ip2\" top: \"p\" include { phase: TEST } }\n");
  folder_.Write("net.prototxt", net);
  Train(std::string(kTests) + "best { output: \"other\" }", 20);
  ASSERT_GT(recorder_.bests.size(), 1u);
  EXPECT_LT(recorder_.bests.back().value, recorder_.bests[0].value);
  for (const OutputValue& output : recorder_.tests[0].outputs) {
    EXPECT_EQ(output.is_loss, output.name != "accuracy") << output.name;
  }
  Train(std::string(kTests) + "best { output: \"other\" better: HIGHER }", 20);
  EXPECT_EQ(recorder_.bests.size(), 1u) << "it falls from the first test on";
}

TEST_F(BestTest, WhatCannotBeWrittenCountsForPatience) {
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit none = {100, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  // The disk is full from the first iteration to the given one, while the loss falls.
  const auto train = [&](int last) {
    SolverOptions options;
    bool waits = true;  // at the end, for room
    options.requested_action = [&, last] {
      const int iteration = static_cast<int>(recorder_.iterations.size());
      setrlimit(RLIMIT_FSIZE, iteration >= 1 && iteration < last ? &none : &before);
      const bool ended = recorder_.notices.find("training is over") != std::string::npos;
      return ended && std::exchange(waits, false) ? SolverAction::kStop : SolverAction::kNone;
    };
    const TrainingResult result =
        Train(std::string(kTests) + "base_lr: 0.02 best { output: \"loss\" patience: 2 }", 10, std::move(options));
    setrlimit(RLIMIT_FSIZE, &before);
    return result;
  };
  const TrainingResult ends_full = train(100);
  EXPECT_FALSE(ends_full.out_of_patience);
  EXPECT_EQ(ends_full.iteration, 10);
  ASSERT_TRUE(ends_full.best);
  EXPECT_EQ(ends_full.best->iteration, 0) << "which the file holds";
  EXPECT_NE(recorder_.notices.find("the parameters of the best test, loss = "), std::string::npos) << recorder_.notices;
  EXPECT_NE(recorder_.notices.find(" at iteration 10, could not be written: those of a lesser one are kept"),
            std::string::npos)
      << recorder_.notices;

  const TrainingResult ends_well = train(5);
  EXPECT_EQ(ends_well.iteration, 10);
  ASSERT_TRUE(ends_well.best);
  EXPECT_EQ(ends_well.best->iteration, 10);
  EXPECT_EQ(recorder_.notices.find("could not be written"), std::string::npos) << recorder_.notices;
  std::signal(SIGXFSZ, handler);
}

// Nothing follows that would make up for it; likewise for the moving average that `ema` tests.
TEST_F(BestTest, TheFileOfTheLastTestIsTriedAgain) {
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit none = {100, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  for (const std::string more : {"", "ema { decay: 0.5 } "}) {
    for (const bool room : {true, false}) {
      fs::remove(BestModel());
      SolverOptions options;
      options.requested_action = [&] {
        const bool waits = recorder_.notices.find("training is over") != std::string::npos;
        setrlimit(RLIMIT_FSIZE, recorder_.iterations.size() >= 10 && !(waits && room) ? &none : &before);
        if (!waits) return SolverAction::kNone;
        return room ? SolverAction::kSnapshot : SolverAction::kStop;
      };
      const TrainingResult result = Train(
          "test_iter: 9 test_interval: 10 test_initialization: false base_lr: 0.02 "
          "snapshot_after_train: false best { output: \"loss\" } " +
              more,
          10, std::move(options));
      setrlimit(RLIMIT_FSIZE, &before);
      ASSERT_EQ(recorder_.tests.size(), 1u);
      EXPECT_EQ(recorder_.failed.size(), 1u) << "told once";
      EXPECT_NE(recorder_.notices.find("the parameters of the last test, the best so far, could not be written"),
                std::string::npos)
          << recorder_.notices;
      EXPECT_EQ(fs::exists(BestModel()), room);
      EXPECT_EQ(result.failed_snapshots, room ? 0 : 1);
      EXPECT_EQ(recorder_.bests.size(), room ? 1u : 0u);
      EXPECT_EQ(recorder_.notices.find("nor those of any other") == std::string::npos, room) << recorder_.notices;
      ASSERT_EQ(result.best.has_value(), room);
      if (!room) continue;
      const float tested = LossIn(recorder_.tests[0]);
      EXPECT_EQ(result.best->iteration, 10);
      EXPECT_EQ(result.best->value, tested);
      Train(std::string(kTests) + "base_lr: 0", 1, {.weights = {BestModel()}});
      EXPECT_EQ(LossIn(recorder_.tests[0]), tested);
    }
  }
  std::signal(SIGXFSZ, handler);
}

TEST_F(BestTest, StopsWhenThePatienceIsOver) {
  const TrainingResult result = Train(std::string(kTests) + "base_lr: 0 best { output: \"loss\" patience: 2 }", 50);
  EXPECT_EQ(recorder_.order, "btTB..tT..tTse");
  EXPECT_TRUE(result.out_of_patience);
  EXPECT_FALSE(result.stopped_early);
  EXPECT_EQ(result.iteration, 4);
  EXPECT_TRUE(recorder_.ends[0].out_of_patience);
  EXPECT_TRUE(fs::exists(folder_ / "snap_iter_4.solverstate"));

  // Resumed, it makes the last test again and comes to the same end.
  const TrainingResult again = Train(std::string(kTests) + "base_lr: 0 best { output: \"loss\" patience: 2 }", 50,
                                     {.snapshot = folder_ / "snap_iter_4.solverstate"});
  EXPECT_TRUE(again.out_of_patience);
  EXPECT_EQ(again.iteration, 4);
  // And with more patience goes on where it was.
  const TrainingResult more = Train(std::string(kTests) + "base_lr: 0 best { output: \"loss\" patience: 4 }", 50,
                                    {.snapshot = folder_ / "snap_iter_4.solverstate"});
  EXPECT_TRUE(more.out_of_patience);
  EXPECT_EQ(more.iteration, 8);
}

TEST_F(BestTest, ResumedRunsKnowTheBest) {
  const std::string more = std::string(kTests) + "base_lr: 1.5 momentum: 0.5 snapshot: 11 best { output: \"loss\" }";
  Train(more, 30);
  const Recorder straight = recorder_;
  const TrainingResult result = Train(more, 30, {.snapshot = folder_ / "snap_iter_11.solverstate"});
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.best->value, straight.ends[0].best->value);
  EXPECT_EQ(result.best->iteration, straight.ends[0].best->iteration);

  fs::remove(BestModel());
  Train(more, 30, {.snapshot = folder_ / "snap_iter_22.solverstate"});
  EXPECT_NE(recorder_.notices.find("are not in \"" + BestModel()), std::string::npos) << recorder_.notices;
  ASSERT_FALSE(recorder_.bests.empty());
  EXPECT_EQ(recorder_.bests[0].iteration, 22) << "the first test is the best of those to come";
}

TEST_F(BestTest, ResumedRunsKnowWhatCouldNotBeWritten) {
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit none = {100, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const std::string more = std::string(kTests) + "base_lr: 0.02 best { output: \"loss\" better: HIGHER }";
  SolverOptions options;
  options.requested_action = [&] {
    setrlimit(RLIMIT_FSIZE, recorder_.iterations.empty() ? &none : &before);
    return SolverAction::kNone;
  };
  Train(more, 10, std::move(options));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  const std::string lost = " at iteration 0, could not be written: those of a lesser one are kept";
  EXPECT_NE(recorder_.notices.find(lost), std::string::npos) << recorder_.notices;

  const TrainingResult resumed = Train(more, 14, {.snapshot = folder_ / "snap_iter_10.solverstate"});
  ASSERT_TRUE(resumed.best);
  EXPECT_EQ(resumed.best->iteration, 2);
  EXPECT_NE(recorder_.notices.find(lost), std::string::npos) << recorder_.notices;
}

TEST_F(BestTest, AnotherOutputBeginsAnew) {
  Train(std::string(kTests) + "snapshot: 4 best { output: \"loss\" }", 8);
  const std::string of_loss = ReadFile(BestModel());
  const std::string state = folder_ / "snap_iter_4.solverstate";
  const TrainingResult result = Train(std::string(kTests) + "best { }", 8, {.snapshot = state});
  EXPECT_NE(recorder_.notices.find("best compares output \"accuracy\", and compared \"loss\" when the snapshot was"),
            std::string::npos)
      << recorder_.notices;
  ASSERT_FALSE(recorder_.bests.empty());
  EXPECT_EQ(recorder_.bests[0].iteration, 4) << "the first test is the best of those to come";
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.best->output, "accuracy");
  EXPECT_EQ(ReadFile(folder_ / "snap_best_earlier.caffemodel"), of_loss);
}

TEST_F(BestTest, AnEarlierRunsBestIsKept) {
  for (const std::string ending : {"", ".h5"}) {
    const std::string more = std::string(kTests) + "base_lr: 0.01 snapshot: 3 best { output: \"loss\" } " +
                             (ending.empty() ? "" : "snapshot_format: HDF5");
    const auto model = [&](const std::string& aside) {
      return folder_ / ("snap_best" + aside + ".caffemodel" + ending);
    };
    folder_.Write("snap_best.caffemodel" + ending, "the first");
    Train(more, 6);
    EXPECT_EQ(ReadFile(model("_earlier")), "the first");
    EXPECT_NE(recorder_.notices.find("\"" + model("") + "\", are now \"" + model("_earlier") + "\""), std::string::npos)
        << recorder_.notices;
    ASSERT_GT(recorder_.bests.size(), 1u) << "the run's own is written over";
    EXPECT_FALSE(fs::exists(model("_earlier_2")));

    const std::string second = ReadFile(model(""));
    Train(more, 6, {.snapshot = folder_ / ("snap_iter_3.solverstate" + ending)});
    ASSERT_FALSE(recorder_.bests.empty());
    EXPECT_EQ(recorder_.notices, "") << "a resumed run goes on with its own";
    EXPECT_FALSE(fs::exists(model("_earlier_2")));

    Train(more, 6);
    EXPECT_EQ(ReadFile(model("_earlier")), "the first");
    EXPECT_EQ(ReadFile(model("_earlier_2")), second);
    Train(more, 1);
    EXPECT_TRUE(fs::exists(model("_earlier_3")));
  }
}

TEST_F(BestTest, AnotherRunsBestIsKeptByOneThatGoesOnFromElsewhere) {
  const std::string tests = std::string(kTests) + "base_lr: 0.01 ", best = "best { output: \"loss\" } ";
  const auto expect_kept = [&](const std::string& snapshot) {
    folder_.Write("snap_best.caffemodel", "of another run");
    Train(tests + best, 6, {.snapshot = folder_ / snapshot});
    EXPECT_FALSE(recorder_.bests.empty());
    EXPECT_EQ(ReadFile(folder_ / "snap_best_earlier.caffemodel"), "of another run");
    fs::remove(folder_ / "snap_best_earlier.caffemodel");
  };
  // Under another name, whose best is there.
  Train(tests + best + "snapshot_prefix: \"" + (folder_ / "a") + "\"", 3);
  expect_kept("a_iter_3.solverstate");
  EXPECT_NE(recorder_.notices.find("or under this snapshot_prefix"), std::string::npos) << recorder_.notices;
  // Of a run that knew of no best.
  Train(tests, 3);
  expect_kept("snap_iter_3.solverstate");
}

TEST_F(BestTest, WhatFailsBeforeItLearntLeavesNoBest) {
  EXPECT_THROW(Train(std::string(kTests) + "base_lr: 1e30 best { output: \"loss\" }", 30), NotFinite);
  ASSERT_FALSE(recorder_.bests.empty());
  EXPECT_EQ(recorder_.bests.back().iteration, 0);
  EXPECT_FALSE(fs::exists(BestModel()));
  // What a snapshot tells of stays.
  EXPECT_THROW(Train(std::string(kTests) + "snapshot: 1 base_lr: 1e30 best { output: \"loss\" }", 30), NotFinite);
  EXPECT_EQ(fs::exists(BestModel()), fs::exists(folder_ / "snap_iter_1.solverstate"));
}

TEST_F(BestTest, WhatFailsBeforeItLearntGivesTheEarlierRunItsBestBack) {
  const std::string tests = std::string(kTests) + "snapshot: 4 best { output: \"loss\" } ";
  Train(tests + "base_lr: 0.01", 8);
  const std::string first = ReadFile(BestModel());
  const std::string failing = tests + "base_lr: 1e30 ";
  EXPECT_THROW(Train(failing, 30), NotFinite);
  ASSERT_FALSE(recorder_.bests.empty());
  EXPECT_NE(recorder_.notices.find("the earlier one are \"" + BestModel() + "\" again"), std::string::npos)
      << recorder_.notices;
  EXPECT_EQ(ReadFile(BestModel()), first);
  EXPECT_FALSE(fs::exists(folder_ / "snap_best_earlier.caffemodel"));
  Train(tests + "base_lr: 0.01", 12, {.snapshot = folder_ / "snap_iter_8.solverstate"});
  EXPECT_EQ(recorder_.notices, "");
}

TEST_F(BestTest, WhatFailsTwiceBeforeItLearntLeavesTheEarlierRunsBest) {
  const std::string tests = std::string(kTests) + "snapshot: 4 best { output: \"loss\" } ";
  Train(tests + "base_lr: 0.01", 8);
  const std::string first = ReadFile(BestModel());
  const auto solver = Make(SolverText(tests + "base_lr: 1e30", 30));
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(solver->Step(30), NotFinite);
    EXPECT_EQ(ReadFile(BestModel()), first) << i;
    EXPECT_FALSE(fs::exists(folder_ / "snap_best_earlier.caffemodel")) << i;
  }
}

TEST_F(BestTest, WarnsOfWhatIsNoMeasure) {
  std::string net = kSmallNet;
  net +=
      "layer { name: \"size\" type: \"Reduction\" bottom: \"ip2\" top: \"size\" include { phase: TEST } }\n"
      "layer { name: \"part\" type: \"Power\" bottom: \"accuracy\" top: \"part\" include { phase: TEST } }\n";
  folder_.Write("net.prototxt", net);
  const auto notices = [&](const std::string& output) {
    Make(SolverText(std::string(kTests) + "best { output: \"" + output + "\" }", 1));
    return recorder_.notices;
  };
  EXPECT_NE(notices("size").find("output \"size\" is neither a loss nor an accuracy, nor made of one"),
            std::string::npos)
      << recorder_.notices;
  for (const char* output : {"part", "loss"}) {
    EXPECT_EQ(notices(output).find("neither a loss"), std::string::npos) << recorder_.notices;
  }
}

TEST_F(BestTest, MistakesAreNamed) {
  const auto message = [&](const std::string& more) -> std::string {
    return ThrownBy<UserError>([&] { Make(SolverText(more, 10)); });
  };
  EXPECT_NE(message(std::string(kTests) + "best { output: \"acuracy\" }")
                .find("the test net has no output \"acuracy\"; did you mean \"accuracy\"?; it has accuracy, loss"),
            std::string::npos)
      << message(std::string(kTests) + "best { output: \"acuracy\" }");
  std::string net = kSmallNet;
  for (int i = 0; i < 30; ++i) {
    const std::string name = "many" + std::to_string(i);
    net += "layer { name: \"" + name + "\" type: \"Reduction\" bottom: \"ip2\" top: \"" + name +
           "\" include { phase: TEST } }\n";
  }
  folder_.Write("net.prototxt", net);
  const std::string many = message(std::string(kTests) + "best { output: \"none\" }");
  EXPECT_NE(many.find(" and 12 more: set best"), std::string::npos) << many;
  EXPECT_NE(message("best { }").find("best looks at tests, but there are none; set test_iter and test_interval"),
            std::string::npos);
}

}  // namespace
}  // namespace crema
