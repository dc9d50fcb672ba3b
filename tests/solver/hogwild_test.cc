// Threads that change the same parameters without locks.
#include "solver/ranks/hogwild.h"

#include <omp.h>

#include <algorithm>
#include <thread>

#include "errors.h"
#include "near.h"
#include "solver/data_parallel_test.h"
#include "solver/snapshots/snapshot.h"

namespace crema {
namespace {

class Hogwild : public DataParallel {
 protected:
  static std::string Threads(int threads, const std::string& more = "") {
    return " distributed { mode: HOGWILD local_workers: " + std::to_string(threads) + " " + more + " } ";
  }

  Result RunThreads(int threads, const std::string& more, int max_iter, SolverOptions options = {}) {
    const auto solver = Make(SolverText(more + Threads(threads), max_iter), std::move(options));
    solver->Train();
    Result result{Values(solver->net()), {}, recorder_};
    for (const IterationEnd& iteration : recorder_.iterations) result.losses.push_back(iteration.loss);
    return result;
  }

  std::string Refused(const std::string& text, SolverOptions options = {}) {
    return ThrownBy<UserError>([&] { Make(text, std::move(options)); });
  }
};

TEST_F(Hogwild, OneThreadIsPlainTraining) {
  for (const std::string rule :
       {"momentum: 0.9 weight_decay: 0.01", "type: \"Adam\" base_lr: 0.01 momentum: 0.9 delta: 0.001",
        "momentum: 0.9 iter_size: 2 clip_gradients: 0.5"}) {
    SCOPED_TRACE(rule);
    const std::string settings = rule + " display: 2 test_iter: 3 test_interval: 3 snapshot: 4 average_loss: 3";
    const Result plain = Run(1, settings, 9);
    const Result threads = RunThreads(1, settings, 9);
    EXPECT_EQ(threads.parameters, plain.parameters);
    EXPECT_EQ(threads.losses, plain.losses);
    EXPECT_EQ(threads.told.order, plain.told.order);
    ASSERT_EQ(threads.told.displays.size(), plain.told.displays.size());
    for (size_t i = 0; i < plain.told.displays.size(); ++i) {
      EXPECT_EQ(threads.told.displays[i].smoothed_loss, plain.told.displays[i].smoothed_loss);
      EXPECT_EQ(threads.told.displays[i].learning_rate, plain.told.displays[i].learning_rate);
      EXPECT_EQ(threads.told.displays[i].outputs.at(0).value, plain.told.displays[i].outputs.at(0).value);
    }
    ASSERT_EQ(threads.told.tests.size(), plain.told.tests.size());
    for (size_t i = 0; i < plain.told.tests.size(); ++i) {
      EXPECT_EQ(threads.told.tests[i].outputs.at(0).value, plain.told.tests[i].outputs.at(0).value);
    }
    EXPECT_NE(threads.told.notices.find("with one thread"), std::string::npos) << threads.told.notices;
  }
}

TEST_F(Hogwild, Learns) {
  for (const std::string rule : {"base_lr: 0.05 momentum: 0.9", "base_lr: 0.01 type: \"Adam\" momentum: 0.9",
                                 "base_lr: 0.05 iter_size: 2 clip_gradients: 2"}) {
    SCOPED_TRACE(rule);
    const Result result = RunThreads(4, rule + " test_iter: 4 test_interval: 50 snapshot: 40", 100);
    ASSERT_EQ(result.losses.size(), 100u);
    EXPECT_LT(result.losses.back(), 0.2f);
    ASSERT_EQ(result.told.tests.size(), 3u);
    EXPECT_EQ(result.told.tests.back().outputs.at(0).name, "accuracy");
    EXPECT_GT(result.told.tests.back().outputs.at(0).value, 0.9f);
    EXPECT_EQ(result.told.starts.at(0).threads, 4);
    EXPECT_EQ(result.told.starts.at(0).ranks, 1);
  }
}

TEST_F(Hogwild, EveryThreadChangesTheSameParameters) {
  // What a thread alone does to them, times four: the rate is so small that nothing else matters.
  folder_.Write("net.prototxt", SharedNet(60));
  const std::string settings = "base_lr: 1e-4";
  const std::vector<float> start = [&] { return Values(Make(SolverText(settings, 1))->net()); }();
  const Result one = Run(1, settings, 1), four = RunThreads(4, settings, 1);
  double product = 0, square = 0;
  for (size_t i = 0; i < start.size(); ++i) {
    const double by_one = double{one.parameters[i]} - start[i], by_four = double{four.parameters[i]} - start[i];
    product += by_one * by_four;
    square += by_one * by_one;
  }
  // An update that two threads make of an element at the same time may be lost.
  EXPECT_GT(product / square, 2.0);
  EXPECT_LT(product / square, 4.01);
}

TEST_F(Hogwild, UsesTheRecordsOfRanksOnceEach) {
  // With a rate of 0 a loss says which records it is of. 10 iterations of 3 threads with batches of 6 are 3 epochs.
  const std::string settings = "base_lr: 0 momentum: 0.9 test_iter: 1 test_interval: 4 snapshot: 3";
  for (const int threads : {2, 3}) {
    const Result ranks = Run(threads, settings, 10), free = RunThreads(threads, settings, 10);
    ExpectNear(ranks.losses, free.losses, 1e-6, "losses");
    EXPECT_EQ(free.parameters, ranks.parameters);
    EXPECT_EQ(free.told.order, ranks.told.order);
  }
  const auto solver = Make(SolverText("base_lr: 0" + Threads(3), 7));
  solver->Train();
  EXPECT_EQ(solver->net().data_positions().at(0).second, 7u * 3 * 6);
}

TEST_F(Hogwild, GoesOnFromASnapshot) {
  const std::string settings = "type: \"Adam\" base_lr: 0.01 momentum: 0.9 snapshot: 20 average_loss: 4";
  const Result first = RunThreads(2, settings, 20);
  EXPECT_EQ(first.told.snapshots.size(), 1u);
  SolverOptions options;
  options.snapshot = "auto";
  const auto solver = Make(SolverText(settings + Threads(2), 60), options);
  EXPECT_EQ(solver->iteration(), 20);
  EXPECT_EQ(Values(solver->net()), first.parameters);
  EXPECT_EQ(solver->net().data_positions().at(0).second, 20u * 2 * 6);
  solver->Train();
  EXPECT_EQ(recorder_.notices, "");
  ASSERT_EQ(recorder_.iterations.size(), 40u);
  EXPECT_EQ(recorder_.iterations.front().iteration, 20);
  EXPECT_LT(recorder_.iterations.front().loss, first.losses.front());
  EXPECT_LT(recorder_.iterations.back().loss, 0.3f);
  // And with another number of threads, or none.
  for (const std::string& threads : {Threads(3), std::string()}) {
    options.snapshot = folder_ / "snap_iter_20.solverstate";
    const auto other = Make(SolverText(settings + threads, 24), options);
    other->Train();
    EXPECT_EQ(other->iteration(), 24);
  }
}

TEST_F(Hogwild, SnapshotsHoldTheMeanOfTheHistories) {
  // Without momentum a history is the last step; with a rate of so little the threads' gradients are those of ranks.
  const std::string settings = "base_lr: 1e-6 momentum: 0.9";
  Run(2, settings, 1);
  const SolverState ranks = LoadState(folder_ / "snap_iter_1.solverstate").state;
  RunThreads(2, settings, 1);
  const SolverState threads = LoadState(folder_ / "snap_iter_1.solverstate").state;
  ASSERT_EQ(threads.history_size(), ranks.history_size());
  for (int i = 0; i < ranks.history_size(); ++i) {
    for (int k = 0; k < ranks.history(i).data_size(); ++k) {
      EXPECT_NEAR(threads.history(i).data(k), ranks.history(i).data(k), 1e-10);
    }
  }
}

TEST_F(Hogwild, GoesOnStepByStep) {
  const auto solver = Make(SolverText("snapshot_after_train: false test_iter: 1 test_interval: 2" + Threads(2), 5));
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(solver->Step(1));
    EXPECT_EQ(solver->iteration(), i + 1);
  }
  EXPECT_TRUE(solver->Test());
  solver->Snapshot();
  EXPECT_EQ(recorder_.snapshots.size(), 1u);
}

TEST_F(Hogwild, StopsAndSavesAtACommonIteration) {
  SolverOptions options;
  int asked = 0;
  options.requested_action = [&] {
    ++asked;
    return asked == 10 ? SolverAction::kSnapshot : asked == 30 ? SolverAction::kStop : SolverAction::kNone;
  };
  const auto solver = Make(SolverText("" + Threads(3), 5000), options);
  const TrainingResult result = solver->Train();
  EXPECT_TRUE(result.stopped_early);
  EXPECT_GE(result.iteration, 30);
  EXPECT_LE(result.iteration, 60);
  ASSERT_EQ(recorder_.snapshots.size(), 2u);
  EXPECT_LT(recorder_.snapshots[0].iteration, recorder_.snapshots[1].iteration);
  EXPECT_EQ(recorder_.snapshots[1].iteration, result.iteration);
  EXPECT_EQ(static_cast<int>(recorder_.iterations.size()), result.iteration);
  for (int i = 0; i < result.iteration; ++i) EXPECT_EQ(recorder_.iterations[static_cast<size_t>(i)].iteration, i);
  EXPECT_EQ(solver->net().data_positions().at(0).second, static_cast<uint64_t>(result.iteration) * 3 * 6);
}

TEST_F(Hogwild, PoolsTheStatisticsOfBatchNorm) {
  std::string net = SharedNet(6);
  const size_t relu = net.find("layer { name: \"relu1\"");
  net.insert(relu, "layer { name: \"norm\" type: \"BatchNorm\" bottom: \"ip1\" top: \"ip1\" }\n");
  folder_.Write("net.prototxt", net);
  // With a rate of 0 the statistics of n threads are those of n nets that see their records.
  const std::string settings = "base_lr: 0 weight_decay: 0";
  const auto statistics = [&](const std::string& more) {
    const auto solver = Make(SolverText(settings + more, 10));
    solver->Train();
    std::vector<std::vector<float>> blobs;
    for (const Parameter& p : std::as_const(solver->net()).parameters()) {
      if (p.layer != "norm") continue;
      blobs.emplace_back(static_cast<size_t>(p.shape.count()));
      p.CopyDataTo(blobs.back().data());
    }
    return blobs;
  };
  const auto pooled = statistics(Threads(3)), first = statistics(Threads(3, "batch_norm: FIRST"));
  ASSERT_EQ(pooled.size(), 3u);
  EXPECT_NEAR(pooled[2][0], first[2][0], 1e-4);
  EXPECT_NE(pooled[0], first[0]);
  // 10 batches of each of three threads are three epochs; the mean of all records is known.
  SolverOptions options;
  Net whole(ReadNetFile([&] {
              std::string file = net;
              file.replace(file.find("batch_size: 6"), 13, "batch_size: 60");
              return folder_.Write("whole.prototxt", file);
            }()),
            {.search_folders = {folder_ / ""}, .context = {nullptr, 5, 1}, .keep_all = true});
  whole.Forward();
  const auto parameters = std::as_const(whole).parameters();
  const Parameter& means = *std::find_if(parameters.begin(), parameters.end(),
                                         [](const Parameter& p) { return p.layer == "norm" && p.index == 0; });
  for (int64_t c = 0; c < means.data.count(); ++c) {
    EXPECT_NEAR(pooled[0][static_cast<size_t>(c)] / pooled[2][0], means.data.f32()[c], 0.02) << c;
  }
}

TEST_F(Hogwild, NamesTheRecordOfABadLabel) {
  folder_.Write("net.prototxt", SharedNet(3, 16, "", 2));
  const auto solver = Make(SolverText("base_lr: 0" + Threads(3), 50));
  const std::string message = ThrownBy<UserError>([&] { solver->Train(); });
  EXPECT_NE(message.find("label 2 is outside the 2 classes"), std::string::npos) << message;
  EXPECT_NE(message.find("record \""), std::string::npos) << message;
  EXPECT_THROW(solver->Step(1), UserError);
}

TEST_F(Hogwild, StopsWhereTheLossIsNotFinite) {
  folder_.Write("net.prototxt", kSmallNet);
  const auto solver = Make(SolverText("base_lr: 1e30" + Threads(3), 50));
  const std::string message = ThrownBy<NotFinite>([&] { solver->Train(); });
  EXPECT_NE(message.find("the loss is"), std::string::npos) << message;
}

TEST_F(Hogwild, EndsByAnExceptionOfAnObserver) {
  Thrower thrower;
  SolverOptions options;
  options.path = folder_ / "solver.prototxt";
  options.observers = {&thrower};
  Solver solver(ParseSolver(SolverText("display: 1" + Threads(3), 200), "solver.prototxt"), options);
  EXPECT_THROW(solver.Train(), std::runtime_error);
}

TEST_F(Hogwild, RefusesWhatItDoesNotDo) {
  EXPECT_NE(Refused(SolverText("distributed { mode: HOGWILD }", 5)).find("local_workers is 0"), std::string::npos);
  EXPECT_NE(Refused(SolverText(Threads(300), 5)).find("local_workers is 300"), std::string::npos);
  const std::string meaningless = Refused(
      SolverText(Threads(2, "endpoint: \"tcp://*:5570\" codec: INT8 local_steps: 5 topology: RING engine: MPI"), 5));
  for (const char* field : {"endpoint", "codec", "local_steps", "topology", "engine", "remove them"}) {
    EXPECT_NE(meaningless.find(field), std::string::npos) << meaningless;
  }
  EXPECT_NE(Refused(SolverText("lr_policy: \"plateau\" gamma: 0.5 plateau_winsize: 3" + Threads(2), 5))
                .find("for which no thread of mode: HOGWILD waits"),
            std::string::npos);
  EXPECT_NE(Refused(SolverText(Threads(2, "history: MEAN"), 5)).find("history is MEAN"), std::string::npos);
  SolverOptions options;
  options.devices = Devices(2);
  EXPECT_NE(Refused(SolverText(Threads(2), 5), options).find("2 devices are given"), std::string::npos);
  EXPECT_EQ(Refused(SolverText(Threads(2, "history: LOCAL batch_norm: FIRST"), 5)), "");
}

TEST_F(Hogwild, LeavesTheCallersThreadsAlone) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(4);
  RunThreads(3, "", 3);
  EXPECT_EQ(omp_get_max_threads(), 4);
  omp_set_num_threads(before);
}

