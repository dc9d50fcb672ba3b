// Lengths in epochs: an epoch of SmallTraining is 60 records in batches of 7, its test set 18 in batches of 4.
#include "solver/checks/epochs.h"

#include <gtest/gtest.h>

#include "errors.h"
#include "files.h"
#include "solver/rules/rates.h"
#include "solver/training_test.h"

namespace crema {
namespace {

class Epochs : public SmallTraining {
 protected:
  SolverFile File(const std::string& text) const {
    return ParseSolver("net: \"net.prototxt\" base_lr: 0.05 random_seed: 5 snapshot_prefix: \"" + (folder_ / "snap") +
                           "\" " + (text.find("lr_policy") == std::string::npos ? "lr_policy: \"fixed\" " : "") + text,
                       "solver.prototxt");
  }
  SolverParameter Counted(const std::string& text, int ranks = 1) {
    SolverOptions options;
    options.path = folder_ / "solver.prototxt";
    options.observers = {&recorder_};
    return InIterations(File(text), options, ranks).solver;
  }
  std::string Refused(const std::string& text) {
    return ThrownBy<UserError>([&] {
      SolverOptions options;
      options.path = folder_ / "solver.prototxt";
      Solver(File(text), options);
    });
  }
};

TEST_F(Epochs, BecomeTheNearestIterations) {
  const SolverParameter solver = Counted(
      "lr_policy: \"multistep\" gamma: 0.1 in_epochs { max_iter: 30 test_iter: 1 test_interval: 1 stepvalue: 20 "
      "stepvalue: 27.5 display: 0.01 snapshot: 2 warmup_iter: 0.5 }");
  EXPECT_FALSE(solver.has_in_epochs());
  EXPECT_EQ(solver.max_iter(), 270);  // 30 * 9, where 60 / 7 = 8.57
  ASSERT_EQ(solver.test_iter_size(), 1);
  EXPECT_EQ(solver.test_iter(0), 5);  // 18 / 4 = 4.5, upwards
  EXPECT_EQ(solver.test_interval(), 9);
  ASSERT_EQ(solver.stepvalue_size(), 2);
  EXPECT_EQ(solver.stepvalue(0), 180);
  EXPECT_EQ(solver.stepvalue(1), 248);
  EXPECT_EQ(solver.display(), 1);  // no less
  EXPECT_EQ(solver.snapshot(), 18);
  EXPECT_EQ(solver.warmup_iter(), 5);
  EXPECT_NE(recorder_.notices.find("an epoch is 60 records of layer \"data\", 7 in an iteration: max_iter 270"),
            std::string::npos)
      << recorder_.notices;
}

TEST_F(Epochs, TestsAreOfTheSameRecords) {
  // The text already has another rate.
  SolverFile file = File("in_epochs { max_iter: 4 test_iter: 1 test_interval: 1 }");
  file.solver.set_base_lr(0);
  SolverOptions options;
  options.path = folder_ / "solver.prototxt";
  options.observers = {&recorder_};
  Solver(file, options).Train();
  ASSERT_EQ(recorder_.tests.size(), 5u);
  for (const TestResult& test : recorder_.tests) EXPECT_EQ(LossIn(test), LossIn(recorder_.tests[0]));
  EXPECT_NE(
      recorder_.notices.find("a test reads 5 batches of 4 of the 18 records of layer \"data\", so the first 2 count "
                             "once more than the others; with batch_size 3 none does"),
      std::string::npos)
      << recorder_.notices;
}

TEST_F(Epochs, OfTestsThatCountRecordsTwiceNameABetterBatchSize) {
  const auto told = [this](int records, int batch, int epochs = 1) {
    std::filesystem::remove_all(folder_ / "test_lmdb");
    WriteClasses(folder_ / "test_lmdb", records);
    std::string net = kSmallNet;
    net.replace(net.find("batch_size: 4"), 13, "batch_size: " + std::to_string(batch));
    folder_.Write("net.prototxt", net);
    recorder_ = Recorder();
    Counted("in_epochs { max_iter: 1 test_interval: 1 test_iter: " + std::to_string(epochs) + " }");
    const std::string text = "once more than the others; with ";
    const size_t at = recorder_.notices.find(text);
    return at == std::string::npos ? "" : recorder_.notices.substr(at + text.size());
  };
  EXPECT_EQ(told(18, 6), "");
  EXPECT_EQ(told(18, 8), "batch_size 6 none does\n");
  EXPECT_EQ(told(19, 17), "batch_size 10 only 1 does\n");
  EXPECT_EQ(told(69, 10, 2), "batch_size 6 none does\n");
  EXPECT_EQ(told(19, 10), "") << "of a prime none is better";
}

TEST_F(Epochs, CountAllThatAnIterationTakes) {
  EXPECT_EQ(Counted("iter_size: 2 in_epochs { max_iter: 21 }").max_iter(), 105);
  EXPECT_EQ(Counted("iter_size: 2 in_epochs { max_iter: 21 }", 3).max_iter(), 42);
}

TEST_F(Epochs, OfWholeBatchesOfTheTestSetAreNoMore) {
  std::string net = kSmallNet;
  net.replace(net.find("batch_size: 4"), 13, "batch_size: 3");
  folder_.Write("net.prototxt", net);
  const SolverParameter solver = Counted("test_interval: 1 in_epochs { max_iter: 1 test_iter: 1 }");
  EXPECT_EQ(solver.test_iter(0), 6);
}

TEST_F(Epochs, TrainAsTheIterationsDo) {
  SolverOptions options;
  options.path = folder_ / "solver.prototxt";
  Solver in_epochs(File("in_epochs { max_iter: 2 test_iter: 1 test_interval: 1 }"), options);
  EXPECT_EQ(in_epochs.Train().iteration, 18);
  const std::string model = ReadFile(folder_ / "snap_iter_18.caffemodel");
  Solver in_iterations(File("max_iter: 18 test_iter: 5 test_interval: 9"), options);
  in_iterations.Train();
  EXPECT_TRUE(ReadFile(folder_ / "snap_iter_18.caffemodel") == model);
}

TEST_F(Epochs, AreTheSameInEveryPrecision) {
  for (const char* precision : {"BF16", "TF32", "FP16"}) {
    const SolverParameter solver =
        Counted(std::string("in_epochs { max_iter: 2 test_iter: 1 } test_interval: 1 precision: ") + precision);
    EXPECT_EQ(solver.max_iter(), 18) << precision;
    EXPECT_EQ(solver.test_iter(0), 5) << precision;
  }
}

TEST_F(Epochs, ThreadsTakeTheirShare) {
  recorder_ = Recorder();
  SolverOptions options;
  options.path = folder_ / "solver.prototxt";
  options.observers = {&recorder_};
  Solver solver(File("in_epochs { max_iter: 2 } distributed { mode: HOGWILD local_workers: 2 }"), options);
  solver.Train();
  ASSERT_EQ(recorder_.starts.size(), 1u);
  EXPECT_EQ(recorder_.starts[0].max_iter, 10);  // 2 * 5, where 60 / 14 = 4.29
}

TEST_F(Epochs, OfAResumedRunAreCountedByTheRecordsThatWereRead) {
  const auto ends_at = [&](int from) {
    recorder_ = Recorder();
    SolverOptions options;
    options.path = folder_ / "solver.prototxt";
    options.observers = {&recorder_};
    if (from > 0) options.snapshot = folder_ / ("snap_iter_" + std::to_string(from) + ".solverstate");
    return Solver(File("snapshot: 3 in_epochs { max_iter: 2 }"), options).Train().iteration;
  };
  EXPECT_EQ(ends_at(0), 18);
  EXPECT_EQ(ends_at(9), 18);
  EXPECT_NE(recorder_.notices.find("7 in an iteration: max_iter 18"), std::string::npos) << recorder_.notices;
  std::string net = kSmallNet;
  net.replace(net.find("batch_size: 7"), 13, "batch_size: 14");
  folder_.Write("net.prototxt", net);
  // 57 of 120 records are left.
  EXPECT_EQ(ends_at(9), 13);
  EXPECT_NE(recorder_.notices.find("14 in an iteration from iteration 9 on, which is epoch 1.05; it was another "
                                   "number before: max_iter 13"),
            std::string::npos)
      << recorder_.notices;
  EXPECT_EQ(ends_at(12), 13) << "resumed once more";
  EXPECT_EQ(ends_at(0), 10);
}

// At epoch 15 of 30 half of a schedule is behind, whatever the iterations of the other half are.
TEST_F(Epochs, OfAResumedRunKeepThePlaceOfTheRate) {
  const EpochLengths fewer = {.train = 29, .from_iteration = 870, .from_epoch = 15};
  const EpochLengths more = {.train = 58, .from_iteration = 435, .from_epoch = 15};
  const std::vector<std::string> poly = {"lr_policy: \"poly\" power: 1 min_lr: 0.01", "lr_policy: \"poly\" power: 2.5"};
  const std::vector<std::string> cosine = {"lr_policy: \"cosine\" min_lr: 0.01",
                                           "lr_policy: \"cosine\" warmup_iter: 40"};
  const auto expect_same = [this](const std::string& policy, const EpochLengths& lengths) {
    const SolverFile file = File(policy + " in_epochs { max_iter: 30 }");
    const SolverParameter then = WithLengths(file, {.train = lengths.from_iteration / lengths.from_epoch}).solver;
    const SolverParameter now = WithLengths(file, lengths).solver;
    const double left = now.max_iter() - lengths.from_iteration;  // of 15 epochs
    for (const double done : {0.0, 0.2, 0.6, 1.0}) {
      const auto before = static_cast<int>(lengths.from_iteration * (1 + done));
      const auto after = static_cast<int>(lengths.from_iteration + left * done);
      EXPECT_NEAR(LearningRateAt(now, after), LearningRateAt(then, before), 1e-4) << policy << " " << done;
    }
  };
  for (const std::string& policy : poly) {
    expect_same(policy, fewer);
    expect_same(policy, more);
  }
  for (const std::string& policy : cosine) expect_same(policy, fewer);
}

TEST_F(Epochs, OfAResumedRunSayThatTheRateLeaps) {
  const auto resume = [this](const std::string& schedule, int batch) {
    std::string net = kSmallNet;
    net.replace(net.find("batch_size: 7"), 13, "batch_size: " + std::to_string(batch));
    folder_.Write("net.prototxt", net);
    recorder_ = Recorder();
    SolverOptions options;
    options.path = folder_ / "solver.prototxt";
    options.observers = {&recorder_};
    options.snapshot = folder_ / "snap_iter_9.solverstate";
    return Solver(File(schedule), options).Train().iteration;
  };
  SolverOptions options;
  options.path = folder_ / "solver.prototxt";
  Solver(File("snapshot: 9 max_iter: 9"), options).Train();
  const std::string cosine = "lr_policy: \"cosine\" in_epochs { max_iter: 2.1 }";
  const std::string warm_up = "warmup_start_lr: 0 in_epochs { max_iter: 3 warmup_iter: 2.1 }";
  for (const std::string& schedule : {cosine, warm_up}) {
    resume(schedule, 7);
    EXPECT_EQ(recorder_.notices.find("goes on with"), std::string::npos) << recorder_.notices;
    resume(schedule, 3);
    EXPECT_NE(recorder_.notices.find("the learning rate goes on with 0.0"), std::string::npos) << recorder_.notices;
    EXPECT_NE(recorder_.notices.find(", where 0.025 stands at epoch 1.05: "), std::string::npos) << recorder_.notices;
  }
  resume(cosine, 14);
  EXPECT_EQ(recorder_.notices.find("goes on with"), std::string::npos) << recorder_.notices;
}

TEST_F(Epochs, OfARunWhoseDataGrewStayWhenItIsResumedAgain) {
  const auto ends_at = [&](int from) {
    SolverOptions options;
    options.path = folder_ / "solver.prototxt";
    if (from > 0) options.snapshot = folder_ / ("snap_iter_" + std::to_string(from) + ".solverstate");
    return Solver(File("snapshot: 3 in_epochs { max_iter: 3 }"), options).Train().iteration;
  };
  EXPECT_EQ(ends_at(0), 27);
  std::filesystem::remove_all(folder_ / "train_lmdb");
  WriteClasses(folder_ / "train_lmdb", 120);
  // 63 records were 1.05 epochs; 1.95 of 120 records are left.
  EXPECT_EQ(ends_at(9), 42);
  EXPECT_EQ(ends_at(12), 42);
  EXPECT_EQ(ends_at(39), 42);
}

TEST_F(Epochs, OfAResumedRunSayWhenRatesDrop) {
  const EpochLengths lengths = {.train = 4.5, .from_iteration = 9, .from_epoch = 1.5};
  const SolverFile file = File(
      "lr_policy: \"multistep\" gamma: 0.1 in_epochs { max_iter: 3.5 stepvalue: 0.5 stepvalue: 2.5 test_interval: 2 }");
  const SolverParameter solver = WithLengths(file, lengths).solver;
  EXPECT_EQ(solver.max_iter(), 18);
  EXPECT_EQ(solver.stepvalue(0), 3);
  EXPECT_EQ(solver.stepvalue(1), 14);  // 13.5
  EXPECT_EQ(solver.test_interval(), 9);
  const std::string refused = ThrownBy<UserError>(
      [&] { WithLengths(File("lr_policy: \"step\" gamma: 0.1 in_epochs { max_iter: 9 stepsize: 1 }"), lengths); });
  EXPECT_NE(refused.find("set lr_policy: \"multistep\", and in in_epochs each stepvalue (the next one is 2)"),
            std::string::npos)
      << refused;
}

TEST_F(Epochs, FilesWithoutThemStayAsTheyAre) {
  EXPECT_EQ(Counted("max_iter: 3").SerializeAsString(), File("max_iter: 3").solver.SerializeAsString());
}

TEST_F(Epochs, MistakesAreRefused) {
  EXPECT_NE(Refused("max_iter: 5 in_epochs { max_iter: 2 }").find("max_iter is set in in_epochs and beside it"),
            std::string::npos);
  EXPECT_NE(Refused("in_epochs { max_iter: 0 }").find("max_iter is 0 but must be above 0"), std::string::npos);
  EXPECT_NE(Refused("in_epochs { max_iter: nan }").find("cannot be nan"), std::string::npos);
  EXPECT_NE(Refused("in_epochs { max_iter: 1e9 }").find("more iterations than can be counted"), std::string::npos);
  EXPECT_NE(Refused("in_epochs { display: 1 }").find("max_iter is missing"), std::string::npos);
  EXPECT_NE(Refused("lr_policy: \"multistep\" gamma: 0.1 in_epochs { max_iter: 9 stepvalue: 4 stepvalue: 2 }")
                .find("in_epochs: stepvalue is 2 after 4; list the epochs in increasing order"),
            std::string::npos);
}

TEST_F(Epochs, AskForDataThatHasAnEnd) {
  folder_.Write("net.prototxt", R"(
    layer { name: "data" type: "DummyData" top: "data" dummy_data_param { shape { dim: 2 dim: 3 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 1 } }
    layer { name: "loss" type: "Reduction" bottom: "ip" top: "loss" loss_weight: 1 })");
  EXPECT_NE(Refused("in_epochs { max_iter: 1 }").find("none of its layers says how many there are"), std::string::npos);
}

}  // namespace
}  // namespace crema
