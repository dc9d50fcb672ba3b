// Several ranks on the CPU.
#include "solver/data_parallel_test.h"

#include "near.h"

namespace crema {
namespace {

TEST_F(DataParallel, TwoRanksAreOneThatSumsOverTwoBatches) {
  for (const std::string rule : {"", "momentum: 0.9 weight_decay: 0.01", "type: \"Nesterov\" momentum: 0.9",
                                 "type: \"Adam\" base_lr: 0.01 momentum: 0.9 delta: 0.001"}) {
    SCOPED_TRACE(rule);
    CompareWithSumOverTwo(rule + " display: 2 test_iter: 3 test_interval: 3 snapshot: 4", 9, 0);
  }
}

TEST_F(DataParallel, ClipsTheMeanOfTheGradients) {
  CompareWithSumOverTwo("momentum: 0.9 weight_decay: 0.01", 7, 0, 0.25);
  EXPECT_FALSE(recorder_.clipped.empty());
}

TEST_F(DataParallel, BucketsDoNotChangeSums) { ExpectSumsInBuckets(); }

TEST_F(DataParallel, SumsInSeveralBuckets) {
  folder_.Write("net.prototxt", SharedNet(6, 40000));
  CompareWithSumOverTwo("momentum: 0.9", 3, 0);
}

TEST_F(DataParallel, EachRankMaySumOverSeveralBatches) {
  // (g0 + g2) + (g1 + g3) where one rank alone adds one after the other.
  const Result alone = Run(1, "momentum: 0.9 iter_size: 4", 5), both = Run(2, "momentum: 0.9 iter_size: 2", 5);
  // The same records, though not in each iteration: batches 0 and 1 of rank 0 are 0 and 2 of the stream.
  ExpectNear(alone.parameters, both.parameters, 1e-5, "parameters");
  ExpectNear(alone.losses, both.losses, 1e-5, "losses");
}

TEST_F(DataParallel, ThreeRanksAreALargeBatch) {
  const Result three = Run(3, "momentum: 0.9", 6);
  folder_.Write("net.prototxt", SharedNet(18));
  const Result one = Run(1, "momentum: 0.9", 6);
  ExpectNear(one.parameters, three.parameters, 1e-5, "parameters");
  ExpectNear(one.losses, three.losses, 1e-5, "losses");
}

TEST_F(DataParallel, ReadsEachRecordOnce) {
  // 60 records: 5 iterations of two ranks with batches of 6 are an epoch, shuffled or not.
  for (const std::string shuffle : {"shuffle: true", ""}) {
    folder_.Write("net.prototxt", SharedNet(6, 16, shuffle));
    std::set<std::string> seen;
    NetFile file = ReadNetFile(folder_ / "net.prototxt");
    for (int rank = 0; rank < 2; ++rank) {
      NetOptions options;
      options.search_folders = {folder_ / ""};
      options.context = Context{nullptr, 3, 2, rank, 2};
      Net net(file, options);
      for (int batch = 0; batch < 5; ++batch) {
        net.Forward();
        const Tensor data = net.blob("data");
        EXPECT_EQ(net.data_positions().at(0).second, 12u * (batch + 1));
        for (int64_t i = 0; i < 6; ++i) {
          seen.emplace(reinterpret_cast<const char*>(data.f32() + i * 36), 36 * sizeof(float));
        }
      }
    }
    EXPECT_EQ(seen.size(), 60u);
  }
}

TEST_F(DataParallel, ResumesWithTheSameBits) {
  const std::string settings = "type: \"Adam\" base_lr: 0.01 snapshot: 3 average_loss: 4 test_iter: 9 test_interval: 2";
  const Result whole = Run(2, settings, 7);
  SolverOptions options;
  options.snapshot = folder_ / "snap_iter_3.solverstate";
  const Result resumed = Run(2, settings, 7, options);
  EXPECT_EQ(resumed.losses.size(), 4u);
  EXPECT_EQ(resumed.parameters, whole.parameters);
  EXPECT_EQ(resumed.told.notices, "");
}

TEST_F(DataParallel, HasLocalRatesOfTheMeanOfTheGradients) {
  for (const std::string policy : {"scale", "clip"}) {
    CompareWithSumOverTwo("momentum: 0.9 larc: true larc_eta: 0.05 larc_policy: \"" + policy + "\"", 7, 1e-6);
  }
}

// The loss of all ranks is what each of them goes by, also behind a snapshot.
TEST_F(DataParallel, ARateThatGoesByTheLossIsThatOfOne) {
  const std::string settings =
      "lr_policy: \"plateau\" gamma: 0.7 base_lr: 1 momentum: 0.9 average_loss: 2 display: 1 "
      "plateau_winsize: 1 plateau_winsize: 1 plateau_winsize: 1 plateau_winsize: 1 plateau_winsize: 1 "
      "plateau_winsize: 1 plateau_winsize: 1 plateau_winsize: 1";
  CompareWithSumOverTwo(settings, 12, 0);
  EXPECT_GT(recorder_.steps.size(), 1u);
  const Result whole = Run(2, settings + " snapshot: 5", 12);
  SolverOptions options;
  options.snapshot = folder_ / "snap_iter_5.solverstate";
  const Result resumed = Run(2, settings, 12, options);
  EXPECT_EQ(resumed.parameters, whole.parameters);
  EXPECT_FALSE(resumed.told.steps.empty());
}

TEST_F(DataParallel, ResumesWithAnotherNumberOfRanks) {
  // The positions count all ranks' records, so the stream goes on where it was: three batches each.
  const std::string settings = "momentum: 0.9 snapshot: 3";
  Run(2, settings, 3);
  SolverOptions options;
  options.snapshot = folder_ / "snap_iter_3.solverstate";
  const Result alone = Run(1, "momentum: 0.9 iter_size: 2", 6, options);
  const Result both = Run(2, "momentum: 0.9", 6, options);
  EXPECT_EQ(alone.parameters, both.parameters);
  const Result three = Run(3, "momentum: 0.9", 5, options);
  const Result thrice = Run(1, "momentum: 0.9 iter_size: 3", 5, options);
  ExpectNear(thrice.parameters, three.parameters, 1e-6, "parameters");
}

TEST_F(DataParallel, RecurrentLayersBeginEachBatchAnew) { ExpectRecurrentLayersToBeginAnew(); }

TEST_F(DataParallel, GoesOnStepByStep) {
  SolverOptions options;
  options.devices = Devices(2);
  const Result whole = Run(2, "momentum: 0.9 snapshot_after_train: false", 5);
  const auto solver = Make(SolverText("momentum: 0.9 snapshot_after_train: false", 5), options);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(solver->Step(1));
  EXPECT_EQ(Values(solver->net()), whole.parameters);
}

TEST_F(DataParallel, StartsFromGivenWeightsInAllRanks) {
  Run(2, "momentum: 0.9", 4);
  SolverOptions options;
  options.weights = {folder_ / "snap_iter_4.caffemodel"};
  options.seed = 9;
  const Result alone = Run(1, "momentum: 0.9 iter_size: 2", 5, options), both = Run(2, "momentum: 0.9", 5, options);
  EXPECT_EQ(both.parameters, alone.parameters);
}

TEST_F(DataParallel, RanksDrawOtherMasks) { ExpectOtherMasks(); }

TEST_F(DataParallel, TheFirstRankDrawsAsOneAlone) {
  Context alone, first;
  alone.seed = first.seed = 77;
  first.ranks = 4;
  EXPECT_EQ(first.draw_seed(), alone.draw_seed());
  EXPECT_EQ(alone.draw_seed(), 77u);
}

TEST_F(DataParallel, NamesTheRecordOfABadLabelInAnyRank) { ExpectNamesTheRecordOfABadLabel(); }

TEST_F(DataParallel, StopsWhereTheLossIsNotFinite) { ExpectStopsWhereTheLossIsNotFinite(); }

TEST_F(DataParallel, StopsWhereTheLossOfOneRankIsNotFinite) { ExpectStopsWhereTheLossOfOneRankIsNotFinite(); }

TEST_F(DataParallel, StopsWhenAsked) {
  SolverOptions options;
  options.devices = Devices(3);
  int asked = 0;
  options.requested_action = [&] { return ++asked == 4 ? SolverAction::kStop : SolverAction::kNone; };
  const auto solver = Make(SolverText("", 50), options);
  const TrainingResult result = solver->Train();
  EXPECT_TRUE(result.stopped_early);
  EXPECT_EQ(result.iteration, 4);
  EXPECT_EQ(recorder_.snapshots.size(), 1u);
}

TEST_F(DataParallel, EndsByAnExceptionOfAnObserver) {
  for (const int in_display : {-1, 1}) {
    Thrower thrower;
    thrower.in_display = in_display;
    SolverOptions options;
    options.path = folder_ / "solver.prototxt";
    options.devices = Devices(2);
    options.observers = {&thrower};
    Solver solver(ParseSolver(SolverText("display: 1", 9), "solver.prototxt"), options);
    EXPECT_THROW(solver.Train(), std::runtime_error);
  }
}

TEST_F(DataParallel, RefusesInputsThatAProgramWrites) {
  folder_.Write("net.prototxt", R"(
layer { name: "data" type: "Input" top: "data" top: "label"
        input_param { shape { dim: 2 dim: 3 } shape { dim: 2 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 3 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)");
  SolverOptions options;
  options.devices = Devices(2);
  try {
    Make(SolverText("", 5), options);
    ADD_FAILURE() << "accepted";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("Input layer"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace crema
