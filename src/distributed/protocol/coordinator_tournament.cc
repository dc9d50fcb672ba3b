// Rounds after which workers go on with parameters of their own, or with those of the one that they met.
#include "distributed/protocol/coordinator.h"

namespace crema {

// Who goes on with what; the same whenever it is asked for this round.
void Coordinator::Meet(const std::vector<Contribution>& contributions) {
  std::vector<double> scores;
  for (const Contribution& c : contributions) scores.push_back(c.push.score());
  pairing_ = MeetInPairs(options_.seed, round_.version, scores, options_.higher_wins);
}

// For people.
void Coordinator::AccountMeeting(const std::vector<Contribution>& contributions, size_t one, WorkerInRound* round) {
  const bool met = pairing_.has_met(one), won = pairing_.has_won(one);
  const size_t other = pairing_.met[one];
  const double score = contributions[one].push.score();
  members_.at(contributions[one].member).account.OnMeeting(score, met, won);
  round->score = score;
  round->won = won;
  round->lost = pairing_.has_won(other);
  if (met) round->met = members_.at(contributions[other].member).name;
}

// What is seen of the round is of the best; who took part goes on with what won its meeting.
void Coordinator::GoOnApart(const std::vector<Contribution>& contributions, ClusterEvent* event, Milliseconds now) {
  const Push& best = contributions[pairing_.best].push;
  loss_ = event->loss = best.loss();
  event->outputs.assign(best.output().begin(), best.output().end());
  for (auto& [id, member] : members_) member.ForgetOwn();
  for (size_t i = 0; i < contributions.size(); ++i) {
    Member& member = members_.at(contributions[i].member);
    const size_t winner = pairing_.winner[i];
    const bool is_best = winner == pairing_.best;
    member.own_state = is_best ? state_ : contributions[winner].values;
    member.own_digest = is_best ? digest_ : contributions[winner].push.digest();
    member.keeps_own = winner == i && member.own_digest == contributions[i].push.digest();
    if (!member.keeps_own) continue;
    // It has what it pushed.
    member.has_serial = state_serial_;
    member.delivered = now;
  }
}

}  // namespace crema
