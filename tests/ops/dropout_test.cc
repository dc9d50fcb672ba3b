#include "ops/activations/dropout.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "comparison.h"

namespace crema {
namespace {

std::vector<uint32_t> Draw(const RandomStream& stream, float ratio, int64_t n) {
  std::vector<uint32_t> mask(DropoutMaskWords(n));
  for (int64_t block = 0; block * kDropoutBlock < n; ++block) {
    DrawDropoutMask(stream, ratio, block, mask.data() + block * kDropoutLanes);
  }
  return mask;
}

// Where kDropoutBlock's comment says that its bit lies.
bool Keeps(const std::vector<uint32_t>& mask, int64_t i) {
  const int64_t within = i % kDropoutBlock;
  return mask[static_cast<size_t>(i / kDropoutBlock * kDropoutLanes + within % kDropoutLanes)] >>
             (within / kDropoutLanes) &
         1;
}

TEST(Dropout, AMaskIsABitAnElement) {
  EXPECT_EQ(DropoutMaskWords(0), 0);
  EXPECT_EQ(DropoutMaskWords(1), 16);
  EXPECT_EQ(DropoutMaskWords(1 << 20), (1 << 20) / 32);
}

TEST(Dropout, DropsTheWantedShareAndRepeatsItself) {
  constexpr int64_t n = 100003;
  const std::vector<uint32_t> mask = Draw(RandomStream(1, 2), 0.3f, n);
  EXPECT_EQ(mask, Draw(RandomStream(1, 2), 0.3f, n));
  const std::vector<uint32_t> other = Draw(RandomStream(1, 3), 0.3f, n);
  int64_t kept = 0, agree = 0;
  for (int64_t i = 0; i < n; ++i) {
    kept += Keeps(mask, i);
    agree += Keeps(mask, i) == Keeps(other, i);
  }
  EXPECT_NEAR(static_cast<double>(kept) / n, 0.7, 0.01);
  EXPECT_NEAR(static_cast<double>(agree) / n, 0.7 * 0.7 + 0.3 * 0.3, 0.01);  // another pass, other elements
}

TEST(Dropout, BitsAreThoseOfTheRandomStream) {
  const RandomStream stream(99, 1234567);
  constexpr int64_t n = 1700;
  const std::vector<uint32_t> mask = Draw(stream, 0.25f, n);
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t counter = static_cast<uint64_t>(i / 256 * 64 + i % 64);
    const uint32_t word = stream.Bits(counter)[static_cast<size_t>(i % 256 / 64)];
    ASSERT_EQ(Keeps(mask, i), word >= 0x40000000u) << i;
  }
}

TEST(Dropout, MasksPartsOfBlocks) {
  const std::vector<uint32_t> mask = Draw(RandomStream(5, 6), 0.5f, kDropoutBlock);
  const std::vector<float> x = RandomValues(kDropoutBlock, 7);
  for (const int64_t n : {1, 15, 16, 17, 100, 511, 512}) {
    std::vector<float> y = Poison(kDropoutBlock);
    MaskDropoutBlock(2, n, mask.data(), x.data(), y.data());
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], Keeps(mask, i) ? 2 * x[i] : 0) << n << " " << i;
    for (int64_t i = n; i < kDropoutBlock; ++i) ASSERT_TRUE(std::isnan(y[i])) << n << " " << i;
  }
}

}  // namespace
}  // namespace crema
