// The loop: what happens when, in which order, and how it ends.
#include "solver/training_test.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <functional>

#include "errors.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

TEST_F(SmallTraining, DoesThingsInCaffesOrder) {
  const TrainingResult result =
      Train("momentum: 0.9 display: 2 test_iter: 3 test_interval: 2 snapshot: 2 average_loss: 2", 4);
  // Test before training, then display, update, snapshot; at the end the display without update and a last test.
  EXPECT_EQ(recorder_.order, "btTd..stTd..sdtTe");
  EXPECT_EQ(result.iteration, 4);
  EXPECT_FALSE(result.stopped_early);
  EXPECT_EQ(result.last_snapshot, folder_ / "snap_iter_4.solverstate");
  EXPECT_EQ(recorder_.starts[0].net, "small");
  EXPECT_EQ(recorder_.starts[0].seed, 5u);
  EXPECT_FALSE(recorder_.starts[0].seed_drawn);
  EXPECT_EQ(recorder_.displays[1].iteration, 2);
  EXPECT_EQ(recorder_.displays[1].iterations, 2);
  ASSERT_EQ(recorder_.displays[1].outputs.size(), 1u);
  EXPECT_EQ(recorder_.displays[1].outputs[0].name, "loss");
  EXPECT_EQ(recorder_.displays[1].outputs[0].loss_weight, 1.0f);
  EXPECT_TRUE(recorder_.displays[2].final);
  ASSERT_EQ(recorder_.tests[0].outputs.size(), 2u);
  EXPECT_EQ(recorder_.tests[0].outputs[0].name, "accuracy");
  EXPECT_FALSE(recorder_.tests[0].loss.has_value());
}

TEST_F(SmallTraining, TheLastTestIsOfTheLastSnapshot) {
  std::string net = kSmallNet;
  net.insert(net.find("layer { name: \"relu1\""),
             "layer { name: \"n\" type: \"BatchNorm\" bottom: \"ip1\" top: \"ip1\" "
             "batch_norm_param { moving_average_fraction: 0.5 } }\n");
  folder_.Write("net.prototxt", net);
  const std::string tests = " test_iter: 9 test_interval: 4";
  Train("display: 2 best { output: \"loss\" }" + tests, 4);
  EXPECT_EQ(recorder_.order.substr(recorder_.order.find('s'), 4), "sdtT");
  const std::vector<OutputValue> last = recorder_.tests.back().outputs;
  EXPECT_EQ(recorder_.bests.back().iteration, 4);
  for (const char* model : {"snap_iter_4.caffemodel", "snap_best.caffemodel"}) {
    Train("base_lr: 0 snapshot_after_train: false" + tests, 0, {.weights = {folder_ / model}});
    for (size_t i = 0; i < last.size(); ++i) EXPECT_EQ(recorder_.tests[0].outputs[i].value, last[i].value) << model;
  }
}

TEST_F(SmallTraining, LearnsTheClasses) {
  Train("momentum: 0.9 base_lr: 0.1 test_iter: 9 test_interval: 150 test_compute_loss: true", 150);
  ASSERT_EQ(recorder_.tests.size(), 2u);
  EXPECT_LT(recorder_.tests[0].outputs[0].value, 0.8f);
  EXPECT_GT(recorder_.tests[1].outputs[0].value, 0.95f);
  EXPECT_LT(*recorder_.tests[1].loss, *recorder_.tests[0].loss);
  EXPECT_FLOAT_EQ(*recorder_.tests[1].loss, recorder_.tests[1].outputs[1].value);
}

TEST_F(SmallTraining, LearnsTheClassesOfMixedImages) {
  folder_.Write("net.prototxt", MixUpNet("alpha: 0.5"));
  Train("momentum: 0.9 base_lr: 0.1 test_iter: 9 test_interval: 150", 150);
  EXPECT_LT(recorder_.tests[0].outputs[0].value, 0.8f);
  EXPECT_GT(recorder_.tests[1].outputs[0].value, 0.95f);
}

