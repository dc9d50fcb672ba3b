#include "distributed/journal/journal_replay.h"

#include <gtest/gtest.h>

#include "crema/error.h"

namespace crema {
namespace {

JournalRecord Start(uint64_t epoch, uint64_t version, uint64_t iteration, uint64_t job = 7) {
  JournalRecord record;
  record.mutable_start()->set_job(job);
  record.mutable_start()->set_epoch(epoch);
  record.mutable_start()->set_version(version);
  record.mutable_start()->set_iteration(iteration);
  return record;
}

JournalRecord Commit(uint64_t version, uint64_t first, uint64_t count) {
  JournalRecord record;
  record.mutable_commit()->set_version(version);
  record.mutable_commit()->set_iteration(10 * version);
  record.mutable_commit()->set_digest(100 + version);
  StepRange& steps = *record.mutable_commit()->add_share()->mutable_steps();
  steps.set_first(first);
  steps.set_count(count);
  return record;
}

ClusterState Snapshot(uint64_t version, uint64_t next) {
  ClusterState state;
  state.set_job(7);
  state.set_version(version);
  state.set_next_step(next);
  return state;
}

JournalReplay ReplayJournal(const std::vector<JournalRecord>& records, const ClusterState& snapshot) {
  JournalReplayer replayer(snapshot);
  for (const JournalRecord& record : records) replayer.Add(record);
  return replayer.Finish();
}

std::vector<uint64_t> Lost(const JournalReplay& replay) {
  std::vector<uint64_t> versions;
  for (const JournalRecord::Commit& commit : replay.lost) versions.push_back(commit.version());
  return versions;
}

TEST(JournalReplay, OfNothingIsAFirstStart) {
  const JournalReplay replay = ReplayJournal({}, {});
  EXPECT_EQ(replay.epoch, 1u);
  EXPECT_EQ(replay.version, 0u);
  EXPECT_EQ(replay.ledger.next(), 0u);
  EXPECT_TRUE(replay.lost.empty());
  EXPECT_FALSE(replay.digest);
}

TEST(JournalReplay, CommitsBeyondTheSnapshotAreLost) {
  const std::vector<JournalRecord> records = {Start(1, 0, 0), Commit(1, 0, 10), Commit(2, 10, 10), Commit(3, 20, 10)};
  const JournalReplay replay = ReplayJournal(records, Snapshot(1, 10));
  EXPECT_EQ(replay.job, 7u);
  EXPECT_EQ(replay.epoch, 2u);
  EXPECT_EQ(replay.version, 1u);
  EXPECT_EQ(replay.iteration, 10u);
  EXPECT_EQ(replay.digest, 101u);
  EXPECT_EQ(Lost(replay), (std::vector<uint64_t>{2, 3}));
  EXPECT_TRUE(ReplayJournal(records, Snapshot(3, 30)).lost.empty());
}

TEST(JournalReplay, WhatAStartMadeVoidIsNotLost) {
  // The second coordinator gave up rounds 2 and 3 after it looked for them, and made another round 2.
  const std::vector<JournalRecord> records = {Start(1, 0, 0),  Commit(1, 0, 10), Commit(2, 10, 10), Commit(3, 20, 10),
                                              Start(2, 3, 30), Start(2, 1, 10),  Commit(2, 20, 10), Start(4, 2, 20)};
  const JournalReplay replay = ReplayJournal(records, Snapshot(1, 10));
  EXPECT_EQ(replay.epoch, 5u);
  EXPECT_EQ(Lost(replay), (std::vector<uint64_t>{2}));
  EXPECT_EQ(replay.lost[0].share(0).steps().first(), 20u);
}

TEST(JournalReplay, KeepsTheLedgerOfTheSnapshot) {
  ClusterState snapshot = Snapshot(1, 30);
  snapshot.add_unused()->set_first(5);
  snapshot.mutable_unused(0)->set_count(10);
  const JournalReplay replay = ReplayJournal({Start(1, 0, 0), Commit(1, 15, 15), Commit(2, 5, 5)}, snapshot);
  EXPECT_EQ(replay.ledger.next(), 30u);
  EXPECT_EQ(replay.ledger.unused(), (std::vector<Steps>{{5, 10}}));
  EXPECT_EQ(Lost(replay), (std::vector<uint64_t>{2}));
}

TEST(JournalReplay, GoesBackBehindItsBeginning) {
  const JournalReplay replay = ReplayJournal({Start(4, 5, 50), Commit(6, 50, 10)}, Snapshot(3, 30));
  EXPECT_EQ(replay.version, 3u);
  EXPECT_EQ(replay.epoch, 5u);
  EXPECT_EQ(replay.ledger.next(), 30u);
  EXPECT_TRUE(replay.lost.empty());
  EXPECT_EQ(replay.out_of_reach, 6u);
  EXPECT_EQ(ReplayJournal({Start(4, 5, 50)}, Snapshot(3, 30)).out_of_reach, 5u);
  // Went back before: what was made since is known in full.
  const JournalReplay again = ReplayJournal(
      {Start(4, 5, 50), Commit(6, 50, 10), Start(5, 2, 20), Commit(3, 20, 10), Commit(4, 30, 10)}, Snapshot(3, 30));
  EXPECT_FALSE(again.out_of_reach);
  EXPECT_EQ(Lost(again), (std::vector<uint64_t>{4}));
}

TEST(JournalReplay, TeachesWhatDoesNotFit) {
  // Another training's snapshot, and another training's journal.
  EXPECT_THROW(ReplayJournal({Start(1, 0, 0, 8)}, Snapshot(0, 0)), UserError);
  EXPECT_THROW(ReplayJournal({Start(1, 0, 0), Start(2, 0, 0, 8)}, {}), UserError);
  // A round is missing, or comes before any start.
  EXPECT_THROW(ReplayJournal({Start(1, 0, 0), Commit(2, 0, 10)}, {}), UserError);
  EXPECT_THROW(ReplayJournal({Commit(1, 0, 10)}, {}), UserError);
  EXPECT_THROW(ReplayJournal({Start(1, 0, 0), Start(2, 1, 10)}, {}), UserError);
  // A snapshot of rounds that the journal does not know.
  EXPECT_THROW(ReplayJournal({Start(1, 0, 0), Commit(1, 0, 10)}, Snapshot(2, 20)), UserError);
  // Steps that are used twice, and a ledger that contradicts itself.
  EXPECT_THROW(ReplayJournal({Start(1, 0, 0), Commit(1, 0, 10), Commit(2, 5, 10)}, {}), UserError);
  EXPECT_THROW(ReplayJournal({Start(1, 0, 0), Commit(1, 0, 10)},
                             [] {
                               ClusterState snapshot = Snapshot(0, 5);
                               snapshot.add_unused()->set_first(4);
                               snapshot.mutable_unused(0)->set_count(3);
                               return snapshot;
                             }()),
               UserError);
}

TEST(JournalReplay, ASnapshotOfOtherParametersIsNoticed) {
  const std::vector<JournalRecord> records = {Start(1, 0, 0), Commit(1, 0, 10), Commit(2, 10, 10)};
  const JournalReplay replay = ReplayJournal(records, Snapshot(2, 20));
  EXPECT_FALSE(IsOfOthers(replay, 20, {102}));
  EXPECT_FALSE(IsOfOthers(replay, 20, {5, 102}));
  EXPECT_TRUE(IsOfOthers(replay, 20, {5, 101}));
  EXPECT_THROW(IsOfOthers(replay, 21, {102}), UserError);
  // Where the journal does not know that version, anything may be.
  const JournalReplay unknown = ReplayJournal({}, Snapshot(2, 20));
  EXPECT_FALSE(IsOfOthers(unknown, 20, {5}));
}

}  // namespace
}  // namespace crema
