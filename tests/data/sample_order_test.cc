#include "data/loaders/sample_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>
#include <vector>

namespace crema {
namespace {

SampleOrder Shuffled(uint64_t records, uint64_t buffer, uint64_t seed = 7) {
  SampleOrder order;
  order.seed = seed;
  order.records = records;
  order.shuffle = true;
  order.buffer = buffer;
  return order;
}

std::vector<uint64_t> Epoch(const SampleOrder& order, uint64_t epoch) {
  std::vector<uint64_t> records;
  for (uint64_t i = 0; i < order.records; ++i) records.push_back(order.RecordAt(epoch * order.records + i));
  return records;
}

TEST(SampleOrder, EveryEpochHoldsEveryRecordOnceWhateverTheBuffer) {
  for (const uint64_t records : {1, 2, 63, 64, 65, 127, 1000, 1023, 4097}) {
    for (const uint64_t buffer : {0, 1, 2, 63, 64, 100, 128, 640, 1000, 4096, 5000}) {
      const SampleOrder order = Shuffled(records, buffer);
      for (const uint64_t epoch : {0, 1, 17}) {
        std::vector<uint64_t> found = Epoch(order, epoch);
        std::sort(found.begin(), found.end());
        std::vector<uint64_t> all(records);
        std::iota(all.begin(), all.end(), 0);
        ASSERT_EQ(found, all) << records << " records, buffer " << buffer << ", epoch " << epoch;
      }
    }
  }
}

TEST(SampleOrder, ABufferThatHoldsAllRecordsChangesNothing) {
  for (const uint64_t buffer : {500, 501, 100000})
    EXPECT_EQ(Epoch(Shuffled(500, buffer), 3), Epoch(Shuffled(500, 0), 3));
  EXPECT_NE(Epoch(Shuffled(500, 499), 3), Epoch(Shuffled(500, 0), 3));
}

TEST(SampleOrder, AGroupReadsItsBlocksAndNothingElse) {
  const SampleOrder order = Shuffled(10007, 1280);  // blocks of 20
  ASSERT_TRUE(order.in_blocks());
  EXPECT_EQ(order.block_records(), 20u);
  EXPECT_EQ(order.blocks(), 501u);
  for (const uint64_t epoch : {0, 5}) {
    const std::vector<uint64_t> records = Epoch(order, epoch);
    for (uint64_t group = 0; group * 64 < order.blocks(); ++group) {
      std::multiset<uint64_t> promised, read;
      for (uint64_t b = group * 64; b < std::min(order.blocks(), group * 64 + 64); ++b) {
        const SampleOrder::Block block = order.BlockAt(epoch, b);
        for (uint64_t i = 0; i < block.count; ++i) promised.insert((block.first + i) % order.records);
      }
      for (uint64_t i = group * 1280; i < std::min<uint64_t>(order.records, group * 1280 + 1280); ++i) {
        read.insert(records[i]);
      }
      ASSERT_EQ(read, promised) << "epoch " << epoch << ", group " << group;
    }
  }
}

TEST(SampleOrder, BlocksMixFarRecordsAndDifferInEveryEpoch) {
  const SampleOrder order = Shuffled(100000, 6400);
  const std::vector<uint64_t> first = Epoch(order, 0), second = Epoch(order, 1);
  // A batch of 64 holds records of nearly as many blocks as it could by chance: 64 (1 - (63/64)^64) = 40.6.
  double blocks = 0, distance = 0, repeated = 0;
  for (uint64_t batch = 0; batch + 64 <= order.records; batch += 64) {
    std::set<uint64_t> in_batch;
    for (uint64_t i = batch; i < batch + 64; ++i) in_batch.insert(first[i] / 100);
    blocks += static_cast<double>(in_batch.size());
  }
  for (uint64_t i = 0; i < order.records; ++i) {
    distance += std::abs(static_cast<double>(first[i]) - static_cast<double>(i));
    repeated += first[i] == second[i] ? 1 : 0;
  }
  EXPECT_GT(blocks / static_cast<double>(order.records / 64), 38);
  // Of two independent places: a third.
  EXPECT_NEAR(distance / 1e5 / 1e5, 1.0 / 3, 0.05);
  EXPECT_LT(repeated, 50);
  // Blocks begin elsewhere: neighbours at the ends of two blocks are inside one in another epoch.
  EXPECT_NE(order.BlockAt(0, 0).first % 100, order.BlockAt(1, 0).first % 100);
}

TEST(SampleOrder, DependsOnTheSeedAndNotOnWhoReads) {
  SampleOrder order = Shuffled(3000, 640);
  const std::vector<uint64_t> records = Epoch(order, 2);
  order.drawer = 99;
  EXPECT_EQ(Epoch(order, 2), records);
  EXPECT_NE(Epoch(Shuffled(3000, 640, 8), 2), records);
}

}  // namespace
}  // namespace crema
