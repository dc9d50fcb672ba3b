// How a coordinator runs a training, and what it starts from.
#ifndef CREMA_DISTRIBUTED_PROTOCOL_COORDINATOR_OPTIONS_H_
#define CREMA_DISTRIBUTED_PROTOCOL_COORDINATOR_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "crema/distributed.pb.h"
#include "distributed/protocol/ledger.h"
#include "distributed/protocol/messages.pb.h"
#include "distributed/protocol/transfer.h"

namespace crema {

struct CoordinatorOptions {
  uint64_t job = 0;
  int expected_workers = 1;  // the first round begins with so many
  int min_workers = 1;       // nothing is committed with fewer
  int max_workers = 1024;
  int local_steps = 10;
  uint64_t max_iter = 0;
  // Rounds end at multiples of these, too (test_interval, snapshot). 0: none.
  std::vector<uint64_t> stops = {};
  // Push the solver's history in every round; in rounds that end at a multiple of `history_every` (0: in none) and at
  // max_iter.
  bool history_always = false;
  uint64_t history_every = 0;
  Milliseconds heartbeat = 1000, dead = 10'000, stall = 300'000;
  Milliseconds join_timeout = 600'000;
  // How long a restarted coordinator looks for a worker that has the parameters it lost.
  Milliseconds recovery = 30'000;
  double straggler_factor = 0;
  // Workers go on with parameters of their own, but for rounds with histories.
  bool own_parameters = false;
  // Workers meet in pairs after each round (tournament.h); the state is that of the one with the best score.
  bool tournament = false, higher_wins = true;
  // No worker waits for others: each result is committed as it comes, and its worker goes on, at most `staleness`
  // leases ahead of the slowest. What comes are differences to the state that they were trained from.
  bool stale = false;
  uint64_t staleness = 2;
  bool drop_nonfinite = true;
  // Other than STAR: the values of a round stay with the workers, and this has the state only where it is asked for, at
  // stops, with histories, and every so many rounds.
  DistributedParameter::Topology topology = DistributedParameter::STAR;
  uint64_t keep_rounds = 100;
  // Workers get the lease of the next round, too, but before stops and histories.
  bool train_ahead = false;
  // Hold at the start, and after each round that ends at one of `stops`.
  bool hold_at_stops = false;
  TransferOptions transfer = {};
  uint64_t most_push_bytes = 0;  // larger ones are refused
  // What Welcome says.
  std::string solver = {};
  std::vector<std::string> search_folders = {};
  uint64_t seed = 0;
  std::vector<Welcome::Data> data = {}, test_data = {};
};

// What a coordinator starts from.
struct CoordinatorStart {
  uint64_t epoch = 1;
  uint64_t version = 0, iteration = 0;
  uint64_t carried = 0;  // JournalRecord.Commit.carried
  Payload state;         // parameters of `version`
  uint64_t digest = 0;
  Ledger ledger;
  // Commits that the journal knows beyond `version`, in their order: workers may still have what came of them.
  std::vector<JournalRecord::Commit> lost = {};
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_PROTOCOL_COORDINATOR_OPTIONS_H_
