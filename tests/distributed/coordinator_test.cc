// The coordinator, spoken to by hand.
#include "distributed/protocol/coordinator.h"

#include <gtest/gtest.h>

#include "distributed/coordinator_fixture.h"

namespace crema {
namespace {

TEST_F(CoordinatorTest, CommitsARound) {
  Start();
  Peer peer = Join("a", 1);
  const Work work = WorkOf(peer);
  EXPECT_EQ(StepsOf(work), (Steps{0, 10}));
  Train(peer, work, 1);
  EXPECT_EQ(coordinator_->version(), 1u);
  EXPECT_EQ(coordinator_->iteration(), 10u);
  EXPECT_EQ(journal_.commits(), 1u);
  EXPECT_EQ(StepsOf(WorkOf(peer)), (Steps{10, 10}));
}

TEST_F(CoordinatorTest, RefusesAnotherProtocolAndAnotherJob) {
  Start();
  Peer peer{"a", 1, 11, 0, 0};
  ClusterMessage hello = HelloOf(peer);
  hello.mutable_hello()->set_major(kProtocolMajor + 1);
  const auto other_protocol = Say(peer, hello);
  ASSERT_TRUE(RefusalIn(other_protocol));
  EXPECT_EQ(RefusalIn(other_protocol)->kind(), Refusal::FINAL);
  EXPECT_NE(RefusalIn(other_protocol)->reason().find("run the same crema"), std::string::npos);
  hello = HelloOf(peer);
  hello.set_job(8);
  const auto other_job = Say(peer, hello);
  ASSERT_TRUE(RefusalIn(other_job));
  EXPECT_EQ(RefusalIn(other_job)->kind(), Refusal::FINAL);
  ClusterMessage beat = Beat();
  beat.set_job(8);
  EXPECT_EQ(RefusalIn(Say(peer, beat))->kind(), Refusal::NOT_A_MEMBER);
}

TEST_F(CoordinatorTest, AnswersTheSameHelloFromTheSameRouteOnly) {
  Start();
  Peer peer = Join("a", 1);
  // Its Welcome was lost.
  const auto again = Say(peer, HelloOf(peer));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].message.member(), peer.member);
  // A copy of it, from where it came and from a stranger.
  ClusterMessage copy = HelloOf(peer);
  copy.set_sequence(1);
  EXPECT_TRUE(Say(peer, copy).empty());
  Peer stranger{"b", 1, peer.incarnation, 0, 50};
  const auto refused = Say(stranger, HelloOf(peer));
  ASSERT_TRUE(RefusalIn(refused));
  EXPECT_EQ(refused[0].route, "b");
  EXPECT_EQ(coordinator_->Status(now_).worker_size(), 1);
  // One that is out by now may not come back as what it was, and hears so.
  Pass(options_.dead);
  EXPECT_EQ(coordinator_->Status(now_).worker_size(), 0);
  const auto over = Say(peer, HelloOf(peer));
  ASSERT_TRUE(RefusalIn(over));
  EXPECT_EQ(RefusalIn(over)->kind(), Refusal::NOT_A_MEMBER);
  EXPECT_EQ(RefusalIn(over)->incarnation(), peer.incarnation);
}

TEST_F(CoordinatorTest, AProcessThatConnectsAnewIsOneWorker) {
  Start();
  Peer peer = Join("a", 1);
  WorkOf(peer);
  Peer anew{"a2", 1, 999, 0, peer.sequence};
  Say(anew, HelloOf(anew));
  EXPECT_EQ(coordinator_->Status(now_).worker_size(), 1);
  EXPECT_EQ(RefusalIn(Say(peer, Beat()))->kind(), Refusal::NOT_A_MEMBER);
}

