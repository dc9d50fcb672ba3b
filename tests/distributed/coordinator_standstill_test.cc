// A coordinator that stands still itself: its process is stopped, or the disk does not answer. What workers sent
// meanwhile is still to be read.
#include <gtest/gtest.h>

#include "distributed/coordinator_fixture.h"

namespace crema {
namespace {

class Standstill : public CoordinatorTest {
 protected:
  // Much longer than anybody is waited for.
  static constexpr Milliseconds kLong = 2'000'000;

  Standstill() { options_.expected_workers = 2; }

  void Tick() { coordinator_->OnTick(now_); }

  // As one does that has heard nothing for long, with the work that it is at.
  void ConnectAnew(Peer& peer, const Work& work) {
    const uint64_t process = peer.process;
    peer = {peer.route + "'", process, peer.incarnation + 1, 0, 0};
    ClusterMessage hello = HelloOf(peer);
    hello.set_job(options_.job);
    hello.mutable_hello()->set_version(work.version());
    hello.mutable_hello()->set_digest(work.digest());
    *hello.mutable_hello()->mutable_lease() = work.lease();
    for (const Outgoing& outgoing : Say(peer, hello)) {
      if (outgoing.message.has_welcome()) peer.member = outgoing.message.member();
    }
    ASSERT_NE(peer.member, 0u);
    ClusterMessage attach;
    attach.mutable_attach()->set_incarnation(peer.incarnation);
    Say(peer, attach, Lane::kBulk);
  }

  // Each of three is at work; of two there would be enough.
  void StandStillWithThree() {
    options_.expected_workers = 3;
    options_.min_workers = 2;
    Start();
    peers_ = {Join("a", 1), Join("b", 2), Join("c", 3)};
    for (Peer& peer : peers_) WorkOf(peer);
    for (Peer& peer : peers_) works_.push_back(WorkOf(peer));
    now_ += kLong;
  }

  std::vector<std::string> Told() {
    std::vector<std::string> told;
    for (const ClusterEvent& event : coordinator_->TakeEvents()) told.push_back(event.text);
    return told;
  }
  bool Told(const std::string& part) {
    const std::vector<std::string> told = Told();
    return std::any_of(told.begin(), told.end(),
                       [&](const std::string& text) { return text.find(part) != std::string::npos; });
  }

  std::vector<Peer> peers_;
  std::vector<Work> works_;
};

TEST_F(Standstill, WhatWorkersSentIsReadBeforeTheyAreCalledDead) {
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  WorkOf(a), WorkOf(b);
  // Half a heartbeat more, and they would be dead.
  Pass(options_.dead - options_.heartbeat / 2);
  now_ += kLong;
  Tick();
  EXPECT_EQ(coordinator_->Status(now_).worker_size(), 2);
  WorkOf(a), WorkOf(b);
  Pass(options_.dead / 2);
  EXPECT_EQ(coordinator_->Status(now_).worker_size(), 2);
  EXPECT_FALSE(Told("was not heard of"));
}

TEST_F(Standstill, WhoIsDeadIsFoundOutAfterwards) {
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  WorkOf(a), WorkOf(b);
  Pass(options_.dead - options_.heartbeat / 2);
  now_ += kLong;
  Tick();
  WorkOf(a);
  Pass(options_.heartbeat);
  EXPECT_EQ(coordinator_->Status(now_).worker_size(), 1);
  EXPECT_TRUE(Told("was not heard of for 10 s")) << "of the time in which it could have been heard";
}

TEST_F(Standstill, OneThatAlwaysStandsStillFindsOutWhoIsDead) {
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  for (int i = 0; i < 100; ++i, now_ += 4 * options_.heartbeat) {
    WorkOf(a);
    Tick();
  }
  EXPECT_EQ(coordinator_->Status(now_).worker_size(), 1);
}

TEST_F(Standstill, NobodyIsLateForIt) {
  options_.straggler_factor = 2;
  for (const bool message_first : {false, true}) {
    SCOPED_TRACE(message_first);
    Start();
    const uint64_t process = message_first ? 10 : 20;
    Peer a = Join("a", process + 1), b = Join("b", process + 2);
    WorkOf(a), WorkOf(b);
    const Work of_a = WorkOf(a), of_b = WorkOf(b);
    Pass(1000);
    Train(a, of_a, 1);
    Pass(500);
    now_ += kLong;
    if (message_first) {
      // A third one changes who there is, so that it is looked whether the round is over.
      Peer c = Join("c", process + 3);
      Say(c, Beat());
    } else {
      Tick();
    }
    EXPECT_EQ(coordinator_->version(), 0u) << "the second one's result may have come, too";
    Train(b, of_b, 1);
    EXPECT_EQ(coordinator_->version(), 1u);
    EXPECT_EQ(journal_.records.back().commit().share_size(), 2);
  }
}

TEST_F(Standstill, WhoeverIsLateWithoutItIsLate) {
  options_.straggler_factor = 2;
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  WorkOf(a), WorkOf(b);
  const Work of_a = WorkOf(a);
  Pass(500);
  now_ += kLong;
  Tick();
  Pass(500);
  Train(a, of_a, 1);
  Say(b, Beat());
  Pass(500);
  EXPECT_EQ(coordinator_->version(), 0u);
  Pass(2000);
  EXPECT_EQ(coordinator_->version(), 1u) << "twice the second that the first one took";
}

TEST_F(Standstill, CountsInNoTimeout) {
  options_.min_workers = 2;
  Start();
  Peer a = Join("a", 1);
  WorkOf(a);
  Pass(1000);
  now_ += kLong;
  Tick();
  EXPECT_EQ(coordinator_->failure(), "") << "others may have asked to join";
  WorkOf(a);
  Peer b = Join("b", 2);
  WorkOf(b);
  EXPECT_TRUE(WorkOf(a).has_lease());
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kTraining);
}

// Workers that heard nothing for long connect anew one after the other, each with the work that it is at.
TEST_F(Standstill, LosesNothingOfTheLastThatConnectsAnew) {
  StandStillWithThree();
  Tick();
  for (size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = peers_[i];
    ASSERT_TRUE(works_[i].has_lease());
    ConnectAnew(peer, works_[i]);
    EXPECT_EQ(coordinator_->version(), 0u) << "this one has said with what it comes back";
    Say(peer, Beat());
    Train(peer, works_[i], 1);
  }
  EXPECT_EQ(coordinator_->version(), 1u);
  EXPECT_EQ(journal_.records.back().commit().share_size(), 3);
}

// What all of them had sent is read, and the next round opened, before it is known that they connected anew.
TEST_F(Standstill, NobodySitsOutTheRoundThatIsOpenThen) {
  StandStillWithThree();
  for (size_t i = 0; i < peers_.size(); ++i) Train(peers_[i], works_[i], 1);
  ASSERT_EQ(coordinator_->version(), 1u);
  for (size_t i = 0; i < peers_.size(); ++i) {
    ConnectAnew(peers_[i], works_[i]);
    Say(peers_[i], Beat());
  }
  for (size_t i = 0; i < peers_.size(); ++i) {
    const Work work = WorkOf(peers_[i]);
    EXPECT_EQ(work.version(), 1u);
    ASSERT_TRUE(work.has_lease()) << i;
    EXPECT_EQ(StepsOf(work).first, 30 + 10 * i) << "the steps that it had in this round";
    Train(peers_[i], work, 2);
  }
  EXPECT_EQ(coordinator_->version(), 2u);
  EXPECT_EQ(journal_.records.back().commit().share_size(), 3);
}

class StandstillAmongWorkers : public Standstill {
 protected:
  StandstillAmongWorkers() { options_.topology = DistributedParameter::SHARDED; }

