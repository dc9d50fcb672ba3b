#include "data/databases/record_read_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "data/data_testing.h"
#include "data/databases/datum.h"
#include "data/image_testing.h"
#include "data/source_driver.h"

namespace crema {
namespace {

// Remembers what was asked for.
class Disk : public RecordSource {
 public:
  explicit Disk(uint64_t records) : records_(records) {}

  uint64_t count() const override { return records_; }
  uint64_t bytes() const override { return records_; }
  std::span<const std::byte> Read(uint64_t) const override { return {}; }
  void ExpectReadAhead() const override { expects_ = true; }
  void ReadAhead(uint64_t first, uint64_t count) const override {
    EXPECT_TRUE(expects_);
    EXPECT_LE(first + count, records_);
    const std::lock_guard lock(mutex_);
    ++calls_;
    for (uint64_t i = first; i < first + count; ++i) asked_.insert(i);
  }
  std::string Key(uint64_t) const override { return ""; }
  void VisitKeys(const std::function<bool(uint64_t, const std::string&)>&) const override {}
  const std::string& path() const override { return path_; }

  std::multiset<uint64_t> TakeAsked() const { return std::exchange(asked_, {}); }
  int calls() const { return calls_; }
  bool Asked(uint64_t record) const { return asked_.contains(record); }

 private:
  const uint64_t records_;
  const std::string path_ = "disk";
  mutable std::mutex mutex_;
  mutable std::multiset<uint64_t> asked_;
  mutable int calls_ = 0;
  mutable bool expects_ = false;
};

SampleOrder Shuffled(uint64_t records, uint64_t buffer) {
  SampleOrder order;
  order.seed = 3;
  order.records = records;
  order.shuffle = true;
  order.buffer = buffer;
  return order;
}

TEST(RecordReadAhead, AsksForEachRecordOnceBeforeItIsRead) {
  for (const uint64_t buffer : {0, 64, 1000, 2560, 1 << 20}) {
    const auto disk = std::make_shared<Disk>(10007);
    SampleOrder order = Shuffled(10007, buffer);
    order.shuffle = buffer > 0;
    order.skip = 123;
    RecordReadAhead ahead(disk, order);
    for (uint64_t position = 0; position < 3 * order.records; ++position) {
      ahead.At(position);
      ASSERT_TRUE(disk->Asked(order.RecordAt(position))) << "buffer " << buffer << ", position " << position;
    }
    const auto asked = disk->TakeAsked();
    // What stands ahead of the last position, and at the beginning the rest of the first group, comes on top.
    EXPECT_LT(asked.size(), 3 * order.records + 2 * std::max<uint64_t>(order.in_blocks() ? buffer : 0, 256) + 200)
        << buffer;
    if (buffer == 2560) {
      EXPECT_LT(disk->calls(), 3 * 252 + 2 * 64 + 4);
    }
  }
}

TEST(RecordReadAhead, BeginsAnewWhereThePositionJumps) {
  const auto disk = std::make_shared<Disk>(100000);
  const SampleOrder order = Shuffled(100000, 640);
  RecordReadAhead ahead(disk, order);
  for (const uint64_t start : {0, 77777, 1234, 250000}) {
    for (uint64_t position = start; position < start + 2000; ++position) {
      ahead.At(position);
      ASSERT_TRUE(disk->Asked(order.RecordAt(position))) << position;
    }
    EXPECT_LT(disk->TakeAsked().size(), 2000u + 3 * 640);
  }
}

TEST(RecordReadAhead, ThreadsShareIt) {
  const auto disk = std::make_shared<Disk>(50000);
  const SampleOrder order = Shuffled(50000, 1280);
  RecordReadAhead ahead(disk, order);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t position = t * 32; position < 50000; position += 128) {
        for (uint64_t i = position; i < std::min<uint64_t>(position + 32, 50000); ++i) ahead.At(i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> asked;
  for (const uint64_t record : disk->TakeAsked()) asked.insert(record);
  EXPECT_EQ(asked.size(), 50000u);
}

TEST(RecordReadAhead, IsForDatabasesThatMemoryHardlyHolds) {
  EXPECT_TRUE(RecordReadAhead::Wanted(600, 1000));
  EXPECT_FALSE(RecordReadAhead::Wanted(400, 1000));
  // ImageNet on a machine of 16 GiB: 32768 records of 110 KB are 3.6 GB.
  EXPECT_EQ(SuggestShuffleBuffer(1281167, 140'928'370'000, uint64_t{16} << 30), 32768u);
  EXPECT_EQ(SuggestShuffleBuffer(10, 1 << 30, 1 << 20), 64u);
}

TEST(RecordReadAhead, LmdbTakesAnyRun) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 300, 3, 60, 50);
  const auto source = OpenRecordSource(folder / "db");
  EXPECT_GE(source->bytes(), 300u * 9000);
  source->ExpectReadAhead();
  for (const auto& [first, count] : {std::pair<uint64_t, uint64_t>{0, 300}, {0, 1}, {299, 1}, {17, 120}}) {
    source->ReadAhead(first, count);
  }
  DatumView datum;
  for (uint64_t i = 0; i < 300; ++i) ASSERT_EQ(ParseDatum(source->Read(i), &datum), nullptr);
}

TEST(DataLayer, MixesWithinABuffer) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 640, 1, 1, 1);
  const std::string net = "top: \"data\" top: \"label\" data_param { source: \"" + folder / "db" +
                          "\" backend: LMDB batch_size: 128 shuffle: true shuffle_buffer: 128 threads: 2 }";
  testing::SourceDriver driver("Data", net, TRAIN);
  EXPECT_TRUE(driver.setup().warnings().empty());
  std::multiset<float> seen;
  for (int batch = 0; batch < 5; ++batch) {
    driver.Forward();
    const std::vector<float>& labels = driver.value(1);
    // A batch is one group: 64 pairs of neighbours, in any order.
    std::set<int> records(labels.begin(), labels.end());
    int pairs = 0;
    for (const int record : records) pairs += records.contains((record + 1) % 640) ? 1 : 0;
    EXPECT_GE(pairs, 64);
    EXPECT_FALSE(std::is_sorted(labels.begin(), labels.end()));
    seen.insert(labels.begin(), labels.end());
  }
  EXPECT_EQ(seen.size(), 640u);
  EXPECT_EQ(std::set<float>(seen.begin(), seen.end()).size(), 640u);

  testing::SourceDriver in_order(
      "Data",
      "top: \"data\" data_param { source: \"" + folder / "db" + "\" backend: LMDB batch_size: 4 shuffle_buffer: 128 }",
      TRAIN);
  ASSERT_EQ(in_order.setup().warnings().size(), 1u);
}

}  // namespace
}  // namespace crema