TEST_F(CoordinatorTest, ListensToNobodyFromElsewhereOrFromBefore) {
  options_.expected_workers = 2;
  options_.min_workers = 2;
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  WorkOf(a);
  const Work work = WorkOf(b);
  WorkOf(a);
  const Payload values = Trained(work);
  const uint64_t dropped = coordinator_->dropped();
  // b's push by a's connection; by one of a stranger; of an older coordinator's time; and once more.
  Peer wrong = b;
  wrong.route = "a";
  EXPECT_TRUE(RefusalIn(Say(wrong, PushOf(work, 1, values))));
  wrong.route = "c";
  EXPECT_TRUE(RefusalIn(Say(wrong, PushOf(work, 1, values))));
  ClusterMessage old = PushOf(work, 1, values);
  old.set_epoch(coordinator_->epoch() + 1);
  EXPECT_TRUE(RefusalIn(Say(b, old)));
  ClusterMessage replayed = PushOf(work, 1, values);
  replayed.set_sequence(b.sequence - 1);
  EXPECT_TRUE(Say(b, replayed).empty());
  EXPECT_EQ(coordinator_->dropped(), dropped + 4);
  // Chunks by a stranger's connection, and one that attaches with a guess or an old message.
  Peer stranger = b;
  stranger.route = "c";
  EXPECT_TRUE(SendValues(stranger, 1, values).empty());
  ClusterMessage attach;
  attach.mutable_attach()->set_incarnation(b.incarnation + 1);
  Say(stranger, attach, Lane::kBulk);
  attach.mutable_attach()->set_incarnation(b.incarnation);
  attach.set_sequence(2);
  Say(stranger, attach, Lane::kBulk);
  EXPECT_TRUE(SendValues(stranger, 1, values).empty());
  EXPECT_EQ(coordinator_->version(), 0u);
}

TEST_F(CoordinatorTest, ABulkConnectionThatIsMadeAnewGoesOn) {
  Start();
  Peer peer = Join("a", 1);
  const Work work = WorkOf(peer);
  const Payload values = Trained(work);
  Say(peer, PushOf(work, 1, values));
  peer.route = "z";
  EXPECT_TRUE(SendValues(peer, 1, values).empty());
  ClusterMessage attach;
  attach.mutable_attach()->set_incarnation(peer.incarnation);
  Say(peer, attach, Lane::kBulk);
  EXPECT_FALSE(SendValues(peer, 1, values).empty());
  EXPECT_EQ(coordinator_->version(), 1u);
}

TEST_F(CoordinatorTest, RefusesValuesThatCannotBe) {
  options_.drop_nonfinite = true;
  Start();
  Peer peer = Join("a", 1);
  const Work work = WorkOf(peer);
  // Larger than any push can be.
  const Payload large = ParametersOf({}, 20);
  Say(peer, PushOf(work, 1, large));
  EXPECT_TRUE(SendValues(peer, 1, large).empty());
  // Of a lease it does not have, and for a round that is not.
  Work other = work;
  other.mutable_lease()->set_serial(work.lease().serial() + 1);
  Train(peer, other, 2);
  other = work;
  other.set_version(5);
  Train(peer, other, 3);
  EXPECT_EQ(coordinator_->version(), 0u);
  // Another fingerprint: nothing else came, and training fails.
  ClusterMessage wrong = PushOf(work, 4, Trained(work));
  wrong.mutable_push()->set_digest(1);
  Say(peer, wrong);
  SendValues(peer, 4, Trained(work));
  EXPECT_EQ(coordinator_->version(), 0u);
  EXPECT_NE(coordinator_->failure().find("cannot be used"), std::string::npos);
}

TEST_F(CoordinatorTest, WhoIsNoMoreIsNotWaitedFor) {
  options_.expected_workers = 2;
  Start();
  Peer a = Join("1a", 1), b = Join("2b", 2);
  WorkOf(a), WorkOf(b);
  const Work work_a = WorkOf(a);
  Train(a, work_a, 1);
  EXPECT_EQ(coordinator_->version(), 0u);
  coordinator_->Lose("2b", "1", now_);  // another one of this name
  coordinator_->Lose("b", "2", now_);
  EXPECT_EQ(coordinator_->version(), 0u);
  coordinator_->Lose("2b", "2", now_);
  EXPECT_EQ(coordinator_->version(), 1u) << "the round ends without it";
  EXPECT_EQ(coordinator_->Status(now_).worker_size(), 1);
}

