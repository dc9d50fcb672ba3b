// The coordinator where workers do not wait for each other, spoken to by hand.
#include <gtest/gtest.h>

#include "distributed/coordinator_fixture.h"

namespace crema {
namespace {

class StaleCoordinator : public CoordinatorTest {
 protected:
  StaleCoordinator() {
    options_.stale = true;
    options_.staleness = 1;
    options_.expected_workers = 2;
  }

  // What the steps of a lease add, whatever the parameters are.
  static Payload DifferenceOf(const Work& work) {
    Tally tally;
    tally.Add(StepsOf(work));
    return ParametersOf(tally, kWords);
  }

  // Push identities grow, as those of workers do.
  void Bring(Peer& peer, const Work& work) {
    const uint64_t id = ++pushes_;
    Say(peer, PushOf(work, id, DifferenceOf(work)));
    SendValues(peer, id, DifferenceOf(work));
  }

  const JournalRecord::Commit& LastCommit() const { return journal_.records.back().commit(); }

  std::vector<ClusterEvent> Commits() {
    std::vector<ClusterEvent> commits;
    for (ClusterEvent& event : coordinator_->TakeEvents()) {
      if (event.kind == ClusterEvent::Kind::kCommitted) commits.push_back(std::move(event));
    }
    return commits;
  }

  uint64_t pushes_ = 0;
};

TEST_F(StaleCoordinator, CommitsEachResultWhenItComes) {
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  WorkOf(a);
  const Work of_b = WorkOf(b), of_a = WorkOf(a);
  ASSERT_TRUE(of_a.has_lease() && of_b.has_lease());
  EXPECT_EQ(of_a.stride(), 20u);
  Bring(a, of_a);
  EXPECT_EQ(coordinator_->version(), 1u);
  EXPECT_EQ(coordinator_->iteration(), 5u) << "ten steps of one of two workers";
  const Work next = WorkOf(a);
  EXPECT_EQ(next.version(), 1u);
  EXPECT_EQ(next.iteration(), 5u);
  EXPECT_EQ(StepsOf(next), (Steps{20, 10}));
  // Nothing changes for the other one, and what it makes of version 0 counts.
  const Work still = WorkOf(b);
  EXPECT_EQ(still.version(), 0u);
  EXPECT_EQ(still.digest(), of_b.digest());
  EXPECT_EQ(still.iteration(), 0u);
  EXPECT_EQ(still.lease().serial(), of_b.lease().serial());
  Bring(b, of_b);
  EXPECT_EQ(coordinator_->version(), 2u);
  EXPECT_EQ(coordinator_->iteration(), 10u);
  Tally both;
  both.Add({0, 20});
  EXPECT_EQ(*coordinator_->state(), *ParametersOf(both, kWords));
  EXPECT_EQ(Commits().size(), 2u);
}

TEST_F(StaleCoordinator, ForAVersionThatTheLeaseDoesNotHaveNothingCounts) {
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  WorkOf(a);
  Work of_b = WorkOf(b);
  Bring(a, WorkOf(a));
  of_b.set_version(1);
  Bring(b, of_b);
  EXPECT_EQ(coordinator_->version(), 1u);
}

TEST_F(StaleCoordinator, OneWorkerMayBeAheadByStaleness) {
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  WorkOf(a);
  const Work of_b = WorkOf(b);
  Bring(a, WorkOf(a));
  Bring(a, WorkOf(a));
  EXPECT_EQ(coordinator_->version(), 2u);
  EXPECT_FALSE(WorkOf(a).has_lease()) << "it has done two, the other one none";
  Bring(b, of_b);
  EXPECT_TRUE(WorkOf(a).has_lease());
  EXPECT_TRUE(WorkOf(b).has_lease());
}

TEST_F(StaleCoordinator, WhoJoinsBeginsWhereTheSlowestIs) {
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  WorkOf(a);
  const Work of_b = WorkOf(b);
  Bring(a, WorkOf(a));
  Bring(b, of_b);
  Bring(b, WorkOf(b));
  Peer c = Join("c", 3);
  const Work of_c = WorkOf(c);
  ASSERT_TRUE(of_c.has_lease());
  EXPECT_EQ(of_c.version(), 3u);
  Bring(c, of_c);
  EXPECT_TRUE(WorkOf(c).has_lease());
  Bring(c, WorkOf(c));
  EXPECT_FALSE(WorkOf(c).has_lease()) << "two ahead of the first, as which it began";
}

TEST_F(StaleCoordinator, LandsOnEachStopOnceAndCarriesTheRest) {
  options_.stops = {5};
  options_.max_iter = 20;
  options_.staleness = UINT32_MAX;
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  WorkOf(a);
  const Work of_b = WorkOf(b);
  EXPECT_EQ(StepsOf(of_b).count, 5u) << "no lease is longer than the way to the next stop";
  Bring(a, WorkOf(a));
  EXPECT_EQ(coordinator_->iteration(), 2u);
  EXPECT_EQ(LastCommit().carried(), 1u);
  Bring(a, WorkOf(a));
  EXPECT_EQ(coordinator_->iteration(), 4u);
  EXPECT_EQ(LastCommit().carried(), 0u);
  EXPECT_EQ(StepsOf(WorkOf(a)).count, 1u);
  Bring(a, WorkOf(a));
  EXPECT_EQ(coordinator_->iteration(), 4u) << "an iteration that is not over repeats";
  Bring(b, of_b);
  EXPECT_EQ(coordinator_->iteration(), 5u);
  EXPECT_EQ(LastCommit().carried(), 4u);
  uint64_t steps = 0, end = 0;
  std::vector<uint64_t> stops;
  while (coordinator_->phase() == Coordinator::Phase::kTraining) {
    const Work work = WorkOf(a);
    ASSERT_TRUE(work.has_lease());
    Bring(a, work);
  }
  for (const ClusterEvent& event : Commits()) {
    EXPECT_EQ(event.round.iteration, end) << "none is left out";
    end += event.round.steps;
    if (event.round.steps > 0 && end % 5 == 0) stops.push_back(end);
    steps += event.round.steps;
  }
  EXPECT_EQ(stops, (std::vector<uint64_t>{5, 10, 15, 20}));
  EXPECT_EQ(steps, 20u);
  EXPECT_TRUE(coordinator_->completed());
  EXPECT_EQ(coordinator_->ledger().leases(), 0u);
}

TEST_F(StaleCoordinator, GoesOnWithWhatASnapshotCarried) {
  options_.min_workers = 2;
  CoordinatorStart start;
  start.iteration = 3;
  start.carried = 1;
  Start(std::move(start));
  Peer a = Join("a", 1), b = Join("b", 2);
  WorkOf(a);
  WorkOf(b);
  Work work = WorkOf(a);
  EXPECT_EQ(work.iteration(), 3u);
  Bring(a, work);
  EXPECT_EQ(coordinator_->iteration(), 8u);
  EXPECT_EQ(coordinator_->carried(), 1u);
}

TEST_F(StaleCoordinator, DrainWaitsForLeasesAndGivesNone) {
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  WorkOf(a);
  const Work of_b = WorkOf(b), of_a = WorkOf(a);
  Bring(a, of_a);
  const Work next = WorkOf(a);
  coordinator_->Drain("enough", now_);
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kTraining);
  Bring(b, of_b);
  EXPECT_EQ(coordinator_->version(), 2u);
  EXPECT_FALSE(WorkOf(b).has_lease());
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kTraining);
  Bring(a, next);
  EXPECT_EQ(coordinator_->version(), 3u);
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kEnding);
  EXPECT_EQ(coordinator_->ledger().unused().size(), 0u);
}

