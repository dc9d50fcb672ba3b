// Workers and coordinators of a training: what each needs and does, what observers see, and snapshots.
#include <fstream>

#include "compiler/compiler.h"
#include "errors.h"
#include "files.h"
#include "graph/program.h"
#include "solver/snapshots/snapshot.h"
#include "solver/training_steps_test.h"

namespace crema {
namespace {

TEST_F(Steps, WorkersNeedNothingButTheTrainNetAndItsData) {
  std::string text = SolverText(R"(snapshot: 2 snapshot_prefix: "/nowhere/at/all" snapshot_diff: true
weights: "absent.caffemodel" test_net: "absent.prototxt" test_iter: 2 test_interval: 2)",
                                20);
  text.replace(text.find("net: "), 4, "train_net:");
  SolverOptions options;
  options.role = Role::kWorker;
  const auto worker = Make(text, options);
  EXPECT_EQ(worker->test_nets(), 0);
  EXPECT_FALSE(std::as_const(worker->net()).parameters()[0].grad.defined());
  TrainingSteps steps(*worker);
  steps.ReadBatches(0, 1, 1);
  for (int i = 0; i < 5; ++i) steps.Train(i, i);
  EXPECT_TRUE(recorder_.snapshots.empty() && recorder_.failed.empty());
  EXPECT_THROW(Make(text), std::runtime_error);
}

TEST_F(Steps, RolesRefuseWhatTheyCannotDo) {
  const auto failure = [this](Role role, SolverOptions options) {
    options.role = role;
    return ThrownBy<UserError>([&] { Make(SolverText("", 5), std::move(options)); });
  };
  const auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(failure(Role::kWorker, {.weights = {"a.caffemodel"}}), "a worker gets its parameters from the coordinator");
  expect(failure(Role::kWorker, {.snapshot = "auto"}), "a worker gets its parameters from the coordinator");
  expect(failure(Role::kCoordinator, {.devices = Devices(2)}), "start a worker for each");
  for (const Role role : {Role::kWorker, Role::kCoordinator}) {
    const std::string plateau =
        ThrownBy<UserError>([&] { MakeAs(role, "lr_policy: \"plateau\" gamma: 0.5 plateau_winsize: 3"); });
    expect(plateau, "which workers do not know of each other");
  }
  const std::string net = ReadFile(folder_ / "net.prototxt");
  folder_.Write("net.prototxt", net +
                                    "layer { name: \"out\" type: \"HDF5Output\" bottom: \"data\" bottom: \"label\" "
                                    "hdf5_output_param { file_name: \"" +
                                    (folder_ / "out.h5") + "\" } }\n");
  for (const Role role : {Role::kWorker, Role::kCoordinator}) {
    expect(ThrownBy<UserError>([&] { MakeAs(role, ""); }),
           "layer \"out\" (HDF5Output) writes what one net makes, but several workers train it");
  }
  folder_.Write("net.prototxt", net);
  MakeAs(Role::kCoordinator, "snapshot_diff: true");
  expect(recorder_.notices, "snapshot_diff has no effect: gradients stay with the workers");
  folder_.Write("net.prototxt", R"(
layer { name: "data" type: "Input" top: "data" top: "label"
        input_param { shape { dim: 2 dim: 3 } shape { dim: 2 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 3 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)");
  for (const Role role : {Role::kWorker, Role::kCoordinator}) expect(failure(role, {}), "train on one machine");
}

// Pages of this process that are in memory, in bytes.
int64_t Resident() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6)) << 10;
  }
  return 0;
}