TEST_F(SmallTraining, UpdatesWithinTheBackwardPassAreThoseAfterIt) {
  const auto weights = [&](const std::string& more, bool within) {
    const auto solver = Make(SolverText("type: \"Adam\" base_lr: 0.01 weight_decay: 0.01 " + more, 7));
    solver->Train();
    std::vector<float> all;
    for (const Parameter& p : std::as_const(solver->net()).parameters()) {
      EXPECT_EQ(p.grad.defined(), !within);
      all.insert(all.end(), p.data.f32(), p.data.f32() + p.data.count());
    }
    return all;
  };
  // Snapshots that hold gradients want them to outlive the pass.
  EXPECT_EQ(weights("", true), weights("snapshot_diff: true", false));
  // Weights that no loss reaches decay, in Caffe and whatever else a file sets.
  std::string net = kSmallNet;
  net.insert(net.find("inner_product_param { num_output: 3"), "propagate_down: false ");
  folder_.Write("net.prototxt", net);
  const auto begin = Make(SolverText("", 1));
  const Parameter& unreached = std::as_const(begin->net()).parameters()[0];
  ASSERT_TRUE(unreached.trained);
  const std::vector<float> within = weights("", true);
  EXPECT_EQ(within, weights("snapshot_diff: true", false));
  double sum_before = 0, sum = 0;
  for (int64_t i = 0; i < unreached.data.count(); ++i) {
    sum_before += std::fabs(unreached.data.f32()[i]);
    sum += std::fabs(within[static_cast<size_t>(i)]);
  }
  EXPECT_LT(sum, 0.9 * sum_before);
}

TEST_F(SmallTraining, KeepsWithinAMemoryLimitOrSaysWhyNot) {
  EXPECT_EQ(Train("memory_limit: \"10MB\"", 2).iteration, 2);
  for (const std::string more : {"memory_limit: \"1kB\"", "memory_limit: \"1kB\" recompute: AUTO"}) {
    try {
      Train(more, 1);
      ADD_FAILURE() << more;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("lower batch_size"), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find("solver.prototxt:"), 0u) << error.what();
    }
  }
  EXPECT_EQ(Train("recompute: AUTO", 2).iteration, 2);  // within the free memory of the machine
}

TEST_F(SmallTraining, SmoothsTheLossOverTheWindow) {
  Train("display: 1 average_loss: 3", 8);
  for (size_t i = 0; i < 8; ++i) {
    double sum = 0;
    const size_t first = i < 2 ? 0 : i - 2;
    for (size_t k = first; k <= i; ++k) sum += recorder_.iterations[k].loss;
    EXPECT_FLOAT_EQ(recorder_.displays[i].smoothed_loss, static_cast<float>(sum / (i - first + 1)));
  }
}

TEST_F(SmallTraining, IterSizeEqualsALargerBatch) {
  // Without dropout, two passes of 7 records are one of 14.
  std::string net = kSmallNet;
  net.replace(net.find("dropout_ratio: 0.4"), 18, "dropout_ratio: 0.0");
  folder_.Write("net.prototxt", net);
  Train("momentum: 0.9 iter_size: 2 weight_decay: 0.01", 6);
  const Recorder accumulated = recorder_;
  net.replace(net.find("batch_size: 7"), 13, "batch_size: 14");
  folder_.Write("net.prototxt", net);
  Train("momentum: 0.9 weight_decay: 0.01", 6);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(accumulated.iterations[i].loss, recorder_.iterations[i].loss, 1e-5) << "iteration " << i;
  }
}

TEST_F(SmallTraining, FrozenParametersKeepTheirValues) {
  std::string net = kSmallNet;
  net.replace(net.find("param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 }"), 55,
              "param { lr_mult: 0 } param { lr_mult: 0 }");
  folder_.Write("net.prototxt", net);
  for (const char* type : {"SGD", "Adam"}) {
    const auto solver = Make(SolverText("weight_decay: 0.1 momentum: 0.9 type: \"" + std::string(type) + "\"", 3));
    const Parameter& frozen = solver->net().parameters()[0];
    const Parameter& learned = solver->net().parameters()[2];
    const std::vector<float> before(frozen.data.f32(), frozen.data.f32() + frozen.data.count());
    const float learned_before = learned.data.f32()[0];
    solver->Train();
    EXPECT_TRUE(std::equal(before.begin(), before.end(), frozen.data.f32()));
    EXPECT_NE(learned.data.f32()[0], learned_before);
  }
}

