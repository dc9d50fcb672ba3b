#include "data/databases/dataset_split.h"

#include <gtest/gtest.h>

#include "data/data_testing.h"

namespace crema {
namespace {

using testing::ExpectThrows;

TEST(DatasetSplit, ReadsNamesAndShares) {
  EXPECT_EQ(ParseSplit("").size(), 1u);
  const std::vector<DatasetPart> parts = ParseSplit("train:0.9,val:0.1");
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].name, "val");
  EXPECT_EQ(parts[1].share, 0.1);
  for (const char* text : {"train", "train:1.5,val:0.1", "a:0.5,a:0.5", "a:0.5,b:0.4", "a/b:0.5,c:0.5", ":0.5,b:0.5",
                           "a:0.5,,b:0.5", "a:0.5x,b:0.5", "a:nan,b:0.5"}) {
    ExpectThrows<UserError>([&] { ParseSplit(text); }, {"train:0.9,val:0.1"});
  }
}

TEST(DatasetSplit, GivesEachPartSomething) {
  const std::vector<DatasetPart> parts = ParseSplit("train:0.9,val:0.05,test:0.05");
  EXPECT_EQ(PartSizes(1000, parts), (std::vector<int64_t>{900, 50, 50}));
  EXPECT_EQ(PartSizes(3, parts), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_EQ(PartSizes(1, parts), (std::vector<int64_t>{1, 0, 0}));
  for (int64_t n = 0; n < 100; ++n) {
    const std::vector<int64_t> sizes = PartSizes(n, parts);
    EXPECT_EQ(sizes[0] + sizes[1] + sizes[2], n);
    for (const int64_t size : sizes) EXPECT_GE(size, n >= 3 ? 1 : 0);
  }
}

TEST(DatasetSplit, InOrderPartsAreStretches) {
  EXPECT_EQ(SplitInOrder(7, ParseSplit("train:0.7,val:0.3")), (std::vector<int>{0, 0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(SplitInOrder(2, ParseSplit("train:0.9,val:0.1")), (std::vector<int>{0, 1}));
  EXPECT_EQ(SplitInOrder(3, ParseSplit("")), (std::vector<int>{0, 0, 0}));
}

}  // namespace
}  // namespace crema
