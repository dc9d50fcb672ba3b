// A coordinator that was started again, whose journal knows more than its snapshot.
#include <gtest/gtest.h>

#include <tuple>

#include "distributed/coordinator_fixture.h"

namespace crema {
namespace {

class Recovery : public CoordinatorTest {
 protected:
  // After `rounds` rounds of the members 1 and 2, who had the first places, since the snapshot of the beginning.
  CoordinatorStart After(uint64_t rounds, uint64_t generation = 2) {
    options_.expected_workers = options_.min_workers = 2;
    CoordinatorStart start;
    start.epoch = 2;
    states_.assign(1, ParametersOf({}, kWords));
    Tally tally;
    for (uint64_t version = 1; version <= rounds; ++version) {
      JournalRecord::Commit& commit = start.lost.emplace_back();
      commit.set_version(version);
      commit.set_iteration(10 * version);
      commit.set_generation(generation);
      for (uint32_t slot = 0; slot < 2; ++slot) {
        const Steps steps = StepsIn(version, slot);
        tally.Add(steps);
        JournalRecord::Commit::Share& share = *commit.add_share();
        share.set_member(slot + 1);
        share.set_slot(slot);
        share.mutable_steps()->set_first(steps.first);
        share.mutable_steps()->set_count(steps.count);
      }
      states_.push_back(ParametersOf(tally, kWords));
      commit.set_digest(DigestOf(*states_.back()));
    }
    return start;
  }

  static Steps StepsIn(uint64_t version, uint32_t slot) { return {20 * (version - 1) + 10 * slot, 10}; }

  // One that was a member before, has the parameters of `version` and is at the lease of the round behind it.
  Peer Return(uint32_t slot, uint64_t version) {
    const uint64_t number = slot + 1;
    Peer peer{std::string(1, static_cast<char>('a' + slot)), number, 1000 + number, 0, 0};
    ClusterMessage message = HelloOf(peer);
    Hello& hello = *message.mutable_hello();
    hello.set_slot(slot);
    hello.set_version(version);
    hello.set_digest(DigestOf(*states_[version]));
    const Steps steps = StepsIn(version + 1, slot);
    hello.mutable_lease()->set_serial(LeaseOf(slot));
    hello.mutable_lease()->mutable_steps()->set_first(steps.first);
    hello.mutable_lease()->mutable_steps()->set_count(steps.count);
    for (const Outgoing& outgoing : Say(peer, message)) {
      if (outgoing.message.has_welcome()) peer.member = outgoing.message.member();
    }
    EXPECT_NE(peer.member, 0u);
    ClusterMessage attach;
    attach.mutable_attach()->set_incarnation(peer.incarnation);
    Say(peer, attach, Lane::kBulk);
    return peer;
  }
  static uint64_t LeaseOf(uint32_t slot) { return 500 + slot; }

  void Donate(Peer& peer, uint64_t version) {
    ClusterMessage push;
    push.mutable_push()->set_id(900);
    push.mutable_push()->set_state(true);
    push.mutable_push()->set_version(version);
    push.mutable_push()->set_digest(DigestOf(*states_[version]));
    Say(peer, push);
    SendValues(peer, 900, states_[version]);
  }

  // For so long, in which these say that they are alive.
  void Wait(Milliseconds time, std::vector<Peer*> peers) {
    for (const Milliseconds end = now_ + time; now_ < end; now_ += 1000) {
      for (Peer* peer : peers) Say(*peer, Beat());
      coordinator_->OnTick(now_);
    }
  }

