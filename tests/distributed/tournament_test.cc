// Who meets whom, who wins, and what the coordinator sends them.
#include "distributed/protocol/tournament.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "distributed/coordinator_fixture.h"
#include "distributed/protocol/worker.h"
#include "distributed/simulated_rounds.h"

namespace crema {
namespace {

SimulatorOptions TenRounds(int machines) {
  SimulatorOptions options = testing_distributed::TenRounds();
  options.machines = machines;
  options.coordinator.expected_workers = machines;
  return options;
}

TEST(Tournament, DrawsPairsOfAllButAnOddOne) {
  for (const size_t count : {1, 2, 3, 7, 8, 100}) {
    std::set<size_t> met;
    for (const auto& [a, b] : DrawPairs(5, 3, count)) {
      EXPECT_LT(std::max(a, b), count);
      EXPECT_TRUE(met.insert(a).second);
      EXPECT_TRUE(met.insert(b).second);
    }
    EXPECT_EQ(met.size(), count / 2 * 2);
  }
  EXPECT_EQ(DrawPairs(5, 3, 100), DrawPairs(5, 3, 100));
  EXPECT_NE(DrawPairs(5, 3, 100), DrawPairs(5, 4, 100));
  EXPECT_NE(DrawPairs(5, 3, 100), DrawPairs(6, 3, 100));
}

TEST(Tournament, EverybodyMeetsEverybodyInTime) {
  std::map<std::pair<size_t, size_t>, int> met;
  for (uint64_t version = 0; version < 3000; ++version) {
    for (const auto& [a, b] : DrawPairs(1, version, 5)) ++met[std::minmax(a, b)];
  }
  EXPECT_EQ(met.size(), 10u);
  for (const auto& [pair, times] : met) EXPECT_NEAR(times, 600, 150) << pair.first << " and " << pair.second;
}

TEST(Tournament, BothGoOnWithTheBetterOne) {
  const std::vector<double> scores = {0.1, 0.9, 0.5, 0.5, 0.3, 0.9, 0.2};
  for (uint64_t version = 0; version < 50; ++version) {
    for (const bool higher : {true, false}) {
      const Pairing pairing = MeetInPairs(8, version, scores, higher);
      EXPECT_EQ(pairing.best, higher ? 1u : 0u);
      std::vector<bool> met(scores.size());
      for (const auto& [a, b] : DrawPairs(8, version, scores.size())) {
        met[a] = met[b] = true;
        const double best = higher ? std::max(scores[a], scores[b]) : std::min(scores[a], scores[b]);
        EXPECT_EQ(scores[pairing.winner[a]], best);
        EXPECT_EQ(scores[pairing.winner[b]], best);
        EXPECT_EQ(pairing.winner[a] == pairing.winner[b], scores[a] != scores[b]) << "of equal ones each keeps its own";
        EXPECT_EQ(pairing.met[a], b);
        EXPECT_EQ(pairing.met[b], a);
        EXPECT_EQ(pairing.has_won(a), scores[a] != scores[b] && scores[a] == best);
        EXPECT_EQ(pairing.has_won(b), scores[a] != scores[b] && scores[b] == best);
      }
      for (size_t i = 0; i < scores.size(); ++i) {
        if (!met[i]) {
          EXPECT_EQ(pairing.winner[i], i);
          EXPECT_FALSE(pairing.has_met(i) || pairing.has_won(i));
        }
      }
    }
  }
}

class TournamentCoordinator : public CoordinatorTest {
 protected:
  TournamentCoordinator() {
    options_.tournament = true;
    options_.seed = 4;
    options_.expected_workers = 3;
    options_.max_workers = 5;
  }

  // What training makes of the state that this peer has.
  void Bring(Peer& peer, const Work& work, double score, const Payload& from = ParametersOf({}, kWords)) {
    Tally tally = TallyOf(from);
    tally.Add(StepsOf(work));
    const Payload values = ParametersOf(tally, kWords);
    ClusterMessage push = PushOf(work, ++pushes_, values);
    push.mutable_push()->set_score(score);
    push.mutable_push()->set_loss(score);
    push.mutable_push()->add_output(static_cast<float>(10 * score));
    Say(peer, push);
    SendValues(peer, pushes_, values);
    made_[peer.route] = values;
  }

