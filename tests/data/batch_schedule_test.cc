// Batches that are read by a schedule.
#include "crema/batch_schedule.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "crema/net.h"
#include "data/data_testing.h"
#include "data/loaders/prefetcher.h"

namespace crema {
namespace {

constexpr int kBatch = 10;

// Items are their positions; counts how many were made.
class Positions : public ItemLoader {
 public:
  const Shape& item_shape() const override { return shape_; }
  void Load(uint64_t position, float* data, float* label, ItemScratch&) const override {
    *data = *label = static_cast<float>(position);
    ++made;
  }
  std::string Describe(uint64_t position) const override { return std::to_string(position); }

  mutable std::atomic<int> made = 0;

 private:
  Shape shape_{1, 1, 1};
};

class Schedules : public ::testing::Test {
 protected:
  Prefetcher Make(const BatchSchedule& schedule = {}, int threads = 2, uint64_t start = 0) {
    return Prefetcher(loader_, {kBatch, 3, threads, start, schedule});
  }
  // The numbers of the next batches.
  static std::vector<int> Next(Prefetcher& prefetcher, int batches) {
    std::vector<int> numbers;
    for (int k = 0; k < batches; ++k) {
      const Batch& batch = prefetcher.Next();
      EXPECT_EQ(batch.labels[kBatch - 1], batch.labels[0] + kBatch - 1);
      EXPECT_EQ(static_cast<float>(batch.first), batch.labels[0]);
      numbers.push_back(static_cast<int>(batch.first) / kBatch);
    }
    return numbers;
  }
  // Waits until `batches` were made, and sees that no more are.
  void ExpectMade(int batches) {
    for (int wait = 0; wait < 1000 && loader_->made < batches * kBatch; ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(loader_->made, batches * kBatch);
  }

  std::shared_ptr<Positions> loader_ = std::make_shared<Positions>();
};

using Numbers = std::vector<int>;

TEST_F(Schedules, RunsThenLeapsWithAnyNumberOfThreads) {
  for (const int threads : {1, 4}) {
    Prefetcher prefetcher = Make({}, threads);
    prefetcher.Follow({2, 3, 7});
    EXPECT_EQ(prefetcher.position(), 20u);
    EXPECT_EQ(Next(prefetcher, 8), (Numbers{2, 3, 4, 9, 10, 11, 16, 17}));
    EXPECT_EQ(prefetcher.position(), 180u);
    prefetcher.Follow({5, 1, 1});
    EXPECT_EQ(Next(prefetcher, 4), (Numbers{5, 6, 7, 8}));
    prefetcher.Follow({0, 2, 4});
    EXPECT_EQ(Next(prefetcher, 3), (Numbers{0, 1, 4}));
    prefetcher.Seek(105);
    EXPECT_EQ(prefetcher.Next().first, 105u);
  }
}

TEST_F(Schedules, BatchesOfTheStreamWhateverTheStartWas) {
  Prefetcher prefetcher = Make({1, 1, 3}, 1, 5);
  EXPECT_EQ(prefetcher.position(), 5u);
  EXPECT_EQ(prefetcher.Next().first, 15u);
  EXPECT_EQ(prefetcher.position(), 35u);
  prefetcher.Follow({4, 1, 3});
  EXPECT_EQ(Next(prefetcher, 2), (Numbers{4, 7}));
}

TEST_F(Schedules, KeepsWhatWasMadeAheadWhereTheBatchesToComeAreTheSame) {
  Prefetcher prefetcher = Make({}, 1);
  ExpectMade(4);
  prefetcher.Follow({0, 5, 5});  // all, as before
  ExpectMade(4);
  prefetcher.Follow({0, 2, 6});
  ExpectMade(8);
  // From round to round.
  for (int round = 0; round < 4; ++round) {
    prefetcher.Follow({static_cast<uint64_t>(6 * round), 2, 6});
    EXPECT_EQ(Next(prefetcher, 2), (Numbers{6 * round, 6 * round + 1}));
  }
  // All but the last is given back.
  ExpectMade(8 + 7);
  const uint64_t next = 4 * 6;
  EXPECT_EQ(prefetcher.position(), next * kBatch);
  prefetcher.Follow({next, 2, 8});  // what follows differs
  ExpectMade(15 + 4);
  prefetcher.Follow({next + 1, 2, 8});  // another batch
  ExpectMade(19 + 4);
  EXPECT_EQ(Next(prefetcher, 1), (Numbers{25}));
  prefetcher.Follow({26, 2, 8});  // the next one, but now it begins a run
  EXPECT_EQ(Next(prefetcher, 3), (Numbers{26, 27, 34}));
}

std::string TwoSources(const TemporaryFolder& folder) {
  return R"(
layer { name: "a" type: "Data" top: "a" top: "la" data_param { source: ")" +
         folder / "db" + R"(" batch_size: 3 } }
layer { name: "b" type: "Data" top: "b" top: "lb" data_param { source: ")" +
         folder / "db" + R"(" batch_size: 5 } }
layer { name: "in" type: "Input" top: "in" input_param { shape { dim: 2 } } }
layer { name: "dummy" type: "DummyData" top: "dummy" dummy_data_param { shape { dim: 2 } } }
)";
}

TEST(NetBatches, AllDataLayersFollow) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 97, 1, 2, 2);
  Net net(ParseNet(TwoSources(folder), "net.prototxt"), {.phase = TEST});
  const auto firsts = [&net] {
    net.Forward();
    return std::vector<float>{net.blob("la").f32()[0], net.blob("lb").f32()[0]};
  };
  EXPECT_EQ(net.next_batch(), 0u);
  // Before the first pass, and again after it.
  for (int again = 0; again < 2; ++again) {
    net.ReadBatches({4, 2, 5});
    EXPECT_EQ(net.next_batch(), 4u);
    EXPECT_EQ(net.data_positions()[0].second, 12u);
    EXPECT_EQ(net.data_positions()[1].second, 20u);
    EXPECT_EQ(firsts(), (std::vector<float>{12, 20}));
    EXPECT_EQ(firsts(), (std::vector<float>{15, 25}));
    EXPECT_EQ(firsts(), (std::vector<float>{27, 45}));
    EXPECT_EQ(net.next_batch(), 10u);
  }
  net.set_data_position("b", 51);
  EXPECT_EQ(net.next_batch(), 11u);
  EXPECT_EQ(firsts(), (std::vector<float>{30, 51}));
}

TEST(NetBatches, RefusesSchedulesThatAreNone) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 9, 1, 2, 2);
  Net net(ParseNet(TwoSources(folder), "net.prototxt"), {.phase = TEST});
  testing::ExpectThrows<UserError>([&] { net.ReadBatches({0, 0, 1}); }, {"runs of 0", "at least one"});
  testing::ExpectThrows<UserError>([&] { net.ReadBatches({0, 4, 3}); }, {"runs of 4 that begin 3 apart"});
}

}  // namespace
}  // namespace crema
