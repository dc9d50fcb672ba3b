// balance_classes: the order of records, and the layers that have it.
#include "data/loaders/class_balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "crema/error.h"
#include "data/data_testing.h"
#include "data/image_testing.h"
#include "data/loaders/sample_order.h"
#include "data/source_driver.h"
#include "errors.h"

namespace crema {
namespace {

using testing::ExpectThrows;

// Of `counts[c]` records each class, one after the other.
std::vector<int32_t> LabelsOf(const std::vector<int>& counts) {
  std::vector<int32_t> labels;
  for (size_t c = 0; c < counts.size(); ++c) labels.insert(labels.end(), counts[c], static_cast<int32_t>(3 * c) - 1);
  return labels;
}

SampleOrder Balanced(const std::vector<int32_t>& labels, uint64_t seed = 7) {
  SampleOrder order;
  order.seed = seed;
  order.records = labels.size();
  order.classes = std::make_shared<const ClassBalance>(labels);
  return order;
}

TEST(ClassBalance, EveryEpochHoldsAllClassesEquallyOften) {
  for (const std::vector<int>& counts : std::vector<std::vector<int>>{{90, 9, 1}, {1}, {5}, {1, 1, 1}, {1000, 3}}) {
    const std::vector<int32_t> labels = LabelsOf(counts);
    const SampleOrder order = Balanced(labels);
    EXPECT_EQ(order.classes->classes(), counts.size());
    for (const uint64_t epoch : {0, 1, 17}) {
      std::map<int32_t, uint64_t> drawn;
      for (uint64_t i = 0; i < labels.size(); ++i) ++drawn[labels[order.RecordAt(epoch * labels.size() + i)]];
      ASSERT_EQ(drawn.size(), counts.size());
      const uint64_t share = labels.size() / counts.size();
      for (const auto& [label, times] : drawn) {
        EXPECT_TRUE(times == share || times == share + 1) << "class " << label << ": " << times;
      }
    }
  }
}

TEST(ClassBalance, RecordsOfAClassComeOnceEachBeforeAnyComesAgain) {
  const std::vector<int32_t> labels = LabelsOf({70, 11, 2});
  const SampleOrder order = Balanced(labels);
  // Draws of a class are counted by epochs, within which they stand in a random order.
  std::map<int32_t, std::multiset<uint64_t>> seen;
  for (uint64_t i = 0; i < 40 * labels.size(); ++i) {
    const uint64_t record = order.RecordAt(i);
    seen[labels[record]].insert(record);
    if ((i + 1) % labels.size() != 0) continue;
    for (const auto& [label, records] : seen) {
      const auto members = static_cast<size_t>(std::ranges::count(labels, label));
      const size_t least = records.size() / members;
      for (size_t r = 0; r < labels.size(); ++r) {
        if (labels[r] != label) continue;
        ASSERT_GE(records.count(r), least) << "record " << r;
        ASSERT_LE(records.count(r), least + 1) << "record " << r;
      }
    }
  }
}

TEST(ClassBalance, IsAnotherOrderInEveryEpochAndForEverySeed) {
  const std::vector<int32_t> labels = LabelsOf({40, 40});
  const auto epoch = [&](uint64_t seed, uint64_t number) {
    const SampleOrder order = Balanced(labels, seed);
    std::vector<uint64_t> records;
    for (uint64_t i = 0; i < labels.size(); ++i) records.push_back(order.RecordAt(number * labels.size() + i));
    return records;
  };
  EXPECT_EQ(epoch(7, 3), epoch(7, 3));
  EXPECT_NE(epoch(7, 3), epoch(7, 4));
  EXPECT_NE(epoch(7, 3), epoch(8, 3));
  EXPECT_FALSE(std::ranges::is_sorted(epoch(7, 0)));
}

// --- Layers ---

// Records whose classes are 0 but for the last two.
std::string WriteRareClass(const TemporaryFolder& folder) {
  std::vector<Datum> datums;
  for (int i = 0; i < 12; ++i) datums.push_back(testing::ImageDatum(1, 2, 2, i < 10 ? 0 : 1));
  testing::WriteDatums(folder / "db", datums);
  return folder / "db";
}

TEST(ClassBalance, TheDataLayerDrawsRareClassesAsOftenAsOthers) {
  const TemporaryFolder folder;
  const std::string text = "top: \"data\" top: \"label\" data_param { source: \"" + WriteRareClass(folder) +
                           "\" backend: LMDB batch_size: 4 balance_classes: true threads: 3 }";
  EXPECT_EQ(testing::SourceDriver("Data", text, TEST).setup().warnings().size(), 1u);
  testing::SourceDriver driver("Data", text, TRAIN);
  EXPECT_TRUE(driver.setup().warnings().empty());
  std::map<float, int> drawn;
  std::vector<std::vector<float>> labels;
  for (int batch = 0; batch < 9; ++batch) {
    driver.Forward();
    labels.push_back(driver.value(1));
    for (const float label : driver.value(1)) ++drawn[label];
  }
  EXPECT_EQ(drawn[0], 18);
  EXPECT_EQ(drawn[1], 18);
  testing::SourceDriver resumed("Data", text, TRAIN);
  resumed.layer().set_position(20);
  resumed.Forward();
  EXPECT_EQ(resumed.value(1), labels[5]);
}

TEST(ClassBalance, ImageDataDrawsRareClassesAsOftenAsOthers) {
  const TemporaryFolder folder;
  std::string list;
  for (int i = 0; i < 8; ++i) {
    const std::string name = std::to_string(i) + ".png";
    testing::WriteFile(folder / name, testing::Png(testing::Photograph(4, 4, 3, static_cast<uint64_t>(i))));
    list += name + (i == 3 ? " 5\n" : " 2\n");
  }
  testing::WriteFile(folder / "list.txt", list);
  const std::string text = "top: \"data\" top: \"label\" image_data_param { source: \"" + folder / "list.txt" +
                           "\" root_folder: \"" + folder / "" + "\" batch_size: 8 balance_classes: true";
  testing::SourceDriver driver("ImageData", text + " }", TRAIN);
  driver.Forward();
  EXPECT_EQ(std::ranges::count(driver.value(1), 5.0f), 4);
  ExpectThrows<UserError>([&] { testing::SourceDriver("ImageData", text + " label_count: 1 }", TRAIN); },
                          {"image_data_param.balance_classes", "needs images of one class each"});
  ExpectThrows<UserError>(
      [&] { testing::SourceDriver("ImageSegData", text + " label_type: NONE }", TRAIN); },
      {"image_data_param.balance_classes", "is for the class of a whole image, which layer \"ImageData\" gives"});
}

TEST(ClassBalance, RefusesWhatItCannotBalance) {
  const TemporaryFolder folder;
  const auto layer = [&](const std::string& type, const std::string& database, const std::string& rest = "") {
    return testing::SourceDriver(type,
                                 "top: \"data\" top: \"label\" data_param { source: \"" + database +
                                     "\" backend: LMDB batch_size: 4 balance_classes: true " + rest + " }",
                                 TRAIN);
  };
  const std::string database = WriteRareClass(folder);
  ExpectThrows<UserError>([&] { layer("Data", database, "shuffle: true shuffle_buffer: 64"); },
                          {"data_param.balance_classes", "which shuffle_buffer is to avoid"});
  ExpectThrows<UserError>([&] { layer("AnnotatedData", database); },
                          {"data_param.balance_classes", "these have objects of several"});
  Datum numbers = testing::ImageDatum(1, 2, 2, 0);
  for (const float number : {0.5f, 0.25f}) numbers.add_labels(number);
  testing::WriteDatums(folder / "numbers", {numbers, numbers});
  ExpectThrows<UserError>([&] { layer("Data", folder / "numbers"); },
                          {"data_param.balance_classes", "needs records of one class each", "have 2 numbers"});
}

}  // namespace
}  // namespace crema
