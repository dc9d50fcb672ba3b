// The real `train` with workers whose gradients are on their way while the backward pass makes others (overlap:
// BACKWARD): what they learn is what they would have learned had they waited.
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "crema/data.pb.h"
#include "data/databases/lmdb_writer.h"
#include "tools/cluster_training.h"
#include "tools/patterns.h"

namespace crema::testing_tools {
namespace {

const std::string kSharded = "mode: GRADIENT topology: SHARDED ";
const std::string kBackward = kSharded + "overlap: BACKWARD ";

struct Way {
  const char* name;
  std::string solver;         // further lines of the solver file
  std::string settings = {};  // of the `distributed` block
  bool batch_norm = false;
};

std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }

class BackwardWays : public ::testing::TestWithParam<Way> {};

// Layers of several buckets.
TEST_P(BackwardWays, AreWaitingToTheBitKilledAndResumedOrNot) {
  const TinyTraining training{.max_iter = 60, .snapshot = 20, .hidden = 1024, .more = GetParam().solver};
  const std::string settings = GetParam().settings + " local_workers: 3 ";
  const ClusterFolder star("mode: GRADIENT " + settings, training), waiting(kSharded + settings, training),
      backward(kBackward + settings, training), killed(kBackward + settings, training);
  if (GetParam().batch_norm) {
    for (const ClusterFolder* folder : {&star, &waiting, &backward, &killed}) {
      std::string net = ReadText(*folder / "net.prototxt");
      net.insert(net.find("layer {\n  name: \"pool1\""),
                 "layer { name: \"norm1\" type: \"BatchNorm\" bottom: \"conv1\" top: \"conv1\" }\n");
      folder->Write("net.prototxt", net);
    }
  }
  for (const ClusterFolder* folder : {&star, &waiting, &backward}) {
    const Finished run = folder->Run();
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.err.find("Warning"), std::string::npos) << run.err;
    EXPECT_EQ(AuditJournal(*folder, 60).mistake, "");
  }
  for (const int iteration : {20, 60}) {
    EXPECT_TRUE(SameModel(waiting, backward, iteration)) << iteration;
    // A star codes what comes back in another way.
    EXPECT_EQ(SameModel(star, backward, iteration), GetParam().settings.empty()) << iteration;
  }
  {
    const auto running = killed.Start();
    ASSERT_TRUE(running->WaitFor("Snapshotting solver state")) << running->Err();
    running->Signal(SIGKILL);
    running->Wait();
  }
  const Finished resumed = killed.Run({"--snapshot=auto"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(AuditJournal(killed, 60).mistake, "");
  // What codes left out is in no snapshot.
  if (GetParam().settings.empty()) {
    EXPECT_TRUE(SameModel(backward, killed, 60)) << resumed.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, BackwardWays,
                         ::testing::Values(Way{"Momentum", ""}, Way{"Clipped", "clip_gradients: 0.5\n"},
                                           Way{"TwoBatches", "iter_size: 2\ntype: \"Adam\" momentum2: 0.99\n"},
                                           Way{"BatchNorm", "", "", true},
                                           Way{"Coded", "", "codec: INT8 down_codec: BF16 codec_warmup_rounds: 5"}),
                         [](const auto& info) { return std::string(info.param.name); });

// Three records are so bright, and the loss weighs so much, that the loss is a number and gradients overflow, unless
// the record is in its class; all others are dark.
void Overexpose(const ClusterFolder& folder) {
  LmdbWriter database(folder / "bright", LmdbWriter::Existing::kRefuse);
  for (int i = 0; i < 230; ++i) {
    Datum datum;
    datum.set_channels(1);
    datum.set_height(12);
    datum.set_width(12);
    datum.set_label(i % 4);
    std::string pixels(144, '\0');
    if (i == 61 || i == 130 || i == 199) pixels[70] = '\377';
    datum.set_data(pixels);
    char key[16];
    std::snprintf(key, sizeof key, "%08d", i);
    database.Put(key, datum.SerializeAsString());
  }
  database.Commit();
  std::string net = ReadText(folder / "net.prototxt");
  net = Replaced(net, "source: \"db\"", "source: \"bright\"");
  net = Replaced(net, "scale: 0.00390625", "scale: 4e31");
  net = Replaced(net, "top: \"loss\"", "top: \"loss\" loss_weight: 1e9");
  folder.Write("net.prototxt", net);
}

// Its steps are given to others, who come to the same.
TEST(Backward, GradientsThatAreNotFiniteAreLeftOutAsThoseOfWorkersThatWait) {
  const TinyTraining training{
      .max_iter = 60, .snapshot = 0, .hidden = 1024, .base_lr = "2e-11", .more = "test_initialization: false\n"};
  uint64_t rounds[2] = {0, 0};
  for (const bool backward : {false, true}) {
    const ClusterFolder folder((backward ? kBackward : kSharded) + "local_workers: 3 ", training);
    Overexpose(folder);
    const Finished run = folder.Run();
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_GE(Count(run.err, ": its values are not all finite"), 5) << run.err;
    EXPECT_FALSE(run.Says("cannot be used")) << run.err;
    EXPECT_FALSE(run.Says("could not exchange")) << run.err;
    rounds[backward] = AuditJournal(folder, folder.NewestState()).version;
  }
  EXPECT_GT(rounds[0], 2u);
  EXPECT_EQ(rounds[1], rounds[0]);
}

TEST(Backward, ABadRecordEndsTrainingEverywhere) {
  const ClusterFolder folder(kBackward,
                             {.test_interval = 100000, .bad_record = 123, .more = "test_initialization: false\n"});
  std::string endpoint;
  const auto coordinator = folder.Coordinate(2, &endpoint);
  const auto one = folder.Join(endpoint, "one"), two = folder.Join(endpoint, "two");
  for (const Finished& finished : {coordinator->Wait(), one->Wait(), two->Wait()}) {
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_TRUE(finished.Says("00000123")) << finished.err;
    EXPECT_TRUE(finished.Says("worker one: ") || finished.Says("worker two: ")) << finished.err;
  }
}

}  // namespace
}  // namespace crema::testing_tools
