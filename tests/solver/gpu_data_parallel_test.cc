// Several ranks, each on a GPU of its own.
#include "device/gpu.h"
#include "near.h"
#include "solver/data_parallel_test.h"

namespace crema {
namespace {

class DataParallelOnGpus : public DataParallel {
 protected:
  void SetUp() override {
    DataParallel::SetUp();
    try {
      for (int id = 0; id < 2; ++id) gpus_.push_back(&OpenGpu(id));
      Connect({gpus_[0], gpus_[1]});
    } catch (const EnvironmentError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  std::vector<Device*> Devices(int ranks) override {
    return std::vector<Device*>(gpus_.begin(), gpus_.begin() + ranks);
  }
  std::vector<Gpu*> gpus_;
};

TEST_F(DataParallelOnGpus, TwoRanksAreOneThatSumsOverTwoBatches) {
  for (const std::string rule : {"momentum: 0.9 weight_decay: 0.01", "type: \"Adam\" base_lr: 0.01 delta: 0.001"}) {
    SCOPED_TRACE(rule);
    CompareWithSumOverTwo(rule + " display: 2 test_iter: 3 test_interval: 3 snapshot: 4", 9, 1e-5);
  }
}

TEST_F(DataParallelOnGpus, ClipsTheMeanOfTheGradients) {
  CompareWithSumOverTwo("momentum: 0.9", 7, 1e-5, 0.25);
  EXPECT_FALSE(recorder_.clipped.empty());
}

TEST_F(DataParallelOnGpus, LeaveOutTheSameUpdatesInHalfPrecision) {
  std::string net = SharedNet(6);
  const std::string top = "bottom: \"label\" top: \"loss\"";
  ASSERT_NE(net.find(top), std::string::npos);
  net.insert(net.find(top) + top.size(), " loss_weight: 1e6");
  folder_.Write("net.prototxt", net);
  const std::string settings = "precision: FP16 base_lr: 5e-8 momentum: 0.9";
  const Result alone = Run(1, settings + " iter_size: 2", 24), both = Run(2, settings, 24);
  ASSERT_GT(both.told.overflowed.size(), 10u);
  ASSERT_LT(both.told.overflowed.size(), 22u);
  EXPECT_EQ(both.told.overflowed.size(), alone.told.overflowed.size());
  ExpectNear(alone.parameters, both.parameters, 1e-3, "parameters");
  SolverOptions options;
  const Result whole = Run(2, settings + " snapshot: 7", 24);
  options.snapshot = folder_ / "snap_iter_7.solverstate";
  EXPECT_EQ(Run(2, settings, 24, options).parameters, whole.parameters);
}

TEST_F(DataParallelOnGpus, BucketsDoNotChangeSums) { ExpectSumsInBuckets(); }

TEST_F(DataParallelOnGpus, RanksDrawOtherMasks) { ExpectOtherMasks(); }

TEST_F(DataParallelOnGpus, RecurrentLayersBeginEachBatchAnew) { ExpectRecurrentLayersToBeginAnew(); }

TEST_F(DataParallelOnGpus, EachRankMaySumOverSeveralBatches) {
  const Result alone = Run(1, "momentum: 0.9 iter_size: 4", 4), both = Run(2, "momentum: 0.9 iter_size: 2", 4);
  ExpectNear(alone.parameters, both.parameters, 1e-5, "parameters");
}

TEST_F(DataParallelOnGpus, ResumesWithTheSameBits) {
  const std::string settings = "type: \"Adam\" base_lr: 0.01 snapshot: 3";
  const Result whole = Run(2, settings, 6);
  SolverOptions options;
  options.snapshot = folder_ / "snap_iter_3.solverstate";
  EXPECT_EQ(Run(2, settings, 6, options).parameters, whole.parameters);
}

TEST_F(DataParallelOnGpus, NamesTheRecordOfABadLabelInAnyRank) { ExpectNamesTheRecordOfABadLabel(); }

TEST_F(DataParallelOnGpus, StopsWhereTheLossIsNotFinite) { ExpectStopsWhereTheLossIsNotFinite(); }

TEST_F(DataParallelOnGpus, StopsWhereTheLossOfOneRankIsNotFinite) { ExpectStopsWhereTheLossOfOneRankIsNotFinite(); }

TEST_F(DataParallelOnGpus, RefusesOneGivenTwice) {
  SolverOptions options;
  options.devices = {gpus_[0], gpus_[0]};
  EXPECT_THROW(Make(SolverText("", 5), options), UserError);
  options.devices = {gpus_[0], &CpuDevice()};
  EXPECT_THROW(Make(SolverText("", 5), options), UserError);
}

TEST_F(DataParallelOnGpus, EndsByAnExceptionOfAnObserver) {
  Thrower thrower;
  SolverOptions options;
  options.path = folder_ / "solver.prototxt";
  options.devices = Devices(2);
  options.observers = {&thrower};
  Solver solver(ParseSolver(SolverText("", 9), "solver.prototxt"), options);
  EXPECT_THROW(solver.Train(), std::runtime_error);
}

}  // namespace
}  // namespace crema