TEST_F(Steps, ACoordinatorTakesNoMemoryForPasses) {
  std::string net = SharedNet(40000, 2000);
  folder_.Write("net.prototxt", net);
  for (const std::string settings : {"", "iter_size: 2"}) {
    const int64_t before = Resident();
    const auto coordinator = MakeAs(Role::kCoordinator, settings, false);
    TrainingSteps steps(*coordinator);
    steps.SetIteration(3, 7);
    ValuesOf(steps);
    EXPECT_GT(coordinator->net().compiled().program.arena_bytes, size_t{300} << 20);
    EXPECT_FALSE(std::as_const(coordinator->net()).parameters()[0].grad.defined());
    EXPECT_LT(Resident() - before, int64_t{40} << 20);
    const auto worker = MakeAs(Role::kWorker, settings);
    TrainingSteps computes(*worker);
    EXPECT_EQ(ValuesOf(computes), ValuesOf(steps));
  }
  EXPECT_NO_THROW(MakeAs(Role::kCoordinator, "memory_limit: \"20MiB\" recompute: AUTO"));
  EXPECT_THROW(MakeAs(Role::kWorker, "memory_limit: \"20MiB\" recompute: AUTO"), UserError);
}

TEST_F(Steps, ObserversSeeATrainingOfOneSolver) {
  const std::string settings =
      "momentum: 0.9 display: 2 average_loss: 3 snapshot: 4 test_iter: 3 test_interval: 3 lr_policy: \"multistep\" "
      "gamma: 0.5 stepvalue: 2 stepvalue: 5";
  const int last = 9;
  Train(settings, last);
  const Recorder alone = recorder_;
  const std::string model = ReadFile(folder_ / "snap_iter_9.caffemodel");
  // A coordinator does not look how much data its workers have, and the checksum is of the whole.
  const auto state_of_training = [this] {
    SolverState state = LoadState(folder_ / "snap_iter_9.solverstate").state;
    state.clear_state_crc32();
    state.mutable_data_position(0)->clear_epoch_records();
    state.mutable_data_position(0)->clear_batch_size();
    return state.SerializeAsString();
  };
  const std::string state = state_of_training();

  const auto worker = MakeAs(Role::kWorker, settings, true, last);
  TrainingSteps computes(*worker);
  computes.ReadBatches(0, 1, 1);
  const auto coordinator = MakeAs(Role::kCoordinator, settings, true, last);
  TrainingSteps steps(*coordinator);
  EXPECT_EQ(steps.next_step(), 0u);
  steps.Start();
  Floats gradients(static_cast<size_t>(steps.trained_count()));
  for (int i = 0; i < last; ++i) {
    if (i % 3 == 0) {
      EXPECT_TRUE(steps.Test());
    }
    computes.WriteValues(ValuesOf(steps).data());
    const TrainingSteps::StepResult result = computes.Gradients(i, i, gradients.data());
    steps.AddLoss(result.loss);
    if (i % 2 == 0) steps.Display(i, result.outputs, 0.5);
    steps.Update(i, gradients.data());
    steps.EndIteration(i, result.loss, 0.25);
    steps.SetIteration(i + 1, i + 1);
    EXPECT_EQ(steps.next_step(), static_cast<uint64_t>(i + 1));
    if ((i + 1) % 4 == 0) steps.TrySnapshot();
  }
  const TrainingResult result = steps.Finish(false);
  EXPECT_EQ(result.iteration, last);
  EXPECT_FALSE(result.stopped_early);

  EXPECT_EQ(recorder_.order, alone.order);
  ASSERT_EQ(recorder_.displays.size(), alone.displays.size());
  for (size_t i = 0; i < alone.displays.size(); ++i) {
    EXPECT_EQ(recorder_.displays[i].iteration, alone.displays[i].iteration);
    EXPECT_EQ(recorder_.displays[i].smoothed_loss, alone.displays[i].smoothed_loss);
    EXPECT_EQ(recorder_.displays[i].learning_rate, alone.displays[i].learning_rate);
    EXPECT_EQ(recorder_.displays[i].iterations, alone.displays[i].iterations);
    ASSERT_EQ(recorder_.displays[i].outputs.size(), alone.displays[i].outputs.size());
    EXPECT_EQ(recorder_.displays[i].outputs[0].name, "loss");
    EXPECT_EQ(recorder_.displays[i].outputs[0].value, alone.displays[i].outputs[0].value);
  }
  for (int i = 0; i < last; ++i) EXPECT_EQ(recorder_.iterations[i].loss, alone.iterations[i].loss);
  ASSERT_EQ(recorder_.steps.size(), alone.steps.size());
  EXPECT_EQ(recorder_.steps[1].iteration, alone.steps[1].iteration);
  ASSERT_EQ(recorder_.tests.size(), alone.tests.size());
  for (size_t i = 0; i < alone.tests.size(); ++i) {
    EXPECT_EQ(recorder_.tests[i].outputs[1].value, alone.tests[i].outputs[1].value);
  }
  EXPECT_TRUE(ReadFile(folder_ / "snap_iter_9.caffemodel") == model);
  EXPECT_TRUE(state_of_training() == state);
}

