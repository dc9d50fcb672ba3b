#include "base/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace crema {
namespace {

Float16 OfBits(uint16_t bits) {
  Float16 half;
  half.bits = bits;
  return half;
}

// By the definition of binary16.
double ValueOf(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff;
  const double magnitude = exponent == 0    ? std::ldexp(mantissa, -24)
                           : exponent == 31 ? std::numeric_limits<double>::infinity()
                                            : std::ldexp(1024 + mantissa, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(Float16, HoldsWhatTheStandardSays) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = OfBits(static_cast<uint16_t>(bits));
    if ((bits & 0x7fff) > 0x7c00) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(float{Float16(value)})) << bits;
      continue;
    }
    EXPECT_EQ(double{value}, ValueOf(static_cast<uint16_t>(bits))) << bits;
    EXPECT_EQ(std::signbit(value), bits >> 15) << bits;
    EXPECT_EQ(Float16(value).bits, bits);
  }
}

TEST(Float16, RoundsToTheNearestAndTiesToEven) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (uint16_t bits = 0; bits < 0x7c00; ++bits) {
    const auto next = static_cast<uint16_t>(bits + 1);
    // Behind the largest number comes what would be next in the row: 65536.
    const double above = next == 0x7c00 ? 65536 : ValueOf(next);
    const float middle = static_cast<float>((ValueOf(bits) + above) / 2);
    for (const float sign : {1.0f, -1.0f}) {
      const uint16_t signed_bits = sign < 0 ? 0x8000 : 0;
      EXPECT_EQ(Float16(sign * std::nextafter(middle, 0.0f)).bits, bits | signed_bits) << bits;
      EXPECT_EQ(Float16(sign * middle).bits, (bits % 2 == 0 ? bits : next) | signed_bits) << bits;
      EXPECT_EQ(Float16(sign * std::nextafter(middle, infinity)).bits, next | signed_bits) << bits;
    }
  }
  EXPECT_EQ(Float16(std::numeric_limits<float>::max()).bits, 0x7c00);
  EXPECT_EQ(Float16(std::numeric_limits<float>::denorm_min()).bits, 0);
}

}  // namespace
}  // namespace crema