  // Both are to exchange their values.
  void Begin() {
    Start();
    a_ = Join("a", 1);
    b_ = Join("b", 2);
    WorkAmong(a_), WorkAmong(b_);
    for (Peer* peer : {&a_, &b_}) {
      const Work work = WorkAmong(*peer);
      ClusterMessage push = PushOf(work, 1, Trained(work));
      push.mutable_push()->clear_digest();
      push.mutable_push()->set_kept(true);
      Say(*peer, push);
    }
    attempt_ = WorkAmong(a_).exchange().attempt();
    ASSERT_NE(attempt_, 0u);
  }

  // As one does that has heard nothing for long, with the parameters of the round before.
  void JoinAnew(Peer& peer) {
    const uint64_t process = peer.process;
    peer = {peer.route + "'", process, peer.incarnation + 1, 0, 0};
    ClusterMessage hello = HelloOf(peer);
    hello.set_job(options_.job);
    hello.mutable_hello()->set_version(0);
    hello.mutable_hello()->set_digest(DigestOf(*ParametersOf({}, kWords)));
    for (const Outgoing& outgoing : Say(peer, hello)) {
      if (outgoing.message.has_welcome()) peer.member = outgoing.message.member();
    }
    ASSERT_NE(peer.member, 0u);
  }

  Peer a_, b_;
  uint64_t attempt_ = 0;
};

TEST_F(StandstillAmongWorkers, EndsNoExchange) {
  Begin();
  Pass(1000);
  now_ += kLong;
  Tick();
  WorkAmong(a_, attempt_, 99);
  WorkAmong(b_, attempt_, 99);
  EXPECT_EQ(coordinator_->version(), 1u) << "they exchanged their values meanwhile";
}

// It stood still when the round was committed, and before it said so: workers joined anew meanwhile.
TEST_F(StandstillAmongWorkers, LosesNoRoundThatNobodyWasToldOf) {
  for (const bool both_at_once : {false, true}) {
    SCOPED_TRACE(both_at_once);
    Begin();
    WorkAmong(a_, attempt_, 99);
    WorkAmong(b_, attempt_, 99);
    ASSERT_EQ(coordinator_->version(), 1u);
    now_ += kLong;
    Tick();
    JoinAnew(a_);
    if (!both_at_once) WorkAmong(a_, attempt_, 99);
    JoinAnew(b_);
    WorkAmong(b_, attempt_, 99);
    const Work work = WorkAmong(a_, attempt_, 99);
    EXPECT_EQ(work.version(), 1u);
    EXPECT_EQ(work.digest(), 99u) << "it has that, and takes it up when it hears so";
    Pass(options_.dead / 2);
    EXPECT_FALSE(Told("are lost"));
    EXPECT_EQ(coordinator_->version() + (coordinator_->phase() == Coordinator::Phase::kRecovering), 1u);
    now_ += 1;
  }
}

TEST_F(Standstill, DoesNotShortenTheEnd) {
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  WorkOf(a), WorkOf(b);
  coordinator_->Stop("for today", now_);
  Pass(1000);
  now_ += kLong;
  Tick();
  EXPECT_FALSE(coordinator_->ended()) << "their answers are to be read";
  ClusterMessage leave;
  leave.mutable_leave()->set_reason("for today");
  Say(a, leave), Say(b, leave);
  EXPECT_TRUE(coordinator_->ended());
  EXPECT_FALSE(Told("not all workers answered"));
}

}  // namespace
}  // namespace crema