TEST_F(Steps, FinishesWithASnapshotWhenStopped) {
  const auto coordinator = MakeAs(Role::kCoordinator, "snapshot_after_train: false test_iter: 1 test_interval: 1");
  TrainingSteps steps(*coordinator);
  steps.Start();
  steps.SetIteration(3, 12);
  const TrainingResult result = steps.Finish(true);
  EXPECT_TRUE(result.stopped_early);
  EXPECT_EQ(result.last_snapshot, folder_ / "snap_iter_3.solverstate");
  EXPECT_EQ(recorder_.order, "bse");
}

TEST_F(Steps, SnapshotsKeepTheStateOfTheCluster) {
  ClusterState cluster;
  cluster.set_job(0x1234567890abcdef);
  cluster.set_version(17);
  cluster.set_next_step(12);
  StepRange* range = cluster.add_unused();
  range->set_first(9);
  range->set_count(2);
  for (int i = 0; i < 1000; ++i) cluster.add_velocity(0.25f * static_cast<float>(i));
  const std::string path = folder_ / "snap_iter_3.solverstate";
  {
    const auto coordinator = MakeAs(Role::kCoordinator, "iter_size: 2 momentum: 0.9");
    TrainingSteps steps(*coordinator);
    EXPECT_FALSE(steps.restored_cluster_state());
    steps.SetIteration(3, 12);
    steps.set_cluster_state([&cluster] { return cluster; });
    steps.TrySnapshot();
    ASSERT_EQ(recorder_.snapshots.size(), 1u);
  }
  // The checksum is the end of the file, and covers the cluster's part.
  SolverState check;
  check.set_state_crc32(LoadState(path).state.state_crc32());
  EXPECT_TRUE(ReadFile(path).ends_with(check.SerializeAsString()));
  std::string damaged = ReadFile(path);
  const std::string velocity = cluster.SerializeAsString();
  const size_t at = damaged.find(velocity);
  ASSERT_NE(at, std::string::npos);
  damaged[at + velocity.size() - 1] ^= 1;
  folder_.Write("damaged.solverstate", damaged);
  const std::string message = ThrownBy<UserError>([&] { LoadState(folder_ / "damaged.solverstate"); });
  EXPECT_NE(message.find("checksum does not fit"), std::string::npos) << message;

  const auto resumed = MakeAs(Role::kCoordinator, "iter_size: 2 momentum: 0.9", false, 20, path);
  TrainingSteps steps(*resumed);
  ASSERT_TRUE(steps.restored_cluster_state());
  EXPECT_EQ(steps.restored_cluster_state()->SerializeAsString(), cluster.SerializeAsString());
  EXPECT_EQ(resumed->iteration(), 3);
  EXPECT_EQ(steps.next_step(), 12u);

  // One alone goes on behind all that was handed out.
  const auto alone = MakeAs(Role::kAlone, "iter_size: 2 momentum: 0.9", false, 5, path);
  EXPECT_EQ(alone->net().data_positions()[0].second, 7u * 24);
  alone->Train();
  EXPECT_EQ(recorder_.notices, "");
  EXPECT_EQ(alone->iteration(), 5);
  EXPECT_FALSE(LoadState(folder_ / "snap_iter_5.solverstate").state.has_cluster());
}

}  // namespace
}  // namespace crema