// Whether a restart could mend it.
TEST_F(CoordinatorTest, FailuresThatWouldComeAgainAreHopeless) {
  for (const bool hopeless : {true, false}) {
    Start();
    Peer peer = Join("a", 1);
    WorkOf(peer);
    const Work work = WorkOf(peer);
    ClusterMessage push = PushOf(work, 1, Trained(work));
    if (hopeless) push.mutable_push()->set_failure("the loss is nan");
    if (!hopeless) push.mutable_push()->set_digest(1);
    Say(peer, push);
    if (!hopeless) SendValues(peer, 1, Trained(work));
    ASSERT_NE(coordinator_->failure(), "");
    EXPECT_EQ(coordinator_->hopeless(), hopeless) << coordinator_->failure();
    using Failure = Coordinator::Failure;
    EXPECT_EQ(coordinator_->failure_kind(), hopeless ? Failure::kDiverged : Failure::kEnvironment);
    const std::vector<Outgoing> answers = Say(peer, Beat());
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_TRUE(answers[0].message.end().failed());
    EXPECT_EQ(answers[0].message.end().hopeless(), hopeless);
  }
}

TEST_F(CoordinatorTest, ARecordThatCannotBeUsedIsAMistake) {
  Start();
  Peer peer = Join("a", 1);
  WorkOf(peer);
  const Work work = WorkOf(peer);
  ClusterMessage push = PushOf(work, 1, Trained(work));
  push.mutable_push()->set_failure("record 7: label 9 is outside the 3 classes");
  push.mutable_push()->set_fatal(true);
  Say(peer, push);
  EXPECT_EQ(coordinator_->failure_kind(), Coordinator::Failure::kMistake);
}

TEST_F(CoordinatorTest, ReleaseOpensTheNextRoundAtOnce) {
  options_.hold_at_stops = true;
  Start();
  Peer peer = Join("a", 1);
  WorkOf(peer);
  EXPECT_FALSE(WorkOf(peer).has_lease()) << "held from the start";
  coordinator_->TakeOutgoing();
  coordinator_->Release(now_);
  bool leased = false;
  for (const Outgoing& outgoing : coordinator_->TakeOutgoing()) {
    leased |= outgoing.message.has_work() && outgoing.message.work().has_lease();
  }
  EXPECT_TRUE(leased);
}

TEST_F(CoordinatorTest, AFailedPushIsLeftOutAndItsStepsComeAgain) {
  options_.expected_workers = 2;
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  WorkOf(a), WorkOf(b);
  const Work work_a = WorkOf(a), work_b = WorkOf(b);
  const Payload bad = NotFinite(kWords);
  Say(a, PushOf(work_a, 1, bad));
  SendValues(a, 1, bad);
  Train(b, work_b, 1);
  EXPECT_EQ(coordinator_->version(), 1u);
  EXPECT_EQ(journal_.records.back().commit().share_size(), 1);
  EXPECT_EQ(StepsOf(WorkOf(a)), StepsOf(work_a));
}

TEST_F(CoordinatorTest, HasAtMostMaxWorkers) {
  Start();
  for (uint64_t i = 1; i <= 3; ++i) Join(std::to_string(i), i);
  Peer more{"4", 4, 400, 0, 0};
  const auto answer = Say(more, HelloOf(more));
  ASSERT_TRUE(RefusalIn(answer));
  EXPECT_EQ(RefusalIn(answer)->kind(), Refusal::FULL);
  Pass(options_.dead);
  Join("4", 4);
}

