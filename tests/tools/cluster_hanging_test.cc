// Workers that hang where no protocol reaches them: in a file that does not answer.
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>

#include "tools/cluster_training.h"
#include "tools/colour_net.h"

namespace crema::testing_tools {
namespace {

// A training from a list of images; `endless_` is one that nobody ever writes, though it can be opened.
class ClusterHanging : public testing::Test {
 protected:
  void SetUp() override {
    std::string list;
    for (int i = 0; i < 8; ++i) {
      const std::string name = std::to_string(i) + ".png";
      WritePng(folder_, "images/" + name, Coloured(6, 6, 20 * i, 100, 30));
      list += name + " " + std::to_string(i % 2) + "\n";
    }
    folder_.Write("list.txt", list);
    folder_.Write("net.prototxt",
                  R"(layer { name: "data" type: "ImageData" top: "data" top: "label"
  image_data_param { source: "list.txt" root_folder: "images/" batch_size: 4 } }
layer { name: "score" type: "InnerProduct" bottom: "data" top: "score"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }
)");
    folder_.Write("solver.prototxt",
                  "net: \"net.prototxt\" base_lr: 0.0001 lr_policy: \"fixed\" max_iter: 1000000 display: 10\n"
                  "snapshot_prefix: \"tiny\" random_seed: 5\n" +
                      Distributed("local_steps: 5 min_workers: 1 join_timeout_ms: 6000 dead_ms: 20000"));
  }

  std::unique_ptr<Running> JoinAndHang() {
    auto worker = folder_.Join(endpoint_, "hangs", {"--data=" + endless_.path()});
    EXPECT_TRUE(worker->WaitForOpening(endless_.path())) << worker->Err();
    return worker;
  }

  std::unique_ptr<Running> JoinSoundly() {
    auto worker = folder_.Join(endpoint_, "sound");
    EXPECT_TRUE(worker->WaitFor("Joined in place 0")) << worker->Err();
    return worker;
  }

  const ClusterFolder folder_{""};
  std::string endpoint_;
  const EndlessFile endless_;
};

TEST_F(ClusterHanging, AWorkerThatIsAskedToStopStops) {
  const auto coordinator = folder_.Coordinate(2, &endpoint_);
  const auto sound = JoinSoundly();
  for (const int signal : {SIGTERM, SIGINT}) {
    const auto hangs = JoinAndHang();
    hangs->Signal(signal);
    const Finished left = hangs->Wait();
    EXPECT_EQ(left.exit_code, 0) << left.signal << "\n" << left.err;
    EXPECT_TRUE(left.Says("does not come to an end, and is not waited for")) << left.err;
    EXPECT_TRUE(left.Says("Done: stopped (0 rounds, 0 examples)")) << left.err;
  }
  ASSERT_TRUE(coordinator->WaitFor("worker hangs (place 1) left: stopped", 2)) << coordinator->Err();
  // It did not wait for it for longer than it says.
  ASSERT_TRUE(coordinator->WaitFor(", lr = ", 3)) << coordinator->Err();
  EXPECT_TRUE(coordinator->Err().find("training begins with 1 of 2 expected workers") != std::string::npos);
  coordinator->Signal(SIGINT);
  EXPECT_EQ(coordinator->Wait().exit_code, 0);
  EXPECT_EQ(sound->Wait().exit_code, 0) << sound->Err();
}

TEST_F(ClusterHanging, TheEndOfTrainingIsItsEnd) {
  const auto coordinator = folder_.Coordinate(2, &endpoint_);
  const auto sound = JoinSoundly(), hangs = JoinAndHang();
  ASSERT_TRUE(coordinator->WaitFor(", lr = ", 3)) << coordinator->Err();
  coordinator->Signal(SIGINT);
  const Finished run = coordinator->Wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_FALSE(run.Says("when they were told of the end")) << "it answers all the same: " << run.err;
  const Finished left = hangs->Wait();
  EXPECT_EQ(left.exit_code, 0) << left.signal << "\n" << left.err;
  EXPECT_TRUE(left.Says("Done: stopped (0 rounds, 0 examples)")) << left.err;
  EXPECT_EQ(sound->Wait().exit_code, 0) << sound->Err();
}

TEST_F(ClusterHanging, TheCoordinatorsFailureIsItsOwn) {
  const auto coordinator = folder_.Coordinate(1, &endpoint_);
  const auto hangs = JoinAndHang();
  const Finished run = coordinator->Wait();
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_TRUE(run.Says("only 0 of at least 1 workers (min_workers) were there")) << run.err;
  const Finished left = hangs->Wait();
  EXPECT_EQ(left.exit_code, 1) << left.signal << "\n" << left.err;
  EXPECT_TRUE(left.Says("training at " + endpoint_ + " failed: only 0 of at least 1 workers")) << left.err;
}

}  // namespace
}  // namespace crema::testing_tools
