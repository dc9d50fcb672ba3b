// Steps that are decided on from outside.
#include "solver/training_steps_test.h"

#include "errors.h"
#include "near.h"

namespace crema {
namespace {

TEST_F(Steps, AreThoseOfASolver) {
  for (const std::string settings :
       {"momentum: 0.9 weight_decay: 0.01", "type: \"Adam\" base_lr: 0.01 momentum: 0.9 delta: 0.001",
        "momentum: 0.9 iter_size: 2 clip_gradients: 0.2 lr_policy: \"multistep\" gamma: 0.5 stepvalue: 3"}) {
    for (const bool exchanges : {false, true}) ExpectTrainsAsAlone(settings, exchanges);
  }
  folder_.Write("net.prototxt", kManyKinds);
  ExpectTrainsAsAlone("momentum: 0.9 clip_gradients: 0.5 iter_size: 3", false);
}

TEST_F(Steps, GradientsAndUpdateAreAStep) {
  for (const std::string settings :
       {"momentum: 0.9 weight_decay: 0.01", "type: \"Adam\" base_lr: 0.01 momentum: 0.9 delta: 0.001",
        "momentum: 0.9 iter_size: 2 clip_gradients: 0.2", "type: \"AdaGrad\" iter_size: 4"}) {
    ExpectUpdatesAsAlone(settings, 0);
  }
  ExpectUpdatesAsAlone("momentum: 0.9 iter_size: 3", 1e-6);
  // Weights in other forms than the worker's.
  folder_.Write("net.prototxt", kManyKinds);
  ExpectUpdatesAsAlone("type: \"Adam\" base_lr: 0.01 momentum: 0.9 delta: 0.001", 0);
  ExpectUpdatesAsAlone("momentum: 0.9 clip_gradients: 0.5", 1e-6);
}

TEST_F(Steps, DependOnTheStepNotOnWhoComputesIt) {
  const std::string settings = "momentum: 0.9 iter_size: 2";
  const auto first = MakeAs(Role::kWorker, settings, true), second = MakeAs(Role::kWorker, settings, true);
  TrainingSteps all(*first), some(*second);
  all.ReadBatches(0, 1, 1);
  std::vector<Floats> gradients;
  for (int step = 0; step < 8; ++step) gradients.push_back(GradientsOf(all, 0, step));
  EXPECT_NE(gradients[0], gradients[1]);
  some.ReadBatches(2, 2, 4);
  for (const int step : {2, 3, 6, 7}) EXPECT_EQ(GradientsOf(some, 0, step), gradients[step]) << step;
  some.ReadBatches(5, 1, 1);
  EXPECT_EQ(GradientsOf(some, 3, 5), gradients[5]);
}

// With overlap: BACKWARD they are told of from the last layers on, and what was told of stays.
TEST_F(Steps, GradientsComeFromTheLastOnesOn) {
  const std::string overlap = " distributed { mode: GRADIENT topology: SHARDED overlap: BACKWARD local_workers: 2 }";
  for (const char* net : {kSmallNet, kManyKinds}) {
    folder_.Write("net.prototxt", net);
    for (const std::string settings : {"momentum: 0.9", "momentum: 0.9 iter_size: 2", "iter_size: 3"}) {
      SCOPED_TRACE(settings);
      const auto waiting = MakeAs(Role::kWorker, settings, true),
                 early = MakeAs(Role::kWorker, settings + overlap, true);
      TrainingSteps all(*waiting), some(*early);
      const auto trained = static_cast<size_t>(some.trained_count());
      const auto statistics = [&](const TrainingSteps& steps) {
        Floats values(static_cast<size_t>(steps.value_count()) - trained);
        steps.ReadStatistics(values.data());
        return values;
      };
      all.ReadBatches(0, 1, 1);
      some.ReadBatches(0, 1, 1);
      for (int step = 0; step < 3; ++step) {
        Floats got(trained, NAN), told(trained, NAN), told_statistics;
        std::vector<int64_t> firsts;
        some.Gradients(step, step, got.data(), [&](int64_t first) {
          EXPECT_LT(first, firsts.empty() ? some.trained_count() : firsts.back());
          for (size_t i = first; i < (firsts.empty() ? trained : firsts.back()); ++i) told[i] = got[i];
          if (firsts.empty()) told_statistics = statistics(some);
          firsts.push_back(first);
        });
        EXPECT_GE(firsts.size(), 2u) << "a layer at a time";
        EXPECT_EQ(firsts.back(), 0);
        EXPECT_EQ(got, told) << "what was told of has changed";
        EXPECT_EQ(got, GradientsOf(all, step, step));
        EXPECT_EQ(told_statistics, statistics(all));
        Floats values = ValuesOf(some);
        EXPECT_EQ(statistics(some), Floats(values.begin() + static_cast<std::ptrdiff_t>(trained), values.end()));
      }
      // Where they are not known before the end nobody is told.
      Floats got(trained);
      all.Gradients(3, 3, got.data(), [](int64_t) { ADD_FAILURE(); });
      EXPECT_EQ(got, GradientsOf(some, 3, 3));
    }
  }
}

TEST_F(Steps, CarryRecurrentStatesToTheNextStepOnly) {
  folder_.Write("net.prototxt", kRecurrentNet);
  const std::string tests = " test_iter: 1 test_interval: 100";
  ExpectTrainsAsAlone("momentum: 0.9" + tests, false);
  const auto first = MakeAs(Role::kWorker, tests, true), second = MakeAs(Role::kWorker, tests, true);
  TrainingSteps all(*first), some(*second);
  all.ReadBatches(0, 6, 6);
  std::vector<Floats> gradients;
  for (int step = 0; step < 6; ++step) gradients.push_back(GradientsOf(all, 0, step));
  some.ReadBatches(4, 1, 1);
  const Floats anew = GradientsOf(some, 0, 4);
  EXPECT_NE(anew, gradients[4]);
  some.ReadBatches(1, 1, 1);
  GradientsOf(some, 0, 1);
  some.ReadBatches(4, 2, 2);
  EXPECT_EQ(GradientsOf(some, 0, 4), anew);
  EXPECT_NE(GradientsOf(some, 0, 5), gradients[5]);  // goes on from there
  some.ReadBatches(0, 2, 2);
  EXPECT_EQ(GradientsOf(some, 0, 0), gradients[0]);
  EXPECT_EQ(GradientsOf(some, 0, 1), gradients[1]);
}

class TwoWorkers : public Steps, public ::testing::WithParamInterface<std::string> {};

INSTANTIATE_TEST_SUITE_P(Nets, TwoWorkers, ::testing::Values(SharedNet(6), std::string(kRecurrentNet)),
                         [](const auto& info) { return info.index == 0 ? "Ordinary" : "Recurrent"; });

TEST_P(TwoWorkers, AreTwoRanks) {
  folder_.Write("net.prototxt", GetParam());
  const std::string settings = "momentum: 0.9 clip_gradients: 0.5 test_iter: 1 test_interval: 100";
  const Result ranks = Run(2, settings, 6);
  const auto coordinator = MakeAs(Role::kCoordinator, settings, true);
  TrainingSteps updates(*coordinator);
  std::vector<std::unique_ptr<Solver>> solvers;
  std::vector<std::unique_ptr<TrainingSteps>> workers;
  for (uint64_t w = 0; w < 2; ++w) {
    solvers.push_back(MakeAs(Role::kWorker, settings, true));
    workers.push_back(std::make_unique<TrainingSteps>(*solvers[w]));
    workers[w]->ReadBatches(w, 1, 2);
  }
  for (int i = 0; i < 6; ++i) {
    Floats mean(static_cast<size_t>(updates.trained_count()));
    for (uint64_t w = 0; w < 2; ++w) {
      workers[w]->WriteValues(ValuesOf(updates).data());
      const Floats gradients = GradientsOf(*workers[w], i, 2 * i + w);
      for (size_t k = 0; k < mean.size(); ++k) mean[k] += gradients[k] / 2;
    }
    updates.Update(i, mean.data());
  }
  ExpectNear(ranks.parameters, Values(coordinator->net()), 1e-6, "parameters");
}

TEST_F(Steps, BlocksAreWhatTrainingChanges) {
  folder_.Write("net.prototxt", kManyKinds);
  const auto solver = MakeAs(Role::kWorker, "type: \"Adam\" base_lr: 0.01 momentum: 0.9 delta: 0.001");
  TrainingSteps steps(*solver);
  std::string names;
  int64_t offset = 0, trained = 0;
  for (const TrainingSteps::Block& block : steps.blocks()) {
    const bool statistics = block.kind == TrainingSteps::Kind::kStatistics;
    names += block.name + (statistics ? std::to_string(block.group) + std::to_string(block.statistics_blob) : "") + " ";
    EXPECT_EQ(block.group >= 0, statistics);
    EXPECT_EQ(block.offset, offset);
    EXPECT_EQ(block.count, block.shape.count());
    EXPECT_EQ(std::as_const(solver->net()).parameters()[block.parameter].name(), block.name);
    offset += block.count;
    if (!statistics) trained = offset;
  }
  EXPECT_EQ(names,
            "c1[0] s1[0] s1[1] c2[1] c3[0] n3[3] n3[4] ip[0] ip[1] "
            "n1[0]00 n1[1]01 n1[2]02 n3[0]10 n3[1]11 n3[2]12 ");
  EXPECT_EQ(steps.value_count(), offset);
  EXPECT_EQ(steps.trained_count(), trained);
  EXPECT_EQ(steps.history_count(), 2 * trained);

  const Floats all_before = Values(solver->net()), before = ValuesOf(steps);
  steps.ReadBatches(0, 1, 1);
  steps.Train(0, 0);
  const Floats all_after = Values(solver->net()), after = ValuesOf(steps), history = HistoryOf(steps);
  for (const TrainingSteps::Block& block : steps.blocks()) {
    const auto begin = before.begin() + block.offset;
    EXPECT_FALSE(std::equal(begin, begin + block.count, after.begin() + block.offset)) << block.name;
    const Parameter& parameter = std::as_const(solver->net()).parameters()[block.parameter];
    Floats plain(static_cast<size_t>(block.count));
    parameter.CopyDataTo(plain.data());
    EXPECT_TRUE(std::equal(plain.begin(), plain.end(), after.begin() + block.offset)) << block.name;
  }
  // Nothing else has changed.
  steps.WriteValues(before.data());
  EXPECT_EQ(Values(solver->net()), all_before);
  steps.ClearHistory();
  EXPECT_EQ(HistoryOf(steps), Floats(history.size()));
  steps.ReadBatches(0, 1, 1);
  steps.Train(0, 0);
  EXPECT_EQ(Values(solver->net()), all_after);
  Floats other(history.size());
  for (size_t i = 0; i < other.size(); ++i) other[i] = before[i % before.size()];
  steps.WriteHistory(other.data());
  EXPECT_EQ(HistoryOf(steps), other);
  steps.WriteHistory(history.data());
  EXPECT_EQ(HistoryOf(steps), history);
}

TEST_F(Steps, SharedStatisticsAreOneGroup) {
  const auto shared = [](const std::string& text, const std::string& names) {
    std::string net = text;
    for (const std::string layer : {"\"n1\"", "\"n3\""}) {
      const std::string type = layer + " type: \"BatchNorm\"";
      net.insert(net.find(type) + type.size(), names);
    }
    net.replace(net.find("num_output: 20"), 14, "num_output: 18");
    return net;
  };
  folder_.Write("net.prototxt", shared(kManyKinds,
                                       " param { name: \"m\" lr_mult: 0 } param { name: \"v\" lr_mult: 0 } param { "
                                       "name: \"w\" lr_mult: 0 }"));
  const auto solver = MakeAs(Role::kWorker, "");
  const TrainingSteps steps(*solver);
  EXPECT_EQ(steps.blocks().back().name, "n1[2]");
  EXPECT_EQ(steps.blocks().back().group, 0);
  folder_.Write("net.prototxt", shared(kManyKinds, " param { name: \"m\" lr_mult: 0 }"));
  const auto partly = MakeAs(Role::kWorker, "");
  const std::string message = ThrownBy<UserError>([&] { TrainingSteps refused(*partly); });
  EXPECT_NE(message.find("\"n1\" and \"n3\" share some of their statistics but not all"), std::string::npos) << message;
}

TEST_F(Steps, RefuseStatisticsThatAreNoSums) {
  std::string net = kManyKinds;
  const std::string type = "\"n3\" type: \"BatchNorm\"";
  net.replace(net.find(type), type.size(), "\"n3\" type: \"BN\"");
  folder_.Write("net.prototxt", net);
  const auto worker = MakeAs(Role::kWorker, "");
  const std::string message = ThrownBy<UserError>([&] { TrainingSteps refused(*worker); });
  EXPECT_NE(message.find("the running statistics of layer \"n3\" (BN) cannot be brought together"), std::string::npos)
      << message;
}

TEST_F(Steps, StopBeforeAnUpdateByNumbersThatAreNotFinite) {
  for (const std::string settings : {"", "iter_size: 2 clip_gradients: 1"}) {
    const auto worker = MakeAs(Role::kWorker, settings, !settings.empty());
    TrainingSteps steps(*worker);
    const Floats good = ValuesOf(steps), history = HistoryOf(steps);
    Floats bad = good;
    bad[3] = INFINITY;
    steps.WriteValues(bad.data());
    steps.ReadBatches(0, 1, 1);
    const std::string message = ThrownBy<NotFinite>([&] { steps.Train(7, 0); });
    EXPECT_NE(message.find("iteration 7: the loss is"), std::string::npos) << message;
    EXPECT_NE(message.find("parameter ip1[0]"), std::string::npos) << message;
    EXPECT_EQ(ValuesOf(steps), bad);
    EXPECT_EQ(HistoryOf(steps), history);
    // And goes on from others.
    steps.WriteValues(good.data());
    steps.ReadBatches(0, 1, 1);
    EXPECT_TRUE(std::isfinite(steps.Train(7, 0).loss));
  }
  const auto coordinator = MakeAs(Role::kCoordinator, "clip_gradients: 1", true);
  TrainingSteps steps(*coordinator);
  const Floats before = ValuesOf(steps);
  Floats gradients(static_cast<size_t>(steps.trained_count()), 0.1f);
  gradients[5] = NAN;
  const std::string message = ThrownBy<NotFinite>([&] { steps.Update(4, gradients.data()); });
  EXPECT_NE(message.find("iteration 4: the norm of the gradients is"), std::string::npos) << message;
  EXPECT_EQ(message.find("layer output"), std::string::npos) << message;
  EXPECT_EQ(ValuesOf(steps), before);
}

}  // namespace
}  // namespace crema