  std::vector<ClusterEvent> Commits() {
    std::vector<ClusterEvent> commits;
    for (ClusterEvent& event : coordinator_->TakeEvents()) {
      if (event.kind == ClusterEvent::Kind::kCommitted) commits.push_back(std::move(event));
    }
    return commits;
  }

  uint64_t pushes_ = 0;
  std::map<std::string, Payload> made_;
};

TEST_F(TournamentCoordinator, LosersGetWhatWonAndWinnersNothing) {
  for (const bool higher : {true, false}) {
    options_.higher_wins = higher;
    pushes_ = 0;
    Start();
    std::vector<Peer> peers = {Join("a", 1), Join("b", 2), Join("c", 3)};
    for (Peer& peer : peers) WorkOf(peer);
    std::vector<Work> works;
    for (Peer& peer : peers) works.push_back(WorkOf(peer));
    const std::vector<double> scores = {0.2, 0.7, 0.4};
    for (size_t i = 0; i < peers.size(); ++i) Bring(peers[i], works[i], scores[i]);
    ASSERT_EQ(coordinator_->version(), 1u);
    const size_t best = higher ? 1 : 0;
    const std::string routes[] = {"a", "b", "c"};
    EXPECT_EQ(coordinator_->digest(), DigestOf(*made_[routes[best]]));
    EXPECT_EQ(*coordinator_->state(), *made_[routes[best]]);
    const std::vector<ClusterEvent> commits = Commits();
    ASSERT_EQ(commits.size(), 1u);
    EXPECT_EQ(commits[0].loss, scores[best]) << "what is displayed is of the best";
    EXPECT_EQ(commits[0].outputs, std::vector<float>{static_cast<float>(10 * scores[best])});
    EXPECT_EQ(commits[0].workers, 3);
    const Pairing pairing = MeetInPairs(4, 0, scores, higher);
    int kept = 0;
    for (size_t i = 0; i < peers.size(); ++i) {
      const Work work = WorkOf(peers[i]);
      EXPECT_EQ(work.version(), 1u);
      EXPECT_EQ(work.digest(), DigestOf(*made_[routes[pairing.winner[i]]])) << routes[i];
      EXPECT_EQ(work.keep_own(), pairing.winner[i] == i);
      kept += work.keep_own();
    }
    EXPECT_EQ(kept, 2) << "the winner of the pair, and the odd one";
    // Who comes now begins with the best.
    Peer late = Join("d", 4);
    const Work work = WorkOf(late);
    EXPECT_EQ(work.digest(), coordinator_->digest());
    EXPECT_FALSE(work.keep_own());
    EXPECT_EQ(work.form(), Work::WHOLE);
  }
}

TEST_F(TournamentCoordinator, PeopleSeeWhoMetWhomAndWhoWon) {
  Start();
  std::vector<Peer> peers = {Join("a", 1), Join("b", 2), Join("c", 3)};
  for (Peer& peer : peers) WorkOf(peer);
  EXPECT_FALSE(coordinator_->Status(now_).worker(0).has_score());
  const std::vector<double> scores = {0.2, 0.7, 0.4};
  for (size_t i = 0; i < peers.size(); ++i) Bring(peers[i], WorkOf(peers[i]), scores[i]);
  const std::vector<ClusterEvent> commits = Commits();
  ASSERT_EQ(commits.size(), 1u);
  const Pairing pairing = MeetInPairs(4, 0, scores, true);
  const std::string routes[] = {"a", "b", "c"};
  const ClusterStatus status = coordinator_->Status(now_);
  const ClusterSummary summary = coordinator_->Summary(now_);
  for (size_t i = 0; i < 3; ++i) {
    const WorkerInRound& round = commits[0].by_worker[i];
    const bool met = pairing.met[i] != i;
    EXPECT_EQ(round.score, scores[i]);
    EXPECT_EQ(round.met, met ? routes[pairing.met[i]] : "");
    EXPECT_EQ(round.won, met && pairing.winner[i] == i);
    EXPECT_EQ(round.lost, pairing.winner[i] != i);
    const ClusterStatus::Worker& worker = status.worker(static_cast<int>(i));
    EXPECT_EQ(worker.score(), scores[i]);
    EXPECT_EQ(worker.rounds_met(), met);
    EXPECT_EQ(worker.rounds_won(), round.won);
    EXPECT_EQ(summary.workers[i].score, scores[i]);
    EXPECT_EQ(summary.workers[i].rounds_met, met);
    EXPECT_EQ(summary.workers[i].rounds_won, round.won);
  }
}

TEST_F(TournamentCoordinator, AWinnerThatLostItsOwnIsSentIt) {
  Start();
  std::vector<Peer> peers = {Join("a", 1), Join("b", 2), Join("c", 3)};
  for (Peer& peer : peers) WorkOf(peer);
  const std::vector<double> scores = {0.2, 0.7, 0.4};
  for (size_t i = 0; i < peers.size(); ++i) Bring(peers[i], WorkOf(peers[i]), scores[i]);
  ASSERT_EQ(coordinator_->version(), 1u);
  const Work before = WorkOf(peers[1]);
  ASSERT_TRUE(before.keep_own());
  now_ += 3 * options_.heartbeat;
  for (Peer& peer : peers) Say(peer, Beat());
  const Work after = WorkOf(peers[1]);
  EXPECT_NE(after.state(), before.state());
  EXPECT_EQ(after.digest(), before.digest());
}

TEST_F(TournamentCoordinator, AScoreThatIsNotFiniteLosesThePush) {
  Start();
  std::vector<Peer> peers = {Join("a", 1), Join("b", 2), Join("c", 3)};
  for (Peer& peer : peers) WorkOf(peer);
  Bring(peers[0], WorkOf(peers[0]), 0.3);
  Bring(peers[1], WorkOf(peers[1]), std::numeric_limits<double>::quiet_NaN());
  Bring(peers[2], WorkOf(peers[2]), 0.2);
  ASSERT_EQ(coordinator_->version(), 1u);
  EXPECT_EQ(*coordinator_->state(), *made_["a"]);
  EXPECT_EQ(WorkOf(peers[1]).digest(), coordinator_->digest()) << "it begins anew from the best";
  EXPECT_EQ(WorkOf(peers[2]).digest(), coordinator_->digest()) << "it met a";
  EXPECT_EQ(journal_.records.back().commit().share_size(), 2);
}

TEST(TournamentSimulator, RoundsAreAllOrNothing) {
  for (const int machines : {2, 3, 8}) {
    SimulatorOptions options = TenRounds(machines);
    options.coordinator.tournament = true;
    options.coordinator.history_always = false;
    options.coordinator.history_every = 0;
    const SimulatorReport report = Simulate(options);
    EXPECT_EQ(report.violation, "") << report.log;
    EXPECT_TRUE(report.completed);
    EXPECT_EQ(report.version, 10u);
    if (machines > 2) {
      EXPECT_GT(report.apart, 5u);
    }
  }
}

TEST(TournamentSimulator, WhoeverDiesTakesOnlyItsOwnAlong) {
  using Kind = Fault::Kind;
  for (const Kind kind : {Kind::kKillWorkers, Kind::kPauseWorkers, Kind::kBreakLinks, Kind::kKillCoordinator}) {
    for (uint64_t seed = 0; seed < 30; ++seed) {
      SimulatorOptions options = TenRounds(5);
      options.seed = seed;
      options.coordinator.tournament = true;
      options.coordinator.history_always = false;
      options.coordinator.history_every = 0;
      options.coordinator.min_workers = 2;
      Fault fault;
      fault.kind = kind;
      fault.at = 3000 + 200 * static_cast<Milliseconds>(seed);
      fault.lasts = 4000;
      fault.first = static_cast<int>(seed % 5);
      fault.detail = kind == Kind::kBreakLinks ? 3 : static_cast<int>(seed % 4);
      options.faults = {fault};
      options.healed = fault.at + fault.lasts + 1;
      const SimulatorReport report = Simulate(options);
      EXPECT_EQ(report.violation, "") << static_cast<int>(kind) << " " << seed << "\n" << report.log;
      EXPECT_TRUE(report.completed);
    }
  }
}

}  // namespace
}  // namespace crema
