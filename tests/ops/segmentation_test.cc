// Counts of pixels: exact at any size.
#include "ops/losses/segmentation.h"

#include <gtest/gtest.h>

#include <vector>

namespace crema {
namespace {

constexpr uint64_t kLarge = (uint64_t{1} << 45) + (uint64_t{1} << 24) - 1;  // floats next to it lie 2^21 apart

TEST(PixelCount, HoldsEveryWholeNumber) {
  for (const uint64_t number : {uint64_t{0}, uint64_t{1}, (uint64_t{1} << 24) - 1, uint64_t{1} << 24,
                                (uint64_t{1} << 24) + 1, kLarge, kLarge + 1, (uint64_t{1} << 48) - 1}) {
    EXPECT_EQ(PixelCount::Of(number).number(), number);
  }
  EXPECT_EQ(PixelCount().high, 0);
  EXPECT_EQ(PixelCount().number(), 0u);
}

TEST(CountPixels, AddsToLargeCounts) {
  PixelCounting counting;
  counting.axis = ClassAxis(Shape{1, 2, 1, 3}, 1);
  const std::vector<float> scores = {1, 0, 1, 0, 1, 0}, labels = {0, 1, 1};
  std::vector<ClassPixels> before(2), after(2);
  before[1].labelled = PixelCount::Of(kLarge);
  before[0].right = PixelCount::Of(7);
  std::vector<uint64_t> workspace(counting.workspace() / sizeof(uint64_t));
  auto* const scratch = reinterpret_cast<std::byte*>(workspace.data());
  CountPixels(counting, scores.data(), labels.data(), before.data(), after.data(), scratch);
  EXPECT_EQ(after[0].right.number(), 8u);
  EXPECT_EQ(after[0].labelled.number(), 1u);
  EXPECT_EQ(after[0].told.number(), 2u);
  EXPECT_EQ(after[1].right.number(), 1u);
  EXPECT_EQ(after[1].labelled.number(), kLarge + 2);
  EXPECT_EQ(after[1].told.number(), 1u);
  CountPixels(counting, scores.data(), labels.data(), after.data(), after.data(), scratch);
  EXPECT_EQ(after[1].labelled.number(), kLarge + 4);
  EXPECT_EQ(before[1].labelled.number(), kLarge);
}

}  // namespace
}  // namespace crema
