// How a worker comes, stays and leaves, spoken to by hand.
#include "distributed/protocol/protocol_version.h"
#include "distributed/worker_fixture.h"

namespace crema {
namespace {

TEST_F(WorkerTest, FollowsNoOlderCoordinatorNoOtherJobAndNoReplay) {
  Build();
  const uint64_t heard = sequence_;
  const auto ignored = [&](ClusterMessage message) {
    Hear(std::move(message));
    return !worker_.TakeTask() && !worker_.ended() && !Last(Wait(now_ + 500), ClusterMessage::kHello);
  };
  Hear(WorkFor(0, StateOf(0)));
  BringState(0, StateOf(0));
  ClusterMessage message = WorkFor(0, StateOf(0), 1);
  message.set_epoch(epoch_ - 1);
  EXPECT_TRUE(ignored(message));
  message = WorkFor(0, StateOf(0), 1);
  message.set_job(8);
  EXPECT_TRUE(ignored(message));
  message = WorkFor(0, StateOf(0), 1);
  message.set_member(member_ + 1);
  EXPECT_TRUE(ignored(message));
  message = WorkFor(0, StateOf(0), 1);
  message.set_sequence(heard);
  EXPECT_TRUE(ignored(message));
  message.Clear();
  message.mutable_refusal()->set_kind(Refusal::NOT_A_MEMBER);
  message.set_epoch(epoch_ - 1);
  EXPECT_TRUE(ignored(message));
  message.Clear();
  message.mutable_end()->set_reason("over");
  message.set_epoch(epoch_ - 1);
  EXPECT_TRUE(ignored(message));
  // An older one's Welcome, when it looks for a new one.
  message.Clear();
  message.mutable_refusal()->set_kind(Refusal::NOT_A_MEMBER);
  Hear(message);
  const Hello hello = NextHello(1000);
  --epoch_;
  Welcomed(hello);
  EXPECT_EQ(worker_.phase(), Worker::Phase::kJoining);
  epoch_ += 2;
  Welcomed(hello);
  EXPECT_EQ(worker_.phase(), Worker::Phase::kMember);
}

TEST_F(WorkerTest, BringsItsLeaseAlongWhenItJoinsAnew) {
  Build();
  Hear(WorkFor(0, StateOf(0), 1));
  BringState(0, StateOf(0));
  const auto task = worker_.TakeTask();
  ASSERT_TRUE(task);
  ClusterMessage refusal;
  refusal.mutable_refusal()->set_kind(Refusal::NOT_A_MEMBER);
  Hear(refusal);
  worker_.OnTrained(Trained(*task), now_);
  const Hello hello = NextHello(1000);
  EXPECT_EQ(hello.lease().serial(), 1u);
  EXPECT_EQ(hello.digest(), DigestOf(*StateOf(0)));
  EXPECT_EQ(hello.slot(), 2u);
  ++epoch_;
  sequence_ = 0;
  Welcomed(hello);
  // The lease was adopted: what it trained is pushed.
  EXPECT_TRUE(Last(Hear(WorkFor(0, StateOf(0), 1)), ClusterMessage::kPush));
}

// They may come to nothing: a coordinator that is gone may have committed them, or not.
TEST_F(WorkerTest, BringsNoLeaseAlongThatBeganFromResults) {
  Build();
  Hear(AheadOf(WorkFor(0, StateOf(0), 1), 3));
  BringState(0, StateOf(0));
  for (int i = 0; i < 2; ++i) {
    const auto task = worker_.TakeTask();
    ASSERT_TRUE(task);
    EXPECT_EQ(task->goes_on, i == 1);
    worker_.OnTrained(Trained(*task), now_);
  }
  // The state of that version has not come.
  Hear(WorkFor(1, StateOf(20), 3));
  ClusterMessage refusal;
  refusal.mutable_refusal()->set_kind(Refusal::NOT_A_MEMBER);
  Hear(refusal);
  const Hello hello = NextHello(1000);
  EXPECT_EQ(hello.version(), 0u);
  EXPECT_FALSE(hello.has_lease());
}

TEST_F(WorkerTest, BuildsOnceHoweverOftenItIsWelcomed) {
  Welcomed(NextHello());
  ASSERT_TRUE(worker_.TakeWelcome());
  ClusterMessage refusal;
  refusal.mutable_refusal()->set_kind(Refusal::NOT_A_MEMBER);
  Hear(refusal);
  Welcomed(NextHello());
  EXPECT_FALSE(worker_.TakeWelcome());
  worker_.OnBuilt(100, {}, {}, DistributedParameter::STAR, {}, now_);
  const auto beat = Last(worker_.TakeOutgoing(), ClusterMessage::kHeartbeat);
  ASSERT_TRUE(beat);
  EXPECT_TRUE(beat->heartbeat().ready());
}

TEST_F(WorkerTest, AConnectionThatIsMadeAnewHasAnotherIncarnation) {
  const Hello first = NextHello();
  bool reconnects = false;
  for (int i = 0; i < 300 && !reconnects; ++i) {
    Wait(now_ + 100);
    reconnects = worker_.TakeReconnect();
  }
  EXPECT_TRUE(reconnects);
  const Hello second = NextHello();
  EXPECT_NE(second.incarnation(), first.incarnation());
  EXPECT_EQ(second.process(), first.process());
  // And one whose Hello was used up draws another at once.
  ClusterMessage refusal;
  refusal.mutable_refusal()->set_kind(Refusal::NOT_A_MEMBER);
  refusal.mutable_refusal()->set_incarnation(second.incarnation());
  Hear(refusal);
  EXPECT_NE(NextHello(1000).incarnation(), second.incarnation());
}

TEST_F(WorkerTest, AsksAgainWhenAllPlacesAreTakenAndEndsWhenRefusedForGood) {
  for (int i = 0; i < 100; ++i) {
    const Hello hello = NextHello();
    ClusterMessage refusal;
    refusal.mutable_refusal()->set_kind(Refusal::FULL);
    refusal.mutable_refusal()->set_reason("there are enough");
    refusal.mutable_refusal()->set_incarnation(hello.incarnation());
    Hear(refusal);
    EXPECT_EQ(worker_.no_place(), "there are enough");
  }
  ASSERT_FALSE(worker_.ended());
  ClusterMessage refusal;
  refusal.mutable_refusal()->set_kind(Refusal::FINAL);
  refusal.mutable_refusal()->set_reason("another crema");
  Hear(refusal);
  EXPECT_FALSE(worker_.ended());  // not this one's
  refusal.mutable_refusal()->set_incarnation(NextHello().incarnation());
  Hear(refusal);
  EXPECT_TRUE(worker_.failed());
  EXPECT_EQ(worker_.end_reason(), "another crema");
}

TEST_F(WorkerTest, TrainsByNoOtherSolverThanItsOwn) {
  const auto again = [this](const std::string& solver) {
    ClusterMessage refusal;
    refusal.mutable_refusal()->set_kind(Refusal::NOT_A_MEMBER);
    Hear(refusal);
    const Hello hello = NextHello(1000);
    ++epoch_;
    return Welcomed(hello, solver);
  };
  Build();
  again("solver");
  EXPECT_EQ(worker_.phase(), Worker::Phase::kMember);
  EXPECT_TRUE(Last(again("another"), ClusterMessage::kLeave));
  EXPECT_TRUE(worker_.failed());
  EXPECT_NE(worker_.end_reason().find("another solver"), std::string::npos) << worker_.end_reason();
}

TEST_F(WorkerTest, AnOrphanEnds) {
  Build();
  Wait(now_ + 599'000);
  EXPECT_FALSE(worker_.ended());
  Wait(now_ + 2'000);
  EXPECT_TRUE(worker_.failed());
}

TEST_F(WorkerTest, OneThatStoodStillIsNoOrphan) {
  Build();
  Wait(now_ + 1'000);
  now_ += 700'000;
  worker_.OnTick(now_);
  EXPECT_FALSE(worker_.ended());
  EXPECT_TRUE(Last(worker_.TakeOutgoing(), ClusterMessage::kHeartbeat)) << "else it is not told that it is out";
  Wait(now_ + 601'000);
  EXPECT_TRUE(worker_.failed());
}

TEST_F(WorkerTest, SaysGoodbye) {
  Build();
  ClusterMessage end;
  end.mutable_end()->set_reason("all iterations are done");
  end.mutable_end()->set_completed(true);
  EXPECT_TRUE(Last(Hear(end), ClusterMessage::kLeave));
  EXPECT_TRUE(worker_.ended());
  EXPECT_TRUE(worker_.completed());
  EXPECT_FALSE(worker_.failed());
}

}  // namespace
}  // namespace crema