TEST_F(SmallTraining, StopsWithASnapshotWhenAsked) {
  int asked = 0;
  SolverOptions options;
  options.requested_action = [&] {
    ++asked;
    return asked == 2 ? SolverAction::kSnapshot : asked == 5 ? SolverAction::kStop : SolverAction::kNone;
  };
  const TrainingResult result = Train("snapshot_after_train: false", 20, std::move(options));
  EXPECT_EQ(recorder_.order, "b..s...se");
  EXPECT_TRUE(result.stopped_early);
  EXPECT_EQ(result.iteration, 5);
  EXPECT_TRUE(fs::exists(folder_ / "snap_iter_2.solverstate"));
  EXPECT_EQ(result.last_snapshot, folder_ / "snap_iter_5.solverstate");
  EXPECT_TRUE(recorder_.ends[0].stopped_early);
}

TEST_F(SmallTraining, StopsInTheMiddleOfATest) {
  int asked = 0;
  SolverOptions options;
  options.requested_action = [&] { return ++asked == 4 ? SolverAction::kStop : SolverAction::kNone; };
  const TrainingResult result =
      Train("test_iter: 8 test_interval: 2 test_initialization: false", 20, std::move(options));
  EXPECT_EQ(recorder_.order, "b..tse");
  EXPECT_TRUE(result.stopped_early);
  EXPECT_EQ(result.iteration, 2);

  // The test that was cut short is done in full by the resumed run, on the same records.
  Train("test_iter: 8 test_interval: 2 test_initialization: false", 4, {.snapshot = "auto"});
  const Recorder resumed = recorder_;
  Train("test_iter: 8 test_interval: 2 test_initialization: false", 4);
  ASSERT_EQ(resumed.tests.size(), 2u);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(resumed.tests[i].outputs[1].value, recorder_.tests[i].outputs[1].value);
}

TEST_F(SmallTraining, AFullDiskDoesNotStopTraining) {
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit none = {100, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  SolverOptions options;
  int asked = 0;
  options.requested_action = [&] {
    // After the second iteration the disk is full, after the fifth there is room again.
    ++asked;
    if (asked == 2) setrlimit(RLIMIT_FSIZE, &none);
    if (asked == 5) setrlimit(RLIMIT_FSIZE, &before);
    return SolverAction::kNone;
  };
  const TrainingResult result = Train("snapshot: 1", 6, std::move(options));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(recorder_.order, "b.s.f.f.f.s.se");
  EXPECT_EQ(result.failed_snapshots, 3);
  EXPECT_NE(recorder_.failed[0].message.find("snap_iter_2.caffemodel"), std::string::npos)
      << recorder_.failed[0].message;
  EXPECT_FALSE(fs::exists(folder_ / "snap_iter_3.caffemodel"));
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    EXPECT_EQ(entry.path().string().find(".tmp"), std::string::npos) << entry.path();
  }
}

// Nothing follows that would make up for it.
TEST_F(SmallTraining, TheLastSnapshotIsTriedAgain) {
  const std::string in_the_way = folder_ / "snap_iter_3.caffemodel";
  for (const std::string snapshots : {"", "snapshot: 3 snapshot_after_train: false"}) {
    for (const SolverAction asked : {SolverAction::kSnapshot, SolverAction::kStop}) {
      fs::create_directory(in_the_way);
      SolverOptions options;
      options.requested_action = [&] {
        if (recorder_.notices.find("training is over") == std::string::npos) return SolverAction::kNone;
        if (asked == SolverAction::kSnapshot) fs::remove(in_the_way);
        return asked;
      };
      const TrainingResult result = Train(snapshots, 3, std::move(options));
      EXPECT_NE(recorder_.failed.at(0).message.find(in_the_way), std::string::npos) << recorder_.failed[0].message;
      EXPECT_EQ(fs::is_regular_file(in_the_way), asked == SolverAction::kSnapshot);
      EXPECT_EQ(result.failed_snapshots > 0, asked == SolverAction::kStop);
      EXPECT_EQ(result.last_snapshot.empty(), asked == SolverAction::kStop);
      EXPECT_EQ(recorder_.ends.size(), 1u);
      fs::remove(in_the_way);
    }
  }
  // Where nobody could stop it, it does not wait.
  fs::create_directory(in_the_way);
  EXPECT_EQ(Train("", 3).failed_snapshots, 1);
}

// Trains, or tests, within what it is told of.
class Meddler : public Observer {
 public:
  void OnIteration(const IterationEnd&) override { Meddle(); }
  void OnTestStart(const TestStart&) override { Meddle(); }

  Solver* solver = nullptr;
  int refused = 0;

