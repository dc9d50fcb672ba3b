#include "data/loaders/prefetcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>

#include "data/data_testing.h"
#include "data/loaders/datum_loader.h"

namespace crema {
namespace {

struct Settings {
  int batch = 7, ahead = 4, threads = 1;
  uint64_t start = 0, seed = 1, rand_skip = 0;
  bool shuffle = false;
  Phase phase = TRAIN;
};

std::shared_ptr<const DatumLoader> Loader(const std::string& path, const TransformationParameter& param,
                                          const Settings& settings) {
  SampleOrder order;
  order.seed = settings.seed;
  order.drawer = 77;
  order.shuffle = settings.shuffle;
  order.DrawSkip(settings.rand_skip);
  return std::make_shared<DatumLoader>(OpenRecordSource(path), Transform(param, settings.phase, ""), order);
}

Prefetcher MakePrefetcher(const std::string& path, const TransformationParameter& param, const Settings& settings) {
  return Prefetcher(Loader(path, param, settings), {settings.batch, settings.ahead, settings.threads, settings.start});
}

// Data and labels of the next `batches` batches.
std::vector<float> Take(Prefetcher& prefetcher, int batches, int batch) {
  std::vector<float> all;
  for (int k = 0; k < batches; ++k) {
    const Batch& b = prefetcher.Next();
    const int64_t count = batch * prefetcher.loader().item_shape().count();
    all.insert(all.end(), b.data, b.data + count);
    all.insert(all.end(), b.labels, b.labels + batch);
  }
  return all;
}

std::vector<int> TakeLabels(Prefetcher& prefetcher, int batches, int batch) {
  std::vector<int> labels;
  for (int k = 0; k < batches; ++k) {
    const Batch& b = prefetcher.Next();
    for (int i = 0; i < batch; ++i) labels.push_back(static_cast<int>(b.labels[i]));
  }
  return labels;
}

TEST(Prefetcher, DeliversFileOrderAcrossEpochs) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 10, 1, 3, 2);
  Prefetcher prefetcher = MakePrefetcher(folder / "db", {}, {});
  EXPECT_EQ(prefetcher.current().data, nullptr);
  for (int k = 0; k < 20; ++k) {
    EXPECT_EQ(prefetcher.position(), static_cast<uint64_t>(7 * k));
    const Batch& batch = prefetcher.Next();
    EXPECT_EQ(batch.first, static_cast<uint64_t>(7 * k));
    for (int i = 0; i < 7; ++i) {
      const int record = (7 * k + i) % 10;
      ASSERT_EQ(batch.labels[i], static_cast<float>(record));
      for (int pixel = 0; pixel < 6; ++pixel) {
        ASSERT_EQ(batch.data[i * 6 + pixel], static_cast<float>((pixel * 7 + record) % 256));
      }
      EXPECT_EQ(prefetcher.loader().Describe(batch.first + i),
                "record \"0000000" + std::to_string(record) + "\" of " + folder / "db");
    }
  }
}

TEST(Prefetcher, ShuffledEpochsArePermutationsThatDiffer) {
  TemporaryFolder folder;
  constexpr int kRecords = 101;
  testing::WriteImages(folder / "db", kRecords, 1, 1, 1);
  std::vector<std::vector<int>> epochs;
  for (const uint64_t seed : {1, 2}) {
    Prefetcher prefetcher = MakePrefetcher(folder / "db", {}, {.batch = kRecords, .seed = seed, .shuffle = true});
    for (int epoch = 0; epoch < 3; ++epoch) epochs.push_back(TakeLabels(prefetcher, 1, kRecords));
  }
  for (const std::vector<int>& epoch : epochs) {
    const std::set<int> all(epoch.begin(), epoch.end());
    EXPECT_EQ(all.size(), static_cast<size_t>(kRecords));
    EXPECT_EQ(*all.begin(), 0);
    EXPECT_EQ(*all.rbegin(), kRecords - 1);
  }
  EXPECT_EQ(std::set(epochs.begin(), epochs.end()).size(), epochs.size());
}