TEST_F(StaleCoordinator, AFailedResultIsTrainedByOthers) {
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  WorkOf(a);
  WorkOf(b);
  Work work = WorkOf(a);
  const Steps steps = StepsOf(work);
  for (int failure = 1; failure <= 5; ++failure) {
    ClusterMessage message = PushOf(work, ++pushes_, DifferenceOf(work));
    message.mutable_push()->set_failure("the loss is nan");
    Say(a, message);
    if (failure == 5) break;
    EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kTraining);
    const Work next = WorkOf(a);
    EXPECT_NE(next.lease().serial(), work.lease().serial());
    EXPECT_EQ(StepsOf(next), steps) << "they are not left out";
    work = next;
  }
  EXPECT_EQ(coordinator_->version(), 0u);
  EXPECT_EQ(coordinator_->phase(), Coordinator::Phase::kEnding);
  EXPECT_NE(coordinator_->failure().find("the loss is nan"), std::string::npos);
}

TEST_F(StaleCoordinator, WithAFullDiskResultsWait) {
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  WorkOf(a);
  const Work of_b = WorkOf(b), of_a = WorkOf(a);
  journal_.full = true;
  Bring(a, of_a);
  Bring(b, of_b);
  EXPECT_EQ(coordinator_->version(), 0u);
  journal_.full = false;
  now_ += 2000;
  coordinator_->OnTick(now_);
  EXPECT_EQ(coordinator_->version(), 1u) << "both at once";
  EXPECT_EQ(coordinator_->iteration(), 10u);
  EXPECT_EQ(LastCommit().share_size(), 2);
}

TEST_F(StaleCoordinator, WithTooFewWorkersNothingIsCommitted) {
  options_.min_workers = 2;
  Start();
  Peer a = Join("a", 1), b = Join("b", 2);
  WorkOf(a);
  WorkOf(b);
  const Work of_a = WorkOf(a);
  ClusterMessage leave;
  leave.mutable_leave()->set_reason("stopped");
  Say(b, leave);
  Bring(a, of_a);
  EXPECT_EQ(coordinator_->version(), 0u);
  Peer c = Join("c", 3);
  EXPECT_TRUE(WorkOf(c).has_lease());
  EXPECT_EQ(coordinator_->version(), 1u);
}

}  // namespace
}  // namespace crema
