#include "ops/dropout.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cstdint>
#include <vector>

#include "base/random.h"

namespace crema {
namespace {

std::vector<float> Generic(int64_t n, float scale) {
  const RandomStream random(1, 2);
  std::vector<float> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) values[i] = (2 * random.Uniform(i) - 1) * scale;
  return values;
}

TEST(Dropout, DropsTheWantedShareAndRepeatsItself) {
  constexpr int64_t n = 100003;
  std::vector<float> x = Generic(n, 1), y(n), again(n), other(n), dx(n);
  std::vector<uint8_t> keep(n), keep_again(n), keep_other(n);
  DropoutForward(RandomStream(1, 2), 0.3f, n, x.data(), keep.data(), y.data());
  const int before = omp_get_max_threads();
  omp_set_num_threads(3);
  DropoutForward(RandomStream(1, 2), 0.3f, n, x.data(), keep_again.data(), again.data());
  omp_set_num_threads(before);
  DropoutForward(RandomStream(1, 3), 0.3f, n, x.data(), keep_other.data(), other.data());
  EXPECT_EQ(y, again);
  EXPECT_EQ(keep, keep_again);
  int64_t kept = 0, agree = 0;
  for (int64_t i = 0; i < n; ++i) {
    kept += keep[i];
    agree += keep[i] == keep_other[i];
    ASSERT_FLOAT_EQ(y[i], keep[i] ? x[i] / 0.7f : 0.0f);
  }
  EXPECT_NEAR(static_cast<double>(kept) / n, 0.7, 0.01);
  EXPECT_NEAR(static_cast<double>(agree) / n, 0.7 * 0.7 + 0.3 * 0.3, 0.01);  // another pass, other elements
  DropoutBackward(0.3f, n, x.data(), keep.data(), dx.data());
  EXPECT_EQ(dx, y);
}

TEST(Dropout, BitsAreThoseOfTheRandomStream) {
  const RandomStream stream(99, 1234567);
  constexpr int64_t n = 700;
  std::vector<float> x(n, 1), y(n);
  std::vector<uint8_t> keep(n);
  DropoutForward(stream, 0.25f, n, x.data(), keep.data(), y.data());
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t counter = static_cast<uint64_t>(i / 256 * 64 + i % 64);
    const uint32_t word = stream.Bits(counter)[static_cast<size_t>(i % 256 / 64)];
    ASSERT_EQ(keep[i], word >= 0x40000000u ? 1 : 0) << i;
  }
}

}  // namespace
}  // namespace crema