TransformationParameter CropAndMirror() {
  TransformationParameter param;
  param.set_crop_size(5);
  param.set_mirror(true);
  param.set_scale(0.5f);
  param.add_mean_value(10);
  return param;
}

TEST(Prefetcher, ThreadsDoNotChangeTheBatches) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 53, 3, 9, 8);
  std::vector<float> expected;
  for (const int threads : {1, 3, 8}) {
    for (const int ahead : {1, 2, 6}) {
      Prefetcher prefetcher =
          MakePrefetcher(folder / "db", CropAndMirror(), {.ahead = ahead, .threads = threads, .shuffle = true});
      const std::vector<float> got = Take(prefetcher, 40, 7);
      if (expected.empty()) expected = got;
      ASSERT_TRUE(got == expected) << threads << " threads, " << ahead << " ahead";
    }
  }
  Prefetcher other = MakePrefetcher(folder / "db", CropAndMirror(), {.seed = 2, .shuffle = true});
  EXPECT_FALSE(Take(other, 40, 7) == expected);
}

TEST(Prefetcher, ContinuesFromAnyPosition) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 53, 1, 9, 8);
  const Settings settings{.threads = 2, .rand_skip = 1000, .shuffle = true};
  Prefetcher whole = MakePrefetcher(folder / "db", CropAndMirror(), settings);
  Take(whole, 12, 7);
  const uint64_t position = whole.position();
  EXPECT_EQ(position, 84u);
  const std::vector<float> expected = Take(whole, 12, 7);

  Settings resumed = settings;
  resumed.start = position;
  Prefetcher fresh = MakePrefetcher(folder / "db", CropAndMirror(), resumed);
  EXPECT_EQ(fresh.position(), position);
  EXPECT_TRUE(Take(fresh, 12, 7) == expected);

  whole.Seek(position);
  EXPECT_EQ(whole.position(), position);
  EXPECT_TRUE(Take(whole, 12, 7) == expected);

  // The same items in batches of another size.
  Settings regrouped = resumed;
  regrouped.batch = 84;
  Prefetcher one = MakePrefetcher(folder / "db", CropAndMirror(), regrouped);
  const Batch& batch = one.Next();
  for (int i = 0; i < 84; ++i) {
    const size_t at = static_cast<size_t>(i / 7) * (7 * 25 + 7) + static_cast<size_t>(i % 7) * 25;
    ASSERT_TRUE(std::equal(batch.data + i * 25, batch.data + (i + 1) * 25, expected.begin() + static_cast<long>(at)));
  }
}

TEST(Prefetcher, RanksTakeTurns) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 50, 1, 3, 2);
  for (const bool shuffle : {false, true}) {
    const Settings settings{.batch = 4, .shuffle = shuffle};
    Prefetcher alone = MakePrefetcher(folder / "db", {}, settings);
    const std::vector<int> all = TakeLabels(alone, 3 * 9, 4);
    for (uint64_t rank = 0; rank < 3; ++rank) {
      Prefetcher share(Loader(folder / "db", {}, settings), {.batch = 4, .threads = 2, .schedule = {rank, 1, 3}});
      for (int k = 0; k < 9; ++k) {
        if (k == 5) share.Seek(5 * 12);
        EXPECT_EQ(share.position(), static_cast<uint64_t>(12 * k));
        const Batch& batch = share.Next();
        const int first = 4 * (3 * k + static_cast<int>(rank));
        EXPECT_EQ(batch.first, static_cast<uint64_t>(first));
        for (int i = 0; i < 4; ++i) EXPECT_EQ(batch.labels[i], static_cast<float>(all[first + i]));
      }
    }
  }
}

