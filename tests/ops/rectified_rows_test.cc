#include "ops/activations/rectified_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace crema {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Every kind of number, and enough of them to fill vectors.
std::vector<float> Numbers(int64_t count) {
  const float kinds[] = {-1, 2, 0, -0.0f, kInfinity, -kInfinity, std::nanf(""), -std::nanf(""), 1e-30f, -1e-30f};
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(kinds[(i * 7 + i / 10) % 10]);
  return numbers;
}

template <typename Number>
std::vector<Number> As(const std::vector<float>& floats) {
  std::vector<Number> numbers(floats.size());
  for (size_t i = 0; i < floats.size(); ++i) {
    if constexpr (std::is_same_v<Number, float>) {
      numbers[i] = floats[i];
    } else {
      FromFloats(&floats[i], 1, &numbers[i]);
    }
  }
  return numbers;
}

template <typename Number>
class RectifiedRows : public testing::Test {};
using Types = testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(RectifiedRows, Types);

TYPED_TEST(RectifiedRows, AreCopiedIntoWiderOnes) {
  constexpr int64_t kRows = 5, kWidth = 37, kStride = 50;
  const auto from = As<TypeParam>(Numbers(kRows * kWidth));
  auto to = As<TypeParam>(std::vector<float>(kRows * kStride, 9));
  CopyRectified<TypeParam>(kRows, kWidth, {from.data(), kWidth}, {to.data() + 3, kStride});
  for (int64_t i = 0; i < kRows * kStride; ++i) {
    const int64_t row = i / kStride, column = i % kStride - 3;
    const float actual = to[i];
    if (column < 0 || column >= kWidth) {
      EXPECT_EQ(actual, 9);
      continue;
    }
    const float x = from[row * kWidth + column];
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(actual)) << "a NaN must not vanish";
    } else {
      EXPECT_EQ(actual, x < 0 ? 0 : x);
    }
  }
}

TYPED_TEST(RectifiedRows, PassGradientsWhereTheyArePositive) {
  constexpr int64_t kRows = 4, kWidth = 33, kStride = 40;
  const auto rectified = As<TypeParam>(Numbers(kRows * kStride));
  std::vector<float> numbers;
  for (int64_t i = 0; i < kRows * kStride; ++i) numbers.push_back(static_cast<float>(i + 1));
  const auto gradient = As<TypeParam>(numbers);
  auto to = As<TypeParam>(std::vector<float>(kRows * kWidth, std::nanf("")));
  CopyRectifiedGradient<TypeParam>(kRows, kWidth, gradient.data(), rectified.data(), kStride, {to.data(), kWidth});
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t i = 0; i < kWidth; ++i) {
      const float y = rectified[row * kStride + i], expected = y > 0 ? float{gradient[row * kStride + i]} : 0.0f;
      EXPECT_EQ(float{to[row * kWidth + i]}, expected) << y;
    }
  }
}

}  // namespace
}  // namespace crema
