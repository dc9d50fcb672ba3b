#include "distributed/training/lost_rounds.h"

#include <gtest/gtest.h>

namespace crema {
namespace {

JournalReplay ReplayOf(uint64_t snapshot, uint64_t last) {
  JournalReplay replay;
  replay.version = snapshot;
  for (uint64_t version = snapshot + 1; version <= last; ++version) {
    replay.lost.emplace_back().set_version(version);
  }
  return replay;
}

DistributedParameter WithEndpoint() {
  DistributedParameter settings;
  settings.set_endpoint("tcp://*:5555");
  return settings;
}

TEST(LostRounds, AreWithWorkersOfOtherMachines) {
  EXPECT_EQ(WhyNobodyHasRounds(WithEndpoint(), {}, false), "");
  EXPECT_EQ(WhyNobodyHasRounds(WithEndpoint(), {}, true), "workers do not know the solver's history");
  EXPECT_EQ(WhyNobodyHasRounds({}, {}, false), "no worker is left");
}

TEST(LostRounds, AreWithoutTheOuterMomentumWhereNoStateHasIt) {
  DistributedParameter settings = WithEndpoint();
  settings.set_outer_momentum(0.9f);
  EXPECT_EQ(WhyNobodyHasRounds(settings, {}, false), "workers do not know the outer momentum");
  EXPECT_EQ(WhyNobodyHasRounds(settings, {.velocity = 8}, false), "");
}

TEST(LostRounds, StayWhereWorkersMayHaveThem) {
  JournalReplay replay = ReplayOf(3, 5);
  EXPECT_EQ(GiveUpRounds("", &replay), "");
  EXPECT_EQ(replay.lost.size(), 2u);
}

TEST(LostRounds, AreGivenUpForAReason) {
  JournalReplay replay = ReplayOf(3, 5);
  EXPECT_EQ(GiveUpRounds("no worker is left", &replay),
            "rounds 4 to 5 are lost and will be trained again: the snapshot does not have them, and no worker is left");
  EXPECT_TRUE(replay.lost.empty());
  EXPECT_EQ(GiveUpRounds("no worker is left", &replay), "");
}

TEST(LostRounds, AreGivenUpBehindTheJournal) {
  JournalReplay replay = ReplayOf(3, 3);
  replay.out_of_reach = 6;
  const std::string told =
      "rounds 4 to 6 are lost and will be trained again: the snapshot does not have them, and the journal begins "
      "behind it";
  EXPECT_EQ(GiveUpRounds("", &replay), told);
  EXPECT_EQ(GiveUpRounds("no worker is left", &replay), told);
}

}  // namespace
}  // namespace crema