TEST(Prefetcher, RandSkipLeavesOutRecordsAtTheStart) {
  TemporaryFolder folder;
  testing::WriteImages(folder / "db", 100, 1, 1, 1);
  std::set<int> firsts;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Prefetcher prefetcher = MakePrefetcher(folder / "db", {}, {.batch = 2, .seed = seed, .rand_skip = 20});
    const std::vector<int> labels = TakeLabels(prefetcher, 1, 2);
    EXPECT_LT(labels[0], 20);
    EXPECT_EQ(labels[1], labels[0] + 1);
    firsts.insert(labels[0]);
  }
  EXPECT_GT(firsts.size(), 10u);
}

TEST(Prefetcher, LabelsAreFloatsOfAnyInteger) {
  TemporaryFolder folder;
  const std::vector<int> labels = {-1, 0, 1, 16777216, INT32_MAX, INT32_MIN};
  std::vector<Datum> datums;
  for (const int label : labels) datums.push_back(testing::ImageDatum(1, 1, 1, label));
  datums.push_back(testing::ImageDatum(1, 1, 1, 5));
  datums.back().clear_label();
  testing::WriteDatums(folder / "db", datums);
  Prefetcher prefetcher = MakePrefetcher(folder / "db", {}, {.batch = 7});
  const Batch& batch = prefetcher.Next();
  for (size_t i = 0; i < labels.size(); ++i) EXPECT_EQ(batch.labels[i], static_cast<float>(labels[i]));
  EXPECT_EQ(batch.labels[6], 0);
}

TEST(Prefetcher, FloatRecordsBesideByteRecords) {
  TemporaryFolder folder;
  Datum floats = testing::ImageDatum(2, 3, 3, 4);
  const std::string data = floats.data();
  floats.clear_data();
  for (const char c : data) floats.add_float_data(static_cast<float>(static_cast<uint8_t>(c)) + 0.25f);
  testing::WriteDatums(folder / "db", {testing::ImageDatum(2, 3, 3, 4), floats});
  Prefetcher prefetcher = MakePrefetcher(folder / "db", {}, {.batch = 2});
  const Batch& batch = prefetcher.Next();
  for (int i = 0; i < 18; ++i) EXPECT_EQ(batch.data[18 + i], batch.data[i] + 0.25f);
}

TEST(Prefetcher, ErrorsReachTheConsumerInTheirBatch) {
  TemporaryFolder folder;
  std::vector<Datum> datums;
  for (int i = 0; i < 50; ++i) datums.push_back(testing::ImageDatum(1, 4, 4, i));
  datums[23] = testing::ImageDatum(1, 4, 5, 23);
  testing::WriteDatums(folder / "db", datums);
  for (const int threads : {1, 4}) {
    Prefetcher prefetcher = MakePrefetcher(folder / "db", {}, {.batch = 5, .threads = threads});
    for (int k = 0; k < 4; ++k) prefetcher.Next();
    for (int again = 0; again < 3; ++again) {
      testing::ExpectThrows<UserError>(
          [&] { prefetcher.Next(); },
          {"record \"00000023\" of " + folder / "db", "1x4x5", "first record makes 1x4x4",
           "all images of a data set must come to one size, with batch_size 1, too", "crop_size", "--resize_height"});
      EXPECT_EQ(prefetcher.position(), 20u);
      EXPECT_EQ(prefetcher.current().labels[0], 15);
    }
    prefetcher.Seek(25);
    EXPECT_EQ(prefetcher.Next().labels[0], 25);
  }
}

TEST(Prefetcher, DamagedRecordsAreNamed) {
  TemporaryFolder folder;
  const std::string good = testing::ImageDatum(1, 4, 4, 0).SerializeAsString();
  Datum encoded = testing::ImageDatum(1, 4, 4, 0);
  encoded.set_encoded(true);
  Datum short_data = testing::ImageDatum(1, 4, 4, 0);
  short_data.set_data("abc");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {good.substr(0, 9), "not a readable Datum"},
      {"", "0x0x0"},
      {encoded.SerializeAsString(), "is no image that is known"},
      {short_data.SerializeAsString(), "holds 3 bytes"},
      {testing::ImageDatum(3, 4, 4, 0).SerializeAsString(), "3x4x4"}};
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string path = folder / ("db" + std::to_string(i));
    testing::WriteRecords(path, {good, cases[i].first});
    Prefetcher prefetcher = MakePrefetcher(path, {}, {.batch = 2});
    testing::ExpectThrows<UserError>([&] { prefetcher.Next(); }, {"record \"00000001\" of " + path, cases[i].second});
    if (i == 4) continue;  // a good record by itself
    const std::string first = path + "_first";
    testing::WriteRecords(first, {cases[i].first, good});
    testing::ExpectThrows<UserError>([&] { Loader(first, {}, {}); },
                                     {"record \"00000000\" of " + first, cases[i].second});
  }
}

