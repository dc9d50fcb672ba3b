// Layers that count over all batches: in a test the result is that of all of its records together.
#include <gtest/gtest.h>

#include <map>

#include "errors.h"
#include "solver/training_steps_test.h"

namespace crema {
namespace {

class CountedOutputs : public Steps {
 protected:
  // By output, what each test of a training said, one element after the other.
  std::map<std::string, Floats> Tested(const std::string& net, const std::string& more) {
    folder_.Write("net.prototxt", net);
    Train("test_interval: 2 " + more, 6);
    EXPECT_EQ(recorder_.tests.size(), 4u);
    std::map<std::string, Floats> values;
    for (const TestResult& test : recorder_.tests) {
      for (const OutputValue& output : test.outputs) values[output.name].push_back(output.value);
    }
    return values;
  }

  std::string MistakeOf(const std::string& more) {
    return ThrownBy<UserError>([&] { Make(SolverText(more, 4)); });
  }
};

constexpr char kCountedTests[] = "test_iter: 9 test_interval: 2 ";

TEST_F(CountedOutputs, AreThoseOfOneLargeBatch) {
  // 9 batches of 4 are the 18 records twice.
  std::map<std::string, Floats> whole = Tested(PixelsNet(true, 36), "test_iter: 1");
  std::map<std::string, Floats> counted = Tested(PixelsNet(false, 4), "test_iter: 9");
  std::map<std::string, Floats> means = Tested(PixelsNet(true, 4), "test_iter: 9");
  ASSERT_EQ(whole["overlap"].size(), 4u);
  EXPECT_GT(whole["overlap"].back(), whole["overlap"].front());
  // What a layer makes of the counts is counted, too; all else is averaged.
  for (const char* output : {"seg_of_1", "right", "recall", "overlap"}) EXPECT_EQ(counted[output], whole[output]);
  EXPECT_NE(means["overlap"], whole["overlap"]);
  EXPECT_EQ(counted["loss"], means["loss"]);
  EXPECT_EQ(counted["accuracy"], means["accuracy"]);
  EXPECT_NE(counted["loss"], Floats(4));
}

TEST_F(CountedOutputs, CanBeWhatIsBest) {
  folder_.Write("net.prototxt", PixelsNet(false));
  Train(std::string(kCountedTests) + "best { output: \"overlap\" }", 20);
  ASSERT_GT(recorder_.bests.size(), 1u);
  for (size_t i = 1; i < recorder_.bests.size(); ++i) {
    EXPECT_GT(recorder_.bests[i].value, recorder_.bests[i - 1].value);
  }
  const std::string mistake = MistakeOf(std::string(kCountedTests) + "best { output: \"seg_of_1\" }");
  EXPECT_NE(
      mistake.find("output \"seg_of_1\" of the test net has 3 values, and best compares one; name another output, "
                   "or take it apart with a Slice layer"),
      std::string::npos)
      << mistake;
}

TEST_F(CountedOutputs, DecideTournaments) {
  folder_.Write("net.prototxt", PixelsNet(false));
  Train(std::string(kCountedTests) + "test_initialization: true", 1);
  const TestResult test = recorder_.tests.at(0);
  const auto worker = MakeAs(Role::kWorker, std::string(kCountedTests) + "distributed { mode: TOURNAMENT }");
  TrainingSteps steps(*worker);
  for (const OutputValue& output : test.outputs) {
    if (output.name == "seg_of_1") continue;
    for (const uint64_t number : {0, 1}) {  // both from the first record on
      EXPECT_EQ(steps.Score(output.name, number, [] { return true; }), output.value) << output.name;
    }
  }
}

// The counts of ranks are not brought together.
TEST_F(CountedOutputs, AreToldWhereSeveralRanksTrain) {
  folder_.Write("net.prototxt", PixelsNet(false));
  Run(1, "", 2);
  EXPECT_EQ(recorder_.notices.find("reset: false"), std::string::npos) << recorder_.notices;
  Run(2, "display: 1", 2);
  EXPECT_NE(recorder_.notices.find("layer \"seg\" counts pixels of all batches together (reset: false), but each of 2 "
                                   "ranks takes one batch in 2, so that each begins with counts of 0"),
            std::string::npos)
      << recorder_.notices;
  folder_.Write("net.prototxt", PixelsNet(true));
  Run(2, "", 2);
  EXPECT_EQ(recorder_.notices, "");
}

}  // namespace
}  // namespace crema
