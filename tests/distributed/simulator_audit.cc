#include "distributed/simulator_audit.h"

#include <algorithm>

#include "distributed/journal/digest.h"

namespace crema {

Audit::Audit(size_t words, bool stale, bool gradients, bool tournament)
    : words_(words), stale_(stale), gradients_(gradients), tournament_(tournament) {
  history_.emplace_back();
  history_[0].digest = DigestOf(*ParametersOf({}, words));
  states_.insert({0, history_[0].digest});
}

void Audit::OnMade(const Steps& steps, const Payload& values) {
  made_[{steps.first, steps.count}].insert(DigestOf(*values));
}

void Audit::OnRecord(const JournalRecord& record, int ready, int least) {
  if (record.has_start()) {
    const JournalRecord::Start& start = record.start();
    if (start.epoch() < epoch_) throw Violation("an older coordinator starts");
    epoch_ = start.epoch();
    if (start.version() >= history_.size()) throw Violation("a coordinator goes on from a round that never was");
    while (history_.size() > start.version() + 1) {
      for (const Steps& steps : history_.back().steps) {
        for (uint64_t step = steps.first; step < steps.end(); ++step) used_[step] = false;
        uses_ -= steps.count;
      }
      history_.pop_back();
    }
    if (start.iteration() != history_.back().iteration) throw Violation("a coordinator goes on from a wrong iteration");
    return;
  }
  const JournalRecord::Commit& commit = record.commit();
  if (commit.version() != history_.size()) throw Violation("a commit skips rounds");
  if (ready < least) throw Violation("a commit with fewer than min_workers");
  if (commit.share_size() == 0) throw Violation("a commit of nothing");
  Entry entry;
  entry.iteration = commit.iteration();
  const uint64_t before = history_.back().iteration;
  if (stale_ ? entry.iteration < before : entry.iteration <= before) throw Violation("a commit goes back");
  entry.tally = history_.back().tally;
  entry.digest = commit.digest();
  for (const JournalRecord::Commit::Share& share : commit.share()) {
    const Steps steps = StepsOf(share.steps());
    if (used_.size() < steps.end()) used_.resize(steps.end());
    for (uint64_t step = steps.first; step < steps.end(); ++step) {
      if (used_[step]) throw Violation("step " + std::to_string(step) + " is committed twice");
      used_[step] = true;
    }
    uses_ += steps.count;
    entry.tally.Add(steps);
    entry.steps.push_back(steps);
    if (!tournament_) continue;
    for (const uint64_t digest : made_[{steps.first, steps.count}]) states_.insert({commit.version(), digest});
  }
  if (gradients_) entry.tally.Update(before);
  if (tournament_) {
    if (states_.count({commit.version(), entry.digest}) == 0) {
      throw Violation("the parameters of round " + std::to_string(commit.version()) + " are of none of its workers");
    }
  } else if (DigestOf(*ParametersOf(entry.tally, words_)) != entry.digest) {
    throw Violation("the parameters of round " + std::to_string(commit.version()) +
                    " are not those before and its shares");
  }
  states_.insert({commit.version(), entry.digest});
  history_.push_back(std::move(entry));
}

void Audit::OnCommitted(const ClusterEvent& event) const {
  // Several at once.
  const bool newest = event.version == version();
  if (event.version > version() || (!newest && !stale_))
    throw Violation("a commit was announced that the journal does not have");
  if (event.state) {
    OnState(event.version, DigestOf(*event.state), event.state);
    if (!Counts(event.version, DigestOf(*event.state))) {
      throw Violation("other parameters were announced than committed");
    }
  }
  if (newest) OnLedger(event.next_step, event.unused);
}

void Audit::OnReady(const std::vector<uint64_t>& members) {
  const std::set<uint64_t> ready(members.begin(), members.end());
  std::erase_if(clocks_, [&](const auto& entry) { return ready.count(entry.first) == 0; });
  uint64_t slowest = 0;
  if (!clocks_.empty()) {
    slowest = std::min_element(clocks_.begin(), clocks_.end(), [](const auto& a, const auto& b) {
                return a.second < b.second;
              })->second;
  }
  for (const uint64_t member : ready) clocks_.emplace(member, slowest);
}

uint64_t Audit::OnShares(const JournalRecord::Commit& commit, uint64_t staleness) {
  for (const JournalRecord::Commit::Share& share : commit.share()) ++clocks_.at(share.member());
  uint64_t slowest = UINT64_MAX, fastest = 0;
  for (const auto& [member, clock] : clocks_) {
    slowest = std::min(slowest, clock);
    fastest = std::max(fastest, clock);
  }
  // The lease that it was allowed to begin is done.
  if (fastest - slowest > staleness + 1) throw Violation("a worker is too far ahead of the slowest");
  return fastest - slowest;
}

void Audit::OnState(uint64_t version, uint64_t digest, const Payload& state) const {
  if (states_.count({version, digest}) == 0) {
    throw Violation("somebody has parameters of round " + std::to_string(version) + " that were never committed");
  }
  if (DigestOf(*state) != digest) throw Violation("parameters do not fit their fingerprint");
}

void Audit::OnLedger(uint64_t next, const std::vector<Steps>& unused) const {
  uint64_t free = 0, end = 0;
  for (const Steps& steps : unused) {
    if (steps.first < end) throw Violation("unused steps overlap");
    end = steps.end();
    free += steps.count;
    for (uint64_t step = steps.first; step < std::min<uint64_t>(end, used_.size()); ++step) {
      if (used_[step]) throw Violation("step " + std::to_string(step) + " was used and is called unused");
    }
  }
  if (end > next || free + uses_ != next) throw Violation("steps are neither used nor unused");
}

void Audit::OnEpoch(uint64_t epoch, uint64_t* last) const {
  if (epoch < *last) throw Violation("a worker follows an older coordinator");
  *last = epoch;
}

}  // namespace crema
