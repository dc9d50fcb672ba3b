// What people are told about workers.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "distributed/coordinator_fixture.h"
#include "distributed/protocol/worker_account.h"
#include "distributed/sockets/inquiry.h"

namespace crema {
namespace {

TEST(WorkerAccount, TellsWaitingFromSending) {
  WorkerAccount account;
  account.Begin(1000);
  account.OnParametersSent(1000);
  account.OnParametersReceived(1200);
  account.OnTrained(3, 4500);
  account.OnTrained(9, 4600);  // the same again
  account.OnDelivered(5000);
  const WorkerInRound round = account.Commit(80, 0, false, 10, 20, 6000);
  EXPECT_EQ(round.began, 1000);
  EXPECT_EQ(round.parameters_sent, 1000);
  EXPECT_EQ(round.parameters_received, 1200);
  EXPECT_EQ(round.trained, 4500);
  EXPECT_EQ(round.train_seconds, 3);
  EXPECT_EQ(round.delivered, 5000);
  EXPECT_EQ(account.trained(), 3);
  EXPECT_EQ(account.communicated(), 0.7);
  EXPECT_EQ(account.waited(), 1);
  account.Begin(6000);
  account.OnTrained(1, 7000);
  account.OnDelivered(7000);
  const WorkerInRound next = account.Commit(80, 0, false, 15, 26, 7000);
  EXPECT_EQ(next.parameters_sent, 0);
  EXPECT_EQ(next.bytes_sent, 5u);
  EXPECT_EQ(next.bytes_received, 6u);
  EXPECT_EQ(account.examples(), 160u);
  EXPECT_EQ(account.rounds(), 2u);
  EXPECT_EQ(account.waited(), 1);
}

TEST(WorkerAccount, AnExchangeIsCommunicationAndWhatIsAroundItWaiting) {
  WorkerAccount account;
  account.Begin(0);
  account.OnTrained(2, 2000);
  account.OnExchange(2500);
  account.OnExchange(3000);  // the first came to nothing
  account.OnDelivered(3400);
  account.Commit(80, 0, false, 0, 0, 3500);
  EXPECT_EQ(account.communicated(), 0.4);
  EXPECT_EQ(account.waited(), 1.1);
}

TEST(WorkerAccount, WhoTrainsAheadDoesNotWait) {
  WorkerAccount account;
  account.Begin(0);
  account.OnTrained(1, 1000);
  account.OnDelivered(1500);
  account.Commit(80, 0, true, 0, 0, 4000);
  account.Begin(4000);
  account.OnTrained(2, 3000 + 250);  // began 250 behind the end of the first
  account.OnDelivered(4100);
  account.Commit(80, 1, false, 0, 0, 4200);
  EXPECT_EQ(account.communicated(), 0.5 + 0.85);
  EXPECT_EQ(account.waited(), 0.25 + 0.1);
}

TEST(WorkerAccount, WhatIsMissedIsNoRound) {
  WorkerAccount account;
  account.Begin(0);
  EXPECT_TRUE(account.Miss(true, 0, 0).late);
  account.Begin(10);
  EXPECT_TRUE(account.Miss(false, 0, 0).dropped);
  EXPECT_EQ(account.rounds(), 0u);
  EXPECT_EQ(account.rounds_late(), 1u);
  // A round that was not committed leaves nothing behind.
  account.Begin(20);
  account.OnTrained(1, 1020);
  account.Begin(3000);
  account.OnTrained(1, 4000);
  EXPECT_EQ(account.Commit(80, 0, false, 0, 0, 4000).trained, 4000);
}

class Accounts : public CoordinatorTest {
 protected:
  std::vector<ClusterEvent> Committed() {
    std::vector<ClusterEvent> events = coordinator_->TakeEvents();
    std::erase_if(events, [](const ClusterEvent& e) { return e.kind != ClusterEvent::Kind::kCommitted; });
    return events;
  }
  void Train(Peer& peer, const Work& work, uint64_t id, double seconds) {
    const Payload values = Trained(work);
    ClusterMessage push = PushOf(work, id, values);
    push.mutable_push()->set_seconds(seconds);
    push.mutable_push()->set_trained_from(work.version());
    Say(peer, push);
    now_ += 100;
    SendValues(peer, id, values);
  }
};

TEST_F(Accounts, ACommitSaysWhatEachDid) {
  options_.expected_workers = 2;
  options_.straggler_factor = 2;
  options_.min_workers = 1;
  Start();
  Peer one = Join("one", 1), two = Join("two", 2);
  WorkOf(one);
  Work second = WorkOf(two), first = WorkOf(one);
  const Milliseconds opened = now_;
  now_ += 1000;
  Train(one, first, 1, 0.9);
  now_ += 500;
  Train(two, second, 1, 1.4);
  std::vector<ClusterEvent> events = Committed();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].opened, opened);
  EXPECT_EQ(events[0].closed, now_);
  ASSERT_EQ(events[0].by_worker.size(), 2u);
  EXPECT_EQ(events[0].by_worker[0].name, "one");
  EXPECT_EQ(events[0].by_worker[0].place, 0u);
  EXPECT_EQ(events[0].by_worker[0].trained, opened + 1000);
  EXPECT_EQ(events[0].by_worker[0].delivered, opened + 1100);
  EXPECT_EQ(events[0].by_worker[0].train_seconds, 0.9);
  EXPECT_GT(events[0].by_worker[0].bytes_sent, 0u);
  EXPECT_EQ(events[0].by_worker[1].member, two.member);
  ClusterStatus status = coordinator_->Status(now_);
  EXPECT_DOUBLE_EQ(status.worker(0).waited(), 0.6);
  EXPECT_DOUBLE_EQ(status.worker(0).communicated(), 0.1);
  EXPECT_EQ(status.contributions(), 2u);
  EXPECT_FALSE(status.among_workers());
  EXPECT_EQ(status.topology(), "STAR");
  EXPECT_EQ(status.worker(0).round(), 2u);

