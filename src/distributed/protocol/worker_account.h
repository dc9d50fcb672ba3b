// What a coordinator notes about a worker for people; nothing that it decides depends on it.
#ifndef CREMA_DISTRIBUTED_PROTOCOL_WORKER_ACCOUNT_H_
#define CREMA_DISTRIBUTED_PROTOCOL_WORKER_ACCOUNT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "crema/observer.h"
#include "distributed/protocol/transfer.h"

namespace crema {

// Sums over rounds that it took part in, and where it is in the open one.
class WorkerAccount {
 public:
  // A round began for it; one that was not committed is forgotten.
  void Begin(Milliseconds now);
  // Parameters began to be sent to it; it has them.
  void OnParametersSent(Milliseconds now);
  void OnParametersReceived(Milliseconds now);
  // It has results that took so long. Said again in the same round, with values on another way, the first time counts.
  void OnTrained(double seconds, Milliseconds now);
  // It was told to exchange them with others; an earlier exchange came to nothing.
  void OnExchange(Milliseconds now);
  // They are where they should be.
  void OnDelivered(Milliseconds now) { times_.delivered = now; }
  // It had nothing to do for so long, between rounds.
  void OnWaited(Milliseconds time) { waited_ += time; }
  // They became part of a round. Bytes are those since it joined.
  WorkerInRound Commit(uint64_t examples, uint64_t staleness, bool trains_ahead, uint64_t bytes_sent,
                       uint64_t bytes_received, Milliseconds now);
  // In a tournament, with that: what it reached, and whether it met another one and won.
  void OnMeeting(double score, bool met, bool won);
  // They did not: came late, or were dropped.
  WorkerInRound Miss(bool late, uint64_t bytes_sent, uint64_t bytes_received);

  uint64_t examples() const { return examples_; }
  uint64_t rounds() const { return rounds_; }
  uint64_t rounds_late() const { return rounds_late_; }
  const std::optional<double>& score() const { return score_; }
  uint64_t rounds_met() const { return rounds_met_; }
  uint64_t rounds_won() const { return rounds_won_; }
  // Seconds: for what was committed; until others were as far; parameters or results were on their way. With those that
  // train ahead the last happens meanwhile.
  double trained() const { return trained_; }
  double waited() const { return static_cast<double>(waited_) / 1000; }
  double communicated() const { return static_cast<double>(communicated_) / 1000; }

 private:
  WorkerInRound Close(uint64_t bytes_sent, uint64_t bytes_received);

  WorkerInRound times_;
  uint64_t examples_ = 0, rounds_ = 0, rounds_late_ = 0, bytes_sent_ = 0, bytes_received_ = 0;
  std::optional<double> score_;
  uint64_t rounds_met_ = 0, rounds_won_ = 0;
  double trained_ = 0;
  Milliseconds waited_ = 0, communicated_ = 0;
  Milliseconds ahead_since_ = 0;  // trains ahead of results that were there then; 0: does not
};

struct ClusterAccounts {
  std::map<uint64_t, ClusterSummary::Worker> gone;  // by process
  std::vector<Milliseconds> committed;              // the last rounds
  int contributions = 0;                            // to the last one
  bool among_workers = false;                       // the last one was
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_PROTOCOL_WORKER_ACCOUNT_H_
