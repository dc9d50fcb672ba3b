// The rounds of a worker, spoken to by hand.
#include "distributed/worker_fixture.h"

namespace crema {
namespace {

TEST_F(WorkerTest, JoinsTrainsAndPushes) {
  Build();
  const Payload state = StateOf(0);
  Hear(WorkFor(0, state, 1));
  EXPECT_FALSE(worker_.TakeTask());
  BringState(0, state);
  const auto task = worker_.TakeTask();
  ASSERT_TRUE(task);
  EXPECT_EQ(task->steps, (Steps{10, 10}));
  EXPECT_FALSE(worker_.TakeTask());
  worker_.OnTrained(Trained(*task), now_);
  const auto push = Last(worker_.TakeOutgoing(), ClusterMessage::kPush);
  ASSERT_TRUE(push);
  EXPECT_EQ(push->push().version(), 0u);
  EXPECT_EQ(push->push().lease().serial(), 1u);
  // It says so until it is told what to do next.
  EXPECT_TRUE(Last(Wait(now_ + 3000), ClusterMessage::kPush));
  Hear(WorkFor(1, StateOf(20), 2));
  EXPECT_FALSE(Last(Wait(now_ + 3000), ClusterMessage::kPush));
}

// Where its values were averaged, unless all begin anew; what did not count is forgotten.
TEST_F(WorkerTest, GoesOnFromItsOwnParameters) {
  math_.keeps_own = true;
  Build();
  struct Round {
    bool committed;
    uint64_t center;
    bool own;
  };
  uint64_t version = 0, push = 0;
  Hear(WorkFor(0, StateOf(0), 1));
  BringState(0, StateOf(0));
  for (const Round& round :
       {Round{true, 0, true}, Round{true, 3, false}, Round{true, 3, true}, Round{false, 3, false}}) {
    SCOPED_TRACE(version);
    const auto task = worker_.TakeTask();
    ASSERT_TRUE(task);
    const TrainResult result = Trained(*task);
    worker_.OnTrained(result, now_);
    const auto pushed = Last(worker_.TakeOutgoing(), ClusterMessage::kPush);
    ASSERT_TRUE(pushed);
    push = pushed->push().id();
    ++version;
    const Payload state = StateOf(100 * version);
    // First it hears of the end of its round, then of the next one.
    for (const bool open : {false, true}) {
      ClusterMessage message = WorkFor(version, state, open ? version + 1 : 0, open);
      message.mutable_work()->set_committed_push(round.committed ? push : push - 1);
      message.mutable_work()->set_center(round.center);
      Hear(message);
    }
    BringState(version, state);
    const auto next = worker_.TakeTask();
    ASSERT_TRUE(next);
    EXPECT_EQ(next->own, round.own);
    EXPECT_EQ(*next->state, round.own ? *result.values : *state);
    TrainResult again = Trained(*next);
    worker_.OnTrained(std::move(again), now_);
    const auto second = Last(worker_.TakeOutgoing(), ClusterMessage::kPush);
    ASSERT_TRUE(second);
    // It did not count, so that the next round begins with the state.
    ++version;
    ClusterMessage message = WorkFor(version, StateOf(100 * version), version + 1);
    message.mutable_work()->set_committed_push(0);
    Hear(message);
    BringState(version, StateOf(100 * version));
  }
}

TEST_F(WorkerTest, ResultsThatACommitOvertookMoveToTheNewParameters) {
  Build();
  Hear(WorkFor(0, StateOf(0), 1));
  BringState(0, StateOf(0));
  const auto task = worker_.TakeTask();
  ASSERT_TRUE(task);
  Hear(WorkFor(1, StateOf(5), 1));
  worker_.OnTrained(Trained(*task), now_);
  EXPECT_FALSE(Last(worker_.TakeOutgoing(), ClusterMessage::kPush));
  BringState(1, StateOf(5));
  const auto push = Last(sent_, ClusterMessage::kPush);
  ASSERT_TRUE(push);
  EXPECT_EQ(push->push().version(), 1u);
  EXPECT_EQ(push->push().trained_from(), 0u);
  Tally tally;
  tally.Add({0, 5});
  tally.Add({10, 10});
  EXPECT_EQ(push->push().digest(), DigestOf(*ParametersOf(tally, kWords)));
}

// Else it would depend on who is quick what is learned.
TEST_F(WorkerTest, BeginsAheadAtTheSamePlaceWhereTheAverageComesSooner) {
  Build();
  Hear(AheadOf(WorkFor(0, StateOf(0), 1), 3));
  BringState(0, StateOf(0));
  const auto task = worker_.TakeTask();
  ASSERT_TRUE(task);
  const TrainResult result = Trained(*task);
  worker_.OnTrained(result, now_);
  // Before it has asked what to do next.
  Hear(AheadOf(WorkFor(1, StateOf(20), 3), 5));
  BringState(1, StateOf(20));
  const auto ahead = worker_.TakeTask();
  ASSERT_TRUE(ahead);
  EXPECT_TRUE(ahead->goes_on);
  EXPECT_EQ(ahead->lease, 3u);
  EXPECT_EQ(ahead->iteration, 10u);
  EXPECT_EQ(*ahead->state, *result.values);
  sent_.clear();
  worker_.OnTrained(Trained(*ahead), now_);
  const auto push = Last(worker_.TakeOutgoing(), ClusterMessage::kPush);
  ASSERT_TRUE(push);
  EXPECT_EQ(push->push().version(), 1u);
  EXPECT_EQ(push->push().trained_from(), 0u);
  Tally tally;
  tally.Add({0, 20});
  tally.Add({30, 10});
  EXPECT_EQ(push->push().digest(), DigestOf(*ParametersOf(tally, kWords)));
}

TEST_F(WorkerTest, WhatWasBrokenOffIsTrainedAgain) {
  Build();
  Hear(AheadOf(WorkFor(0, StateOf(0), 1), 3));
  BringState(0, StateOf(0));
  const auto task = worker_.TakeTask();
  ASSERT_TRUE(task);
  worker_.OnTrained(Trained(*task), now_);
  ASSERT_TRUE(worker_.TakeTask());
  // Not wanted for a moment, in which the thread that trains asks whether it is to go on.
  Hear(WorkFor(0, StateOf(0), 1));
  Hear(AheadOf(WorkFor(0, StateOf(0), 1), 3));
  TrainResult broken_off;
  broken_off.lease = 3;
  worker_.OnTrained(broken_off, now_);
  const auto again = worker_.TakeTask();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->lease, 3u);
}

TEST_F(WorkerTest, DoesNotTakeParametersThatDoNotFitTheirFingerprint) {
  Build();
  ClusterMessage work = WorkFor(0, StateOf(0), 1);
  work.mutable_work()->set_digest(1);
  Hear(work);
  BringState(0, StateOf(0));
  EXPECT_FALSE(worker_.state());
  EXPECT_FALSE(worker_.TakeTask());
  // More bytes than parameters have are not even answered.
  sent_.clear();
  BringState(1, ParametersOf({}, 20));
  EXPECT_TRUE(sent_.empty());
}

TEST_F(WorkerTest, SendsTheParametersThatTheCoordinatorLost) {
  Build();
  Hear(WorkFor(4, StateOf(40)));
  BringState(4, StateOf(40));
  ClusterMessage work;
  work.mutable_work()->set_version(4);
  work.mutable_work()->set_wanted(true);
  const auto sent = Hear(work);
  const auto push = Last(sent, ClusterMessage::kPush);
  ASSERT_TRUE(push);
  EXPECT_TRUE(push->push().state());
  EXPECT_EQ(push->push().digest(), DigestOf(*StateOf(40)));
  EXPECT_TRUE(Last(sent, ClusterMessage::kChunk));
  EXPECT_EQ(Last(Hear(work), ClusterMessage::kPush), std::nullopt);
}

}  // namespace
}  // namespace crema
