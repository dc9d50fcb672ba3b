// The worker, spoken to by hand.
#include "distributed/worker.h"

#include <gtest/gtest.h>

#include "distributed/digest.h"
#include "distributed/protocol_version.h"
#include "distributed/simulated_training.h"

namespace crema {
namespace {

constexpr size_t kWords = 4;

class WorkerTest : public testing::Test {
 protected:
  WorkerTest() : worker_({.process = 9, .name = "node3:1", .transfer = {.chunk_bytes = 1000}}, math_, now_) {}

  std::vector<Outgoing> Hear(ClusterMessage message, std::span<const std::byte> bytes = {}) {
    if (!message.has_job()) message.set_job(7);
    if (!message.has_epoch()) message.set_epoch(epoch_);
    if (!message.has_member()) message.set_member(member_);
    if (!message.has_sequence()) message.set_sequence(++sequence_);
    worker_.OnMessage(message, bytes, now_);
    return worker_.TakeOutgoing();
  }

  // Ticks until then; what was sent.
  std::vector<Outgoing> Wait(Milliseconds until) {
    std::vector<Outgoing> all = worker_.TakeOutgoing();
    for (; now_ < until; now_ += 100) {
      if (worker_.deadline() > now_) continue;
      worker_.OnTick(now_);
      for (Outgoing& outgoing : worker_.TakeOutgoing()) all.push_back(std::move(outgoing));
    }
    return all;
  }

  static std::optional<ClusterMessage> Last(const std::vector<Outgoing>& all, ClusterMessage::BodyCase body) {
    std::optional<ClusterMessage> last;
    for (const Outgoing& outgoing : all) {
      if (outgoing.message.body_case() == body) last = outgoing.message;
    }
    return last;
  }

  Hello NextHello(Milliseconds within = 10'000) {
    const auto message = Last(Wait(now_ + within), ClusterMessage::kHello);
    EXPECT_TRUE(message);
    return message ? message->hello() : Hello();
  }

  std::vector<Outgoing> Welcomed(const Hello& hello) {
    ClusterMessage message;
    message.mutable_welcome()->set_incarnation(hello.incarnation());
    message.mutable_welcome()->set_slot(2);
    message.mutable_welcome()->set_solver("solver");
    return Hear(message);
  }

  void Build() {
    Welcomed(NextHello());
    ASSERT_TRUE(worker_.TakeWelcome());
    worker_.OnBuilt(100, {}, {.chunk_bytes = 1000}, DistributedParameter::STAR, {}, now_);
    worker_.TakeOutgoing();
  }

  ClusterMessage WorkFor(uint64_t version, const Payload& state, uint64_t lease = 0, bool open = true) {
    ClusterMessage message;
    Work& work = *message.mutable_work();
    work.set_version(version);
    work.set_slot(2);
    work.set_state(10 + version);
    work.set_form(Work::WHOLE);
    work.set_digest(DigestOf(*state));
    if (lease == 0) return message;
    if (open) work.set_iteration(10 * version);
    work.mutable_lease()->set_serial(lease);
    work.mutable_lease()->mutable_steps()->set_first(10 * lease);
    work.mutable_lease()->mutable_steps()->set_count(10);
    return message;
  }

  void BringState(uint64_t version, const Payload& state) {
    TransferSender sender({.chunk_bytes = 1000});
    sender.Start(10 + version, SimulatedRoundMath(state, kWords).Whole(state), now_);
    sender.Poll(now_, [&](Chunk chunk, Slice slice) {
      ClusterMessage message;
      *message.mutable_chunk() = chunk;
      for (Outgoing& outgoing : Hear(message, slice.bytes())) sent_.push_back(std::move(outgoing));
    });
  }

  static Payload StateOf(uint64_t steps) {
    Tally tally;
    tally.Add({0, steps});
    return ParametersOf(tally, kWords);
  }

  // The result of a task.
  static TrainResult Trained(const TrainTask& task) {
    Tally tally = TallyOf(task.state);
    tally.Add(task.steps);
    TrainResult result;
    result.lease = task.lease;
    result.values = ParametersOf(tally, kWords);
    return result;
  }

  // Goes on with what it made, if it is to.
  struct Math : SimulatedWorkerMath {
    using SimulatedWorkerMath::SimulatedWorkerMath;
    Payload Own(const Payload& values, const Payload&) override { return keeps_own ? values : nullptr; }
    bool keeps_own = false;
  };

  Math math_{6};
  Milliseconds now_ = 1000;
  uint64_t epoch_ = 3, member_ = 5, sequence_ = 0;
  Worker worker_;
  std::vector<Outgoing> sent_;
};

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

ClusterMessage AheadOf(ClusterMessage work, uint64_t serial) {
  work.mutable_work()->mutable_ahead()->set_serial(serial);
  work.mutable_work()->mutable_ahead()->mutable_steps()->set_first(10 * serial);
  work.mutable_work()->mutable_ahead()->mutable_steps()->set_count(10);
  return work;
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

TEST_F(WorkerTest, AnOrphanEnds) {
  Build();
  Wait(now_ + 599'000);
  EXPECT_FALSE(worker_.ended());
  Wait(now_ + 2'000);
  EXPECT_TRUE(worker_.failed());
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
