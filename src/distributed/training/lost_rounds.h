// What becomes of rounds that a journal knows and the snapshot that training goes on from does not have.
#ifndef CREMA_DISTRIBUTED_TRAINING_LOST_ROUNDS_H_
#define CREMA_DISTRIBUTED_TRAINING_LOST_ROUNDS_H_

#include <string>

#include "crema/distributed.pb.h"
#include "distributed/journal/journal_replay.h"
#include "distributed/training/state_layout.h"

namespace crema {

// Why no worker has all that came of such rounds; empty: some may. `updates_with_history`: the coordinator's solver
// updates the net, and by what it remembers.
std::string WhyNobodyHasRounds(const DistributedParameter& settings, const StateLayout& layout,
                               bool updates_with_history);

// Gives up what cannot be had from workers: with a reason `why_not` (or "") all of replay->lost. Returns the sentence
// about it; empty: nothing is given up.
std::string GiveUpRounds(const std::string& why_not, JournalReplay* replay);

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_TRAINING_LOST_ROUNDS_H_