  std::vector<Payload> states_;  // by version
};

TEST_F(Recovery, TakesALostRoundBackFromAWorkerAndFromNobodyElse) {
  Tally tally;
  tally.Add({0, 10});
  const Payload state = ParametersOf(tally, kWords);
  CoordinatorStart start;
  start.epoch = 2;
  start.lost.resize(1);
  start.lost[0].set_version(1);
  start.lost[0].set_iteration(10);
  start.lost[0].set_digest(DigestOf(*state));
  start.lost[0].add_share()->mutable_steps()->set_count(10);
  start.lost[0].mutable_share(0)->mutable_steps()->set_first(0);
  Start(std::move(start));
  EXPECT_EQ(journal_.records.back().start().version(), 1u);  // counts until it is given up
  const auto hello = [&](Peer& peer, uint64_t digest) {
    ClusterMessage message = HelloOf(peer);
    message.mutable_hello()->set_version(1);
    message.mutable_hello()->set_digest(digest);
    for (const Outgoing& outgoing : Say(peer, message)) {
      if (outgoing.message.has_welcome()) peer.member = outgoing.message.member();
    }
    ClusterMessage attach;
    attach.mutable_attach()->set_incarnation(peer.incarnation);
    Say(peer, attach, Lane::kBulk);
    return WorkOf(peer);
  };
  Peer liar{"a", 1, 1, 0, 0}, holder{"b", 2, 2, 0, 0};
  EXPECT_FALSE(hello(liar, 5).wanted());
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kRecovering);
  EXPECT_TRUE(hello(holder, DigestOf(*state)).wanted());
  ClusterMessage push;
  push.mutable_push()->set_id(1);
  push.mutable_push()->set_state(true);
  push.mutable_push()->set_version(1);
  push.mutable_push()->set_digest(DigestOf(*state));
  Say(liar, push);
  SendValues(liar, 1, state);
  EXPECT_EQ(coordinator_->version(), 0u);
  Say(holder, push);
  SendValues(holder, 1, state);
  EXPECT_EQ(coordinator_->version(), 1u);
  EXPECT_EQ(coordinator_->iteration(), 10u);
  EXPECT_EQ(coordinator_->ledger().next() - 10, 10u * coordinator_->ledger().leases());
}

TEST_F(Recovery, RollsBackWhenNobodyHasTheLostRound) {
  CoordinatorStart start;
  start.epoch = 2;
  start.lost.resize(1);
  start.lost[0].set_version(1);
  start.lost[0].set_iteration(10);
  Start(std::move(start));
  Peer peer = Join("a", 1);
  WorkOf(peer);
  journal_.full = true;
  for (int i = 0; i < 40; ++i, now_ += 1000) {
    Say(peer, Beat());
    coordinator_->OnTick(now_);
  }
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kRecovering);  // not before the journal says so
  EXPECT_EQ(coordinator_->failure(), "");
  journal_.full = false;
  coordinator_->OnTick(now_ += 3000);
  EXPECT_EQ(journal_.records.back().start().version(), 0u);
  EXPECT_EQ(StepsOf(WorkOf(peer)), (Steps{0, 10}));
}

TEST_F(Recovery, GoesBackNoFurtherThanToWhatSomebodyHas) {
  Start(After(3, 5));
  Peer a = Return(0, 1), b = Return(1, 2);
  // One may still come who has the last, as others were members besides these.
  EXPECT_FALSE(WorkOf(a).wanted());
  EXPECT_FALSE(WorkOf(b).wanted());
  Wait(options_.recovery - 2000, {&a, &b});
  EXPECT_FALSE(WorkOf(b).wanted());
  Wait(3000, {&a, &b});
  EXPECT_FALSE(WorkOf(a).wanted());
  ASSERT_TRUE(WorkOf(b).wanted());
  Donate(b, 2);
  EXPECT_EQ(coordinator_->version(), 2u);
  EXPECT_EQ(coordinator_->iteration(), 20u);
  EXPECT_EQ(*coordinator_->state(), *states_[2]);
  // The steps of the void round come again: b goes on with what it is at, and a gets the other ones.
  EXPECT_EQ(journal_.records.back().start().version(), 2u);
  EXPECT_EQ(coordinator_->ledger().unused(), (std::vector<Steps>{StepsIn(3, 0), StepsIn(3, 1)}));
  EXPECT_EQ(StepsOf(WorkOf(a)), StepsIn(3, 0));
  EXPECT_EQ(StepsOf(WorkOf(b)), StepsIn(3, 1));
  EXPECT_EQ(WorkOf(b).lease().serial(), LeaseOf(1));
  // Whoever has the void round after all, gets what counts, and its lease is void.
  Peer c = Return(2, 3);
  const Work work = WorkOf(c);
  EXPECT_EQ(work.version(), 2u);
  EXPECT_EQ(work.form(), Work::WHOLE);
  EXPECT_FALSE(work.has_lease());
}

TEST_F(Recovery, DoesNotWaitWhereNobodyCanHaveTheLast) {
  Start(After(3));
  Peer a = Return(0, 2);
  EXPECT_FALSE(WorkOf(a).wanted());
  Peer b = Return(1, 2);
  EXPECT_FALSE(WorkOf(a).wanted()) << "b is not ready";
  WorkOf(b);
  ASSERT_TRUE(WorkOf(a).wanted());
  Donate(a, 2);
  EXPECT_EQ(coordinator_->version(), 2u);
  EXPECT_EQ(journal_.records.back().start().version(), 2u);
  EXPECT_EQ(StepsOf(WorkOf(a)), StepsIn(3, 0));
  EXPECT_EQ(StepsOf(WorkOf(b)), StepsIn(3, 1));
}