  // In the next one, the second is late.
  const Milliseconds closed = events[0].closed;
  first = WorkOf(one);
  now_ += 1000;
  Train(one, first, 2, 1);
  Say(two, Beat());
  Pass(5000);
  Say(one, Beat());
  Say(two, Beat());
  coordinator_->OnTick(now_);
  events = Committed();
  ASSERT_EQ(events.size(), 1u);
  ASSERT_EQ(events[0].by_worker.size(), 2u);
  EXPECT_FALSE(events[0].by_worker[0].late);
  EXPECT_TRUE(events[0].by_worker[1].late);
  status = coordinator_->Status(now_);
  EXPECT_EQ(status.worker(1).state(), "late");
  EXPECT_EQ(status.worker(1).staleness(), 1u);
  EXPECT_EQ(status.worker(1).rounds_late(), 1u);
  EXPECT_EQ(status.worker(0).staleness(), 0u);
  EXPECT_NEAR(status.rounds_per_minute(), 60'000.0 / static_cast<double>(events[0].closed - closed), 1e-9);
}

TEST_F(Accounts, WhoLeftIsInTheSummary) {
  Start();
  Peer one = Join("one", 1);
  WorkOf(one);
  Train(one, WorkOf(one), 1, 0.5);
  ClusterMessage leave;
  leave.mutable_leave()->set_reason("tired");
  Say(one, leave);
  ClusterSummary summary = coordinator_->Summary(now_);
  ASSERT_EQ(summary.workers.size(), 1u);
  EXPECT_TRUE(summary.workers[0].left);
  EXPECT_EQ(summary.workers[0].rounds, 1u);
  // It comes back: the same worker.
  Peer again{"again", 1, 999, 0, 0};
  for (const Outgoing& outgoing : Say(again, HelloOf(again))) {
    if (outgoing.message.has_welcome()) again.member = outgoing.message.member();
  }
  Say(again, Beat());
  Peer other = Join("other", 2);
  Say(other, Beat());
  summary = coordinator_->Summary(now_ + 1000);
  ASSERT_EQ(summary.workers.size(), 2u);
  EXPECT_FALSE(summary.workers[0].left);
  EXPECT_EQ(summary.workers[0].rounds, 1u);
  EXPECT_EQ(summary.workers[0].examples, 1u);
  EXPECT_NEAR(summary.workers[0].seconds, 1.1, 1e-9);
  EXPECT_EQ(summary.workers[1].name, "other");
  EXPECT_EQ(summary.workers[1].rounds, 0u);
}

TEST(StatusText, IsNarrow) {
  ClusterStatus status;
  status.set_phase("waiting for workers");
  status.set_iteration(12345678);
  status.set_max_iter(12345678);
  status.set_version(1234567);
  status.set_loss(-0.0123456);
  status.set_rounds_per_minute(1234.5);
  status.set_topology("SHARDED");
  status.set_contributions(1000);
  status.set_among_workers(true);
  ClusterStatus::Worker& worker = *status.add_worker();
  worker.set_slot(1023);
  worker.set_name("a-machine-with-a-long-name.example.org:4711");
  worker.set_state("averaging");
  worker.set_round(1234567);
  worker.set_staleness(2);
  worker.set_examples(12345678);
  worker.set_examples_per_second(12345.6);
  worker.set_present(200);
  worker.set_waited(100);
  worker.set_communicated(30);
  worker.set_bytes_sent(12'345'600'000);
  worker.set_bytes_received(12'345'600'000);
  worker.set_silent(999);
  const std::string text = TextOf(status);
  std::istringstream lines(text);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 112u) << line;
  EXPECT_EQ(count, 6);
  for (const char* part :
       {"topology SHARDED, 1234.5 rounds a minute; the last of 1000 workers, values went among them\n", " 50%   15% ",
        " a-mach~rg:4711 "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_EQ(TextOf(ClusterStatus()).find("the last of"), std::string::npos);
  EXPECT_EQ(text.find("score"), std::string::npos);
}

TEST(StatusText, OfATournamentHasScores) {
  ClusterStatus status;
  for (int i = 0; i < 2; ++i) {
    ClusterStatus::Worker& worker = *status.add_worker();
    worker.set_slot(1023);
    worker.set_name("a-machine-with-a-long-name.example.org:4711");
    worker.set_state("training");
    worker.set_round(123456);
    worker.set_examples(12345678);
    worker.set_examples_per_second(12345.6);
    worker.set_bytes_sent(1'234'500'000);
    worker.set_bytes_received(123'400'000);
    worker.set_silent(999);
    worker.set_rounds_met(i == 0 ? 9999 : 0);
    worker.set_rounds_won(i == 0 ? 4321 : 0);
    if (i == 0) worker.set_score(0.98765);
  }
  const std::string text = TextOf(status);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 112u) << line;
  for (const char* part : {"   score        won\n", "  0.9877  4321/9999\n", "       -        0/0\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

}  // namespace
}  // namespace crema
