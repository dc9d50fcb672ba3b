#include "distributed/journal_replay.h"

#include <algorithm>
#include <stdexcept>
#include <string>

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

JournalReplay ReplayJournal(const std::vector<JournalRecord>& records, const ClusterState& snapshot) {
  JournalReplay replay;
  replay.job = snapshot.job();
  replay.version = snapshot.version();
  std::vector<JournalRecord::Commit> commits;
  uint64_t last = 0;  // version that the journal has reached
  bool begun = false;
  for (const JournalRecord& record : records) {
    if (record.has_start()) {
      const JournalRecord::Start& start = record.start();
      if (replay.job != 0 && start.job() != replay.job) Contradiction("they are of different trainings");
      replay.job = start.job();
      replay.epoch = std::max(replay.epoch, start.epoch() + 1);
      while (!commits.empty() && commits.back().version() > start.version()) commits.pop_back();
      // A first start may be from a snapshot of which only this journal knows nothing.
      if (begun && start.version() > last) {
        Contradiction("a start from round " + std::to_string(start.version()) + " follows round " +
                      std::to_string(last));
      }
      last = start.version();
      begun = true;
      if (start.version() == snapshot.version()) replay.iteration = start.iteration();
    } else if (record.has_commit()) {
      const JournalRecord::Commit& commit = record.commit();
      if (!begun || commit.version() != last + 1) {
        Contradiction("round " + std::to_string(commit.version()) + " follows round " + std::to_string(last));
      }
      last = commit.version();
      commits.push_back(commit);
    }
  }
  if (begun && snapshot.version() > last) {
    Contradiction("the snapshot is of round " + std::to_string(snapshot.version()) + ", the journal ends with round " +
                  std::to_string(last));
  }
  for (const JournalRecord::Commit& commit : commits) {
    if (commit.version() == snapshot.version()) {
      replay.iteration = commit.iteration();
      replay.digest = commit.digest();
    }
    if (commit.version() > snapshot.version()) replay.lost.push_back(commit);
  }
  if (!replay.lost.empty() && replay.lost.front().version() != snapshot.version() + 1) {
    Contradiction("the snapshot is of round " + std::to_string(snapshot.version()) +
                  ", which is older than the journal");
  }
  std::vector<Steps> unused;
  for (const StepRange& range : snapshot.unused()) unused.push_back(StepsOf(range));
  try {
    replay.ledger = Ledger(snapshot.next_step(), unused);
  } catch (const std::invalid_argument& error) {
    Contradiction(error.what());
  }
  CheckSteps(replay.ledger, replay.lost);
  return replay;
}

}  // namespace crema