TEST(Prefetcher, CropsMakeImagesOfDifferentSizesEqual) {
  TemporaryFolder folder;
  testing::WriteDatums(folder / "db", {testing::ImageDatum(1, 4, 4, 0), testing::ImageDatum(1, 6, 5, 1),
                                       testing::ImageDatum(1, 2, 9, 2), testing::ImageDatum(2, 4, 4, 3)});
  TransformationParameter param;
  param.set_crop_size(2);
  Prefetcher prefetcher = MakePrefetcher(folder / "db", param, {.batch = 3, .phase = TEST});
  const Batch& batch = prefetcher.Next();
  EXPECT_EQ(batch.data[4], static_cast<float>((2 * 5 + 1) * 7 + 1));  // row 2, column 1 of 6x5
  testing::ExpectThrows<UserError>([&] { prefetcher.Next(); }, {"00000003", "2x4x4"});
  param.set_crop_size(3);
  Prefetcher larger = MakePrefetcher(folder / "db", param, {.batch = 3, .phase = TEST});
  testing::ExpectThrows<UserError>([&] { larger.Next(); }, {"00000002", "crop_size 3 exceeds", "1x2x9"});
}

// Counts how far the workers get.
class CountingLoader : public ItemLoader {
 public:
  const Shape& item_shape() const override { return shape_; }
  void Load(uint64_t position, float* data, float* label, ItemScratch&) const override {
    *data = *label = static_cast<float>(position);
    ++loaded;
  }
  std::string Describe(uint64_t position) const override { return std::to_string(position); }

  mutable std::atomic<int> loaded = 0;

 private:
  Shape shape_{1, 1, 1};
};

TEST(Prefetcher, RunsAheadByTheNumberAskedForOnly) {
  const auto loader = std::make_shared<CountingLoader>();
  Prefetcher prefetcher(loader, {.batch = 10, .ahead = 3, .threads = 2});
  const auto expect_loaded = [&](int items) {
    for (int wait = 0; wait < 1000 && loader->loaded < items; ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(loader->loaded, items);
  };
  expect_loaded(40);  // a batch for the consumer to hold and three ahead
  const float* first = prefetcher.Next().data;
  expect_loaded(40);
  EXPECT_EQ(first[9], 9);
  prefetcher.Next();
  expect_loaded(50);
}

TEST(Prefetcher, StopsCleanlyAtAnyMoment) {
  for (int round = 0; round < 200; ++round) {
    const auto loader = std::make_shared<CountingLoader>();
    Prefetcher prefetcher(loader, {.batch = 3, .ahead = 2, .threads = 1 + round % 4});
    for (int k = 0; k < round % 7; ++k) EXPECT_EQ(prefetcher.Next().labels[2], static_cast<float>(3 * k + 2));
    if (round % 3 == 0) {
      prefetcher.Seek(1000);
      EXPECT_EQ(prefetcher.Next().labels[0], 1000);
    }
  }
}

TEST(Prefetcher, BatchesBeyondMemoryAreAnEnvironmentError) {
  const auto loader = std::make_shared<CountingLoader>();
  testing::ExpectThrows<EnvironmentError>([&] { Prefetcher(loader, {.batch = int64_t{1} << 60}); }, {"lower prefetch"});
}

}  // namespace
}  // namespace crema
