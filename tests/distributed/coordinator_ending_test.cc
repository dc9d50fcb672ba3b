// How a coordinator ends: not before its workers know.
#include <gtest/gtest.h>

#include "distributed/coordinator_fixture.h"
#include "distributed/simulated_rounds.h"

namespace crema {
namespace {

class Ending : public CoordinatorTest {
 protected:
  static const End* EndIn(const std::vector<Outgoing>& all, const std::string& route) {
    for (const Outgoing& outgoing : all) {
      if (outgoing.route == route && outgoing.message.has_end()) return &outgoing.message.end();
    }
    return nullptr;
  }

  void Leave(Peer& peer) {
    ClusterMessage message;
    message.mutable_leave()->set_reason("it is over");
    Say(peer, message);
  }

  // Whether anything that was told since the last call says so.
  bool Told(const std::string& what) {
    bool told = false;
    for (const ClusterEvent& event : coordinator_->TakeEvents()) {
      told |= event.text.find(what) != std::string::npos;
    }
    return told;
  }
};

TEST_F(Ending, IsOverWhenAllKnow) {
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  WorkOf(a), WorkOf(b);
  coordinator_->Stop("for today", now_);
  const std::vector<Outgoing> all = coordinator_->TakeOutgoing();
  for (const char* route : {"a", "b"}) {
    ASSERT_TRUE(EndIn(all, route));
    EXPECT_EQ(EndIn(all, route)->reason(), "for today");
  }
  Leave(a);
  EXPECT_FALSE(coordinator_->ended());
  Leave(b);
  EXPECT_TRUE(coordinator_->ended());
  EXPECT_FALSE(Told("of the end"));
}

// Who asks is answered while there is no room for the last snapshot, and a copy of what ended training is no stop.
TEST_F(Ending, WithoutRoomOnlyANewStopGivesUp) {
  Start();
  Peer worker = Join("a", 1), asking{"asking"};
  WorkOf(worker);
  const auto ask = [&](Inquiry::Request request, uint64_t id) {
    ClusterMessage message;
    message.mutable_inquiry()->set_request(request);
    message.set_sequence(id);
    ClusterStatus status;
    for (const Outgoing& outgoing : Say(asking, message)) {
      if (outgoing.route == "asking" && outgoing.message.has_status()) status = outgoing.message.status();
    }
    return status;
  };
  EXPECT_EQ(ask(Inquiry::STOP, 1).phase(), "ending");
  Leave(worker);
  ASSERT_TRUE(coordinator_->ended());
  coordinator_->WaitForRoom("cannot write x: no space left");
  const ClusterStatus waiting = ask(Inquiry::STATUS, 2);
  EXPECT_EQ(waiting.phase(), "waiting for room (cannot write x: no space left)");
  ask(Inquiry::STOP, 1);
  ask(Inquiry::DRAIN, 3);
  EXPECT_FALSE(coordinator_->TakeEndWithoutRoom());
  ask(Inquiry::STOP, 4);
  EXPECT_TRUE(coordinator_->TakeEndWithoutRoom());
  EXPECT_FALSE(coordinator_->TakeEndWithoutRoom()) << "once";
  EXPECT_TRUE(Told("asked to stop: this ends without what there is no room for"));
  ask(Inquiry::STOP, 5);
  coordinator_->WaitForRoom("");
  coordinator_->WaitForRoom("cannot write y: no space left");
  EXPECT_FALSE(coordinator_->TakeEndWithoutRoom()) << "what it was asked for has been written";
  coordinator_->WaitForRoom("");
  EXPECT_EQ(ask(Inquiry::STOP, 6).phase(), "ending");
  EXPECT_FALSE(coordinator_->TakeEndWithoutRoom());
}

// Its End was lost, or its answer, for longer than a few heartbeats.
TEST_F(Ending, IsToldAgainAndAgain) {
  Start();
  Peer peer = Join("a", 1);
  WorkOf(peer);
  coordinator_->Stop("for today", now_);
  coordinator_->TakeOutgoing();
  for (const Milliseconds end = now_ + options_.dead; now_ < end; now_ += 1000) {
    coordinator_->OnTick(now_);
    EXPECT_FALSE(coordinator_->ended());
    ASSERT_TRUE(EndIn(Say(peer, Beat()), "a"));
  }
  EXPECT_TRUE(Told("waiting until all workers know of the end, for at most 10 s; not yet: a"));
  // Not for ever.
  coordinator_->OnTick(now_);
  EXPECT_TRUE(coordinator_->ended());
  EXPECT_TRUE(Told("not all workers answered when they were told of the end: a;"));
}

TEST_F(Ending, DoesNotWaitForTheDead) {
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  WorkOf(a), WorkOf(b);
  Pass(options_.dead - 1000);
  Say(a, Beat());
  coordinator_->Stop("for today", now_);
  Leave(a);
  EXPECT_FALSE(coordinator_->ended());
  Pass(1000);
  EXPECT_TRUE(coordinator_->ended());
  EXPECT_TRUE(Told("worker b did not answer when it was told of the end"));
}

TEST_F(Ending, WhoeverMissedItIsToldWhenItComesBack) {
  Start();
  Peer lost = Join("a", 1), other = Join("b", 2);
  WorkOf(lost), WorkOf(other);
  // It is out by now, but does not know.
  Pass(options_.dead - 1);
  Say(other, Beat());
  Pass(1);
  coordinator_->Stop("for today", now_);
  const auto refused = Say(lost, Beat());
  ASSERT_TRUE(RefusalIn(refused));
  EXPECT_EQ(RefusalIn(refused)->kind(), Refusal::NOT_A_MEMBER);
  lost.member = 0;
  lost.incarnation = 777;
  for (const Outgoing& outgoing : Say(lost, HelloOf(lost))) {
    if (outgoing.message.has_welcome()) lost.member = outgoing.message.member();
  }
  ASSERT_NE(lost.member, 0u);
  ASSERT_TRUE(EndIn(Say(lost, Beat()), "a"));
  Leave(lost);
  Leave(other);
  EXPECT_TRUE(coordinator_->ended());
  EXPECT_EQ(coordinator_->ledger().leases(), 0u);
}

TEST_F(Ending, WhoeverWasNeverAMemberIsRefused) {
  Start();
  Peer peer = Join("a", 1);
  coordinator_->Stop("for today", now_);
  Peer fresh{"b", 2, 200, 0, 0};
  ClusterMessage hello = HelloOf(fresh);
  hello.set_job(0);
  const auto refused = Say(fresh, hello);
  ASSERT_TRUE(RefusalIn(refused));
  EXPECT_EQ(RefusalIn(refused)->kind(), Refusal::FINAL);
  EXPECT_NE(RefusalIn(refused)->reason().find("training has ended: for today"), std::string::npos);
}

TEST_F(Ending, StoppedAgainItDoesNotWaitForLong) {
  Start();
  Peer peer = Join("a", 1);
  WorkOf(peer);
  coordinator_->Stop("for today", now_);
  coordinator_->Stop("now", now_);
  Pass(3 * options_.heartbeat - 1);
  EXPECT_FALSE(coordinator_->ended());
  Pass(1);
  EXPECT_TRUE(coordinator_->ended());
}

// Lines that are down where training ends, for less than it takes to be called dead.
TEST(SimulatedEnding, NobodyIsAnOrphan) {
  using testing_distributed::TenRounds;
  using testing_distributed::WithFault;
  for (const int ways : {1, 2, 3}) {
    for (Milliseconds before = 0; before <= 400; before += 50) {
      SimulatorOptions options = TenRounds();
      options.faults.push_back({.kind = Fault::Kind::kStop, .at = 9000});
      const SimulatorReport report = WithFault(
          options,
          {.kind = Fault::Kind::kCut, .at = 9000 - before, .lasts = 7000, .first = 1, .count = 2, .detail = ways});
      EXPECT_EQ(report.orphans, 0u) << report.log;
      EXPECT_LT(report.coordinator_ended, 9000 + 10'500);
    }
  }
}

}  // namespace
}  // namespace crema