TEST_F(CoordinatorTest, AdoptsALeaseOnceAndOnlyOfTheSameParameters) {
  Start();
  const auto lease_of = [&](Peer& peer, uint64_t digest, Steps steps) {
    ClusterMessage hello = HelloOf(peer);
    hello.mutable_hello()->set_version(0);
    hello.mutable_hello()->set_digest(digest);
    hello.mutable_hello()->mutable_lease()->set_serial(5);
    hello.mutable_hello()->mutable_lease()->mutable_steps()->set_first(steps.first);
    hello.mutable_hello()->mutable_lease()->mutable_steps()->set_count(steps.count);
    for (const Outgoing& outgoing : Say(peer, hello)) {
      if (outgoing.message.has_welcome()) peer.member = outgoing.message.member();
    }
    return StepsOf(WorkOf(peer));
  };
  Peer a{"a", 1, 1, 0, 0}, b{"b", 2, 2, 0, 0};
  EXPECT_EQ(lease_of(a, coordinator_->digest(), {20, 10}), (Steps{20, 10}));
  lease_of(b, coordinator_->digest(), {20, 10});
  EXPECT_EQ(coordinator_->ledger().leases(), 1u);  // b waits for the next round
  Peer c{"c", 3, 3, 0, 0};
  ClusterMessage leave;
  leave.mutable_leave();
  Say(a, leave);  // b has a lease now: the lowest one
  EXPECT_EQ(StepsOf(WorkOf(b)), (Steps{0, 10}));
  lease_of(c, coordinator_->digest() + 1, {20, 10});
  EXPECT_EQ(coordinator_->ledger().leases(), 1u);
  for (const Steps& steps : {Steps{0, 10}, Steps{5, 3}, Steps{100'000, 10}, Steps{20, 11}, Steps{UINT64_MAX, 5}}) {
    Say(c, leave);
    c.incarnation += 10;
    lease_of(c, coordinator_->digest(), steps);
    EXPECT_EQ(coordinator_->ledger().leases(), 1u);
  }
}

TEST_F(CoordinatorTest, CommitsWhenTheDiskHasRoomAgain) {
  Start();
  Peer peer = Join("a", 1);
  const Work work = WorkOf(peer);
  journal_.full = true;
  Train(peer, work, 1);
  EXPECT_EQ(coordinator_->version(), 0u);
  for (const ClusterEvent& event : coordinator_->TakeEvents()) {
    EXPECT_NE(event.kind, ClusterEvent::Kind::kCommitted);
  }
  journal_.full = false;
  now_ += 3000;
  coordinator_->OnTick(now_);
  EXPECT_EQ(coordinator_->version(), 1u);
}

TEST_F(CoordinatorTest, ASlowDiskIsNoFailureOfTheWorkers) {
  options_.expected_workers = 2;
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  WorkOf(a), WorkOf(b);
  const Work work_a = WorkOf(a), work_b = WorkOf(b);
  journal_.full = true;
  ClusterMessage failed = PushOf(work_a, 1, NotFinite(kWords));
  failed.mutable_push()->set_failure("the loss is nan");
  Say(a, failed);
  Train(b, work_b, 1);
  for (int i = 0; i < 10; ++i, now_ += 3000) {
    Say(a, Beat());
    Say(b, Beat());
    coordinator_->OnTick(now_);
  }
  journal_.full = false;
  coordinator_->OnTick(now_ += 3000);
  EXPECT_EQ(coordinator_->failure(), "");
  EXPECT_EQ(coordinator_->version(), 1u);
}

TEST_F(CoordinatorTest, WhoWaitedForItIsNotDead) {
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  Pass(options_.dead - options_.heartbeat);
  now_ += 2 * options_.dead;  // its process is stopped, or a write to the disk lasts
  coordinator_->OnTick(now_);
  EXPECT_EQ(coordinator_->Status(now_).worker_size(), 2);
  Say(a, Beat());
  Pass(options_.heartbeat);
  EXPECT_EQ(coordinator_->Status(now_).worker_size(), 1) << "what b was silent for before and since counts";
}

TEST_F(CoordinatorTest, AWorkerThatAnnouncesValuesAndNeverSendsThemIsOut) {
  options_.stall = 30'000;
  Start();
  Peer peer = Join("a", 1);
  const Work work = WorkOf(peer);
  const ClusterMessage push = PushOf(work, 1, Trained(work));
  for (int i = 0; i < 40; ++i, now_ += 1000) {
    Say(peer, push);
    Say(peer, Beat());
    coordinator_->OnTick(now_);
  }
  EXPECT_EQ(coordinator_->Status(now_).worker_size(), 0);
}

TEST_F(CoordinatorTest, GivesUpWithTooFewWorkers) {
  options_.min_workers = 2;
  Start();
  Peer peer = Join("a", 1);
  for (int i = 0; i < 601; ++i, now_ += 1000) {
    Say(peer, Beat());
    coordinator_->OnTick(now_);
  }
  EXPECT_NE(coordinator_->failure().find("min_workers"), std::string::npos);
  EXPECT_EQ(journal_.commits(), 0u);
}

TEST_F(CoordinatorTest, ADrainDoesNotWaitForWorkersThatAreNotThere) {
  options_.history_every = 5;
  options_.expected_workers = 3;
  options_.min_workers = 2;
  CoordinatorStart start;
  start.version = 4;
  start.iteration = 40;
  Start(std::move(start));
  Peer peer = Join("a", 1);
  WorkOf(peer);
  coordinator_->Drain("for today", now_);
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kEnding);
}

}  // namespace
}  // namespace crema