 private:
  void Meddle() {
    for (const auto& call : {std::function<void()>([this] { solver->Step(1); }),
                             {[this] { solver->Train(); }},
                             {[this] { solver->Test(); }}}) {
      EXPECT_NE(ThrownBy<UserError>(call).find("was called by an observer"), std::string::npos);
      ++refused;
    }
  }
};

TEST_F(SmallTraining, ObserversDoNotTrain) {
  Meddler meddler;
  SolverOptions options;
  options.path = folder_ / "solver.prototxt";
  options.observers = {nullptr, &meddler};
  options.devices = {nullptr};
  Solver solver(ParseSolver(SolverText("test_iter: 2 test_interval: 3", 6), options.path), options);
  meddler.solver = &solver;
  solver.Step(3);
  EXPECT_EQ(solver.Train().iteration, 6);
  EXPECT_EQ(meddler.refused, 3 * (6 + 3));
  EXPECT_TRUE(solver.Test());
}

TEST_F(SmallTraining, SnapshotPrefixHasCaffesDefaults) {
  std::string text = SolverText("", 1);
  EXPECT_EQ(Make(text)->snapshot_prefix(), folder_ / "snap");
  const std::string line = "snapshot_prefix: \"" + (folder_ / "snap") + "\"";
  fs::create_directory(folder_ / "models");
  std::string directory = text, none = text, relative = text;
  directory.replace(text.find(line), line.size(), "snapshot_prefix: \"" + (folder_ / "models/") + "\"");
  none.replace(text.find(line), line.size(), "");
  relative.replace(text.find(line), line.size(), "snapshot_prefix: \"models/x\"");
  EXPECT_EQ(Make(directory)->snapshot_prefix(), folder_ / "models/solver");
  EXPECT_EQ(Make(none)->snapshot_prefix(), folder_ / "solver");
  EXPECT_EQ(Make(relative)->snapshot_prefix(), folder_ / "models/x");
}

TEST_F(SmallTraining, DrawsASeedWhereNoneIsGiven) {
  std::string text = SolverText("", 1);
  text.replace(text.find("random_seed: 5"), 14, "");
  const auto first = Make(text);
  first->Train();
  EXPECT_TRUE(recorder_.starts[0].seed_drawn);
  EXPECT_EQ(recorder_.starts[0].seed, first->seed());
  const auto second = Make(text), resumed = Make(text, {.snapshot = folder_ / "snap_iter_1.solverstate"});
  EXPECT_NE(first->seed(), second->seed());
  EXPECT_EQ(first->seed(), resumed->seed());
}

TEST_F(SmallTraining, TestNetsHaveTheirOwnStates) {
  std::string net = kSmallNet;
  net += "layer { name: \"extra\" type: \"Softmax\" bottom: \"ip2\" top: \"extra\" include { stage: \"more\" } }\n";
  folder_.Write("net.prototxt", net);
  Train("test_iter: 1 test_iter: 2 test_interval: 1 test_state { } test_state { stage: \"more\" }", 1);
  ASSERT_EQ(recorder_.tests.size(), 4u);
  EXPECT_EQ(recorder_.tests[0].outputs.size(), 2u);
  EXPECT_EQ(recorder_.tests[1].net, 1);
  EXPECT_EQ(recorder_.tests[1].outputs.size(), 2u + 4 * 3);
  // Stages given to the program are the train net's alone.
  Train("display: 1 test_iter: 1 test_interval: 1", 1, {.stages = {"more"}});
  EXPECT_EQ(recorder_.displays[0].outputs.size(), 1u + 7 * 3);
  EXPECT_EQ(recorder_.tests[0].outputs.size(), 2u);
  // Stages that no rule names are told in their place.
  Train("test_iter: 1 test_interval: 1\ntrain_state { stage: \"x\" }\ntest_state { stage: \"more\" stage: \"mroe\" }",
        1);
  EXPECT_NE(
      recorder_.notices.find("solver.prototxt:9:28: warning: no rule of the net names stage \"mroe\"; did you mean "
                             "\"more\"?"),
      std::string::npos)
      << recorder_.notices;
  EXPECT_NE(recorder_.notices.find("solver.prototxt:8:15: warning: no rule of the net names stage \"x\""),
            std::string::npos);
  EXPECT_EQ(recorder_.notices.find("net.prototxt: warning: no rule"), std::string::npos) << "said twice";
}

}  // namespace
}  // namespace crema