TEST(HogwildProgress, KeepsThreadsTogether) {
  HogwildProgress progress(2);
  progress.Begin(10, 100);
  for (int i = 0; i < HogwildProgress::kMostAhead; ++i) {
    EXPECT_TRUE(progress.Enter(0));
    progress.Leave(0, 2.0);
  }
  EXPECT_TRUE(progress.TakeFinished().empty());
  bool entered = false;
  std::thread waits([&] { entered = progress.Enter(0); });
  EXPECT_TRUE(progress.Enter(1));
  progress.Leave(1, 4.0);
  waits.join();
  EXPECT_TRUE(entered);
  const auto finished = progress.TakeFinished();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].iteration, 10);
  EXPECT_DOUBLE_EQ(finished[0].loss, 3.0);
  // The pause is behind the furthest iteration that was begun, for both.
  progress.Pause();
  EXPECT_EQ(progress.end(), 10 + HogwildProgress::kMostAhead + 1);
  progress.Leave(0, 2.0);
  EXPECT_FALSE(progress.Enter(0));
  for (int i = 0; i < HogwildProgress::kMostAhead; ++i) {
    EXPECT_TRUE(progress.Enter(1));
    progress.Leave(1, 4.0);
  }
  EXPECT_FALSE(progress.Enter(1));
  EXPECT_EQ(progress.TakeFinished().size(), static_cast<size_t>(HogwildProgress::kMostAhead));
}

TEST(HogwildProgress, AbortEndsWaiting) {
  HogwildProgress progress(2);
  progress.Begin(0, 100);
  for (int i = 0; i < HogwildProgress::kMostAhead; ++i) {
    progress.Enter(0);
    progress.Leave(0, 0);
  }
  bool aborted = false;
  std::thread waits([&] {
    try {
      progress.Enter(0);
    } catch (const Aborted&) {
      aborted = true;
    }
  });
  progress.Abort();
  waits.join();
  EXPECT_TRUE(aborted);
}

}  // namespace
}  // namespace crema
