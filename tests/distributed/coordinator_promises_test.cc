// A coordinator of workers that exchange values while they make them, spoken to by hand.
#include <gtest/gtest.h>

#include "distributed/coordinator_fixture.h"

namespace crema {
namespace {

class CoordinatorOfPromises : public CoordinatorTest {
 protected:
  CoordinatorOfPromises() {
    options_.topology = DistributedParameter::SHARDED;
    options_.expected_workers = 2;
    options_.local_steps = 1;
  }

  static ClusterMessage PromiseOf(const Work& work, uint64_t id, bool promised, const std::string& failure = {}) {
    ClusterMessage message = PushOf(work, id, ParametersOf({}, kWords));
    message.mutable_push()->clear_digest();
    message.mutable_push()->set_kept(true);
    message.mutable_push()->set_promised(promised);
    message.mutable_push()->set_failure(failure);
    return message;
  }

  // Both have promised, and know of an exchange.
  void Begin() {
    Start();
    a_ = Join("a", 11);
    b_ = Join("b", 12);
    WorkAmong(a_);
    WorkAmong(b_);
    of_a_ = WorkAmong(a_);
    of_b_ = WorkAmong(b_);
    ASSERT_TRUE(of_a_.keep_values());
    Say(a_, PromiseOf(of_a_, 1, true));
    EXPECT_FALSE(WorkAmong(a_).has_exchange()) << "the other one may have nothing to promise";
    Say(b_, PromiseOf(of_b_, 1, true));
    const Work order = WorkAmong(a_);
    ASSERT_TRUE(order.has_exchange());
    EXPECT_EQ(order.exchange().peer_size(), 2);
    EXPECT_EQ(order.exchange().peer(1).examples(), 1u);
    attempt_ = order.exchange().attempt();
  }

  std::vector<std::string> Warnings() {
    std::vector<std::string> warnings;
    for (const ClusterEvent& event : coordinator_->TakeEvents()) {
      if (event.kind == ClusterEvent::Kind::kWarning) warnings.push_back(event.text);
    }
    return warnings;
  }

  Peer a_, b_;
  Work of_a_, of_b_;
  uint64_t attempt_ = 0;
};

TEST_F(CoordinatorOfPromises, CommitsWhenAllIsThereAndAllAgree) {
  Begin();
  Say(a_, PromiseOf(of_a_, 1, false));
  WorkAmong(a_, attempt_, 99);
  WorkAmong(b_, attempt_, 99);
  EXPECT_EQ(journal_.commits(), 0u) << "b has not said what its loss was";
  // Again what it said before: messages are repeated.
  Say(b_, PromiseOf(of_b_, 1, true));
  EXPECT_EQ(journal_.commits(), 0u);
  Say(b_, PromiseOf(of_b_, 1, false));
  EXPECT_EQ(journal_.commits(), 1u);
  EXPECT_EQ(coordinator_->version(), 1u);
}

TEST_F(CoordinatorOfPromises, GoesOnWithoutOneWhoseValuesDoNotCome) {
  Begin();
  Say(a_, PromiseOf(of_a_, 1, true));
  Say(b_, PromiseOf(of_b_, 1, false, "the loss is nan"));
  const Work order = WorkAmong(a_, attempt_);
  ASSERT_TRUE(order.has_exchange());
  EXPECT_GT(order.exchange().attempt(), attempt_);
  EXPECT_EQ(order.exchange().peer_size(), 1);
  EXPECT_FALSE(WorkAmong(b_, attempt_).has_exchange());
  EXPECT_EQ(Warnings(), (std::vector<std::string>{"worker b: the loss is nan"}));
  WorkAmong(a_, order.exchange().attempt(), 99);
  EXPECT_EQ(journal_.commits(), 0u);
  Say(a_, PromiseOf(of_a_, 1, false));
  EXPECT_EQ(journal_.commits(), 1u);
}

TEST_F(CoordinatorOfPromises, ARecordThatCannotBeUsedEndsTraining) {
  Begin();
  ClusterMessage push = PromiseOf(of_b_, 1, false, "label 7 of 4 classes");
  push.mutable_push()->set_fatal(true);
  Say(b_, push);
  EXPECT_EQ(coordinator_->failure(), "worker b: label 7 of 4 classes");
}

TEST_F(CoordinatorOfPromises, IsPatientAsLongAsValuesAreBeingMade) {
  Begin();
  Say(a_, PromiseOf(of_a_, 1, false));
  const Milliseconds long_since = now_ + 3 * options_.dead;
  for (; now_ < long_since; now_ += options_.heartbeat) {
    WorkAmong(a_, attempt_);
    WorkAmong(b_, attempt_);
    coordinator_->OnTick(now_);
  }
  EXPECT_TRUE(Warnings().empty());
  Say(b_, PromiseOf(of_b_, 1, false));
  const Milliseconds made = now_;
  while (WorkAmong(a_, attempt_).exchange().attempt() == attempt_ && now_ < made + 10 * options_.dead) {
    now_ += options_.heartbeat;
    WorkAmong(b_, attempt_);
    coordinator_->OnTick(now_);
  }
  EXPECT_GE(now_, made + options_.dead) << "an exchange takes its time";
  EXPECT_LT(now_, made + 2 * options_.dead) << "one that does not move is given up";
}

TEST_F(CoordinatorOfPromises, OneThatHangsInTheMakingIsOut) {
  Begin();
  Say(a_, PromiseOf(of_a_, 1, false));
  const Milliseconds begin = now_;
  while (now_ < begin + 2 * options_.stall && WorkAmong(b_, attempt_).has_lease()) {
    now_ += options_.heartbeat;
    WorkAmong(a_, attempt_);
    coordinator_->OnTick(now_);
  }
  EXPECT_GE(now_, begin + options_.stall);
  EXPECT_EQ(WorkAmong(a_, attempt_).exchange().peer_size(), 1);
}

}  // namespace
}  // namespace crema