TEST_F(Recovery, WaitsWhereAnotherOneCouldHaveTheLast) {
  // A third one was there, or one of the two was there twice; it was not there for the round before; it had another
  // place.
  for (const auto& [generation, version, slot] :
       {std::tuple(3u, 2u, 1u), std::tuple(4u, 2u, 1u), std::tuple(2u, 1u, 1u), std::tuple(2u, 2u, 2u)}) {
    Start(After(3, generation));
    Peer a = Return(0, 2), b = Return(slot, version);
    Wait(options_.recovery - 2000, {&a, &b});
    EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kRecovering);
    EXPECT_FALSE(WorkOf(a).wanted());
  }
}

TEST_F(Recovery, AtTheSnapshotNobodyIsAskedForIt) {
  Start(After(1));
  Peer a = Return(0, 0), b = Return(1, 0);
  WorkOf(a), WorkOf(b);
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kTraining);
  EXPECT_EQ(journal_.records.back().start().version(), 0u);
  EXPECT_EQ(WorkOf(a).lease().serial(), LeaseOf(0));
  EXPECT_EQ(WorkOf(b).lease().serial(), LeaseOf(1));
}

TEST_F(Recovery, OneWithANewerRoundIsAskedInstead) {
  Start(After(3, 5));
  Peer a = Return(0, 1);
  Wait(options_.recovery + 1000, {&a});
  ASSERT_TRUE(WorkOf(a).wanted());
  Peer b = Return(1, 3);
  ASSERT_TRUE(WorkOf(b).wanted());
  EXPECT_FALSE(WorkOf(a).wanted());
  Donate(a, 1);
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kRecovering);
  Donate(b, 3);
  EXPECT_EQ(coordinator_->version(), 3u);
}

// The last one was killed when all was done, and one of its workers finds this one before the other does.
TEST_F(Recovery, AtTheEndThoseAreToldWhoCameLater) {
  for (const bool comes : {true, false}) {
    options_.max_iter = 10;
    Start(After(1));
    Peer a = Return(0, 1), b;
    ASSERT_TRUE(WorkOf(a).wanted());
    Donate(a, 1);
    ASSERT_EQ(coordinator_->phase(), Coordinator::Phase::kEnding);
    EXPECT_TRUE(coordinator_->completed());
    ClusterMessage leave;
    leave.mutable_leave();
    Say(a, leave);
    EXPECT_FALSE(coordinator_->ended());
    if (comes) {
      b = Return(1, 1);
      EXPECT_FALSE(coordinator_->ended());
      const std::vector<Outgoing> answer = Say(b, Beat());
      ASSERT_EQ(answer.size(), 1u);
      EXPECT_TRUE(answer[0].message.end().completed());
      Say(b, leave);
    } else {
      Pass(options_.dead);
    }
    EXPECT_TRUE(coordinator_->ended());
    EXPECT_EQ(coordinator_->ledger().leases(), 0u);
  }
}

// Meanwhile they go on training.
TEST_F(Recovery, WorkersKeepTheirLeases) {
  Start(After(2));
  Peer a = Return(0, 2), b = Return(1, 1);
  for (const bool again : {false, true}) {
    Work work = WorkOf(a);
    EXPECT_EQ(work.lease().serial(), LeaseOf(0)) << again;
    EXPECT_FALSE(work.has_iteration()) << "no results are wanted yet";
    EXPECT_EQ(work.version(), 2u);
    EXPECT_EQ(WorkOf(b).lease().serial(), LeaseOf(1));
  }
  EXPECT_EQ(coordinator_->ledger().leases(), 0u);
  Donate(a, 2);
  // The one that b is at was used in the round that it missed.
  const Work first = WorkOf(a), second = WorkOf(b);
  EXPECT_EQ(first.lease().serial(), LeaseOf(0));
  EXPECT_TRUE(first.has_iteration());
  EXPECT_EQ(StepsOf(first), StepsIn(3, 0));
  EXPECT_NE(second.lease().serial(), LeaseOf(1));
  EXPECT_EQ(StepsOf(second), StepsIn(3, 1));
  EXPECT_EQ(coordinator_->ledger().leases(), 2u);
}

}  // namespace
}  // namespace crema
