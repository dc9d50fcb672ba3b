#include "distributed/journal/journal_replay.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "crema/error.h"

namespace crema {

namespace {

[[noreturn]] void Contradiction(const std::string& what) {
  throw UserError(
      "the journal and the snapshot do not fit each other: " + what +
      "; start from a snapshot of this training, or move the journal (PREFIX_cluster.journal) away to go on "
      "from this snapshot alone");
}

// Whether the steps of these commits can be used, one after the other, in a ledger like this.
void CheckSteps(Ledger ledger, const std::vector<JournalRecord::Commit>& commits) {
  for (const JournalRecord::Commit& commit : commits) {
    for (const JournalRecord::Commit::Share& share : commit.share()) {
      if (!ledger.TakeThese(StepsOf(share.steps()))) {
        Contradiction("round " + std::to_string(commit.version()) + " uses steps from " +
                      std::to_string(share.steps().first()) + " on that were used before");
      }
      ledger.Use(StepsOf(share.steps()));
    }
  }
}

}  // namespace

bool IsOfOthers(const JournalReplay& replay, uint64_t iteration, const std::vector<uint64_t>& digests) {
  if (replay.iteration.value_or(iteration) != iteration) {
    Contradiction("round " + std::to_string(replay.version) + " led to iteration " + std::to_string(*replay.iteration) +
                  ", and the snapshot is of iteration " + std::to_string(iteration));
  }
  return replay.digest && std::find(digests.begin(), digests.end(), *replay.digest) == digests.end();
}

JournalReplayer::JournalReplayer(ClusterState snapshot) : snapshot_(std::move(snapshot)) {
  replay_.job = snapshot_.job();
  replay_.version = snapshot_.version();
}

void JournalReplayer::Add(const JournalRecord& record) {
  if (record.has_start()) Begin(record.start());
  if (record.has_commit()) Commit(record.commit());
}

void JournalReplayer::Begin(const JournalRecord::Start& start) {
  if (replay_.job != 0 && start.job() != replay_.job) Contradiction("they are of different trainings");
  replay_.job = start.job();
  replay_.epoch = std::max(replay_.epoch, start.epoch() + 1);
  // A first start may be from a snapshot of which only this journal knows nothing.
  if (begun_ && start.version() > last_) {
    Contradiction("a start from round " + std::to_string(start.version()) + " follows round " + std::to_string(last_));
  }
  while (!replay_.lost.empty() && replay_.lost.back().version() > start.version()) replay_.lost.pop_back();
  last_ = start.version();
  begun_ = true;
  if (last_ < replay_.version) replay_.digest.reset();
  if (last_ == replay_.version && !replay_.digest) replay_.iteration = start.iteration();
}

void JournalReplayer::Commit(const JournalRecord::Commit& commit) {
  if (!begun_ || commit.version() != last_ + 1) {
    Contradiction("round " + std::to_string(commit.version()) + " follows round " + std::to_string(last_));
  }
  last_ = commit.version();
  if (last_ == replay_.version) {
    replay_.iteration = commit.iteration();
    replay_.digest = commit.digest();
  }
  if (last_ > replay_.version) replay_.lost.push_back(commit);
}

JournalReplay JournalReplayer::Finish() {
  const uint64_t version = replay_.version;
  if (begun_ && version > last_) {
    Contradiction("the snapshot is of round " + std::to_string(version) + ", the journal ends with round " +
                  std::to_string(last_));
  }
  if (last_ > version && (replay_.lost.empty() || replay_.lost.front().version() != version + 1)) {
    replay_.out_of_reach = last_;
    replay_.lost.clear();
  }
  std::vector<Steps> unused;
  for (const StepRange& range : snapshot_.unused()) unused.push_back(StepsOf(range));
  try {
    replay_.ledger = Ledger(snapshot_.next_step(), unused);
  } catch (const std::invalid_argument& error) {
    Contradiction(error.what());
  }
  CheckSteps(replay_.ledger, replay_.lost);
  return std::move(replay_);
}

}  // namespace crema
