// The bytes that each codec writes, and codes that cannot be.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "distributed/codecs/codec.h"
#include "distributed/values.h"

namespace crema {
namespace {

Bytes WithFloats(Bytes code, std::initializer_list<float> values) {
  for (const float value : values) {
    const auto bytes = std::bit_cast<std::array<std::byte, 4>>(value);
    code.insert(code.end(), bytes.begin(), bytes.end());
  }
  return code;
}

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(CodecFormat, OptionsOutOfRangeAreRefused) {
  for (const double ratio : {0.0, -1.0, 1.5, std::nan("")}) {
    EXPECT_THROW(MakeCodec({.kind = CodecKind::kTopK, .topk_ratio = ratio}), UserError) << ratio;
  }
  for (const float threshold : {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    EXPECT_THROW(MakeCodec({.kind = CodecKind::kThreshold, .threshold = threshold}), UserError) << threshold;
  }
  for (const uint32_t column : {0u, 1u, 100u, 65600u, 0xffffffc0u}) {
    EXPECT_THROW(MakeCodec({.kind = CodecKind::kOneBit, .onebit_column = column}), UserError) << column;
  }
  EXPECT_THROW(MakeCodec({.kind = static_cast<CodecKind>(7)}), UserError);
}

TEST(CodecFormat, BytesAreThoseOfTheFormat) {
  const auto code_of = [](CodecOptions options, const std::vector<float>& values) {
    return Encoded(*MakeCodec(options), values);
  };
  EXPECT_EQ(code_of({.kind = CodecKind::kFloat32}, {1, -2}), WithFloats({}, {1, -2}));
  EXPECT_EQ(code_of({.kind = CodecKind::kFloat16}, {1, -2, 65520, 0x1p-24f, -1e30f}),
            BytesOf({0x00, 0x3c, 0x00, 0xc0, 0xff, 0x7b, 0x01, 0x00, 0xff, 0xfb}));
  EXPECT_EQ(code_of({.kind = CodecKind::kBFloat16}, {1, -2, kMost}), BytesOf({0x80, 0x3f, 0x00, 0xc0, 0x7f, 0x7f}));
  EXPECT_EQ(code_of({.kind = CodecKind::kInt8}, {127, -127, 2.5, 3.5, -0.4f}),
            WithFloats({}, {1}) + BytesOf({127, 0x81, 2, 4, 0}));
  // k = 3; gaps 1, 0, 200 - 3.
  std::vector<float> values(250, 0.5f);
  values[1] = -3;
  values[2] = 4;
  values[200] = 5;
  EXPECT_EQ(code_of({.kind = CodecKind::kTopK, .topk_ratio = 0.01}, values),
            WithFloats(BytesOf({3, 1, 0, 0xc5, 0x01}), {-3, 4, 5}));
  // Of equal ones the first; no zeros.
  EXPECT_EQ(code_of({.kind = CodecKind::kTopK, .topk_ratio = 0.5}, {1, -1, 1, 2}),
            WithFloats(BytesOf({2, 0, 2}), {1, 2}));
  EXPECT_EQ(code_of({.kind = CodecKind::kTopK, .topk_ratio = 1}, {0, 7, -0.0f}), WithFloats(BytesOf({1, 1}), {7}));
  EXPECT_EQ(code_of({.kind = CodecKind::kThreshold, .threshold = 3}, values),
            WithFloats({}, {3}) + BytesOf({0, 3, 3, 0, 0x8a, 0x03}));
  EXPECT_EQ(code_of({.kind = CodecKind::kThreshold, .threshold = 1}, {1, -2, 0.5f, 2, -1}),
            WithFloats({}, {1}) + BytesOf({1, 0x49, 0x02}));
  std::vector<float> columns(64 + 64 + 3, 1);
  std::fill_n(columns.begin(), 64, 0.0f);
  columns[65] = -3;
  columns[66] = 3;  // the mean of the positive ones is 65 / 63
  columns[128] = -1;
  columns[129] = 0;
  EXPECT_EQ(code_of({.kind = CodecKind::kOneBit, .onebit_column = 64}, columns),
            WithFloats(BytesOf({0, 1, 2}), {-3, 65.0f / 63}) + BytesOf({2, 0, 0, 0, 0, 0, 0, 0}) +
                WithFloats({}, {-1, 1}) + BytesOf({2, 1}));
}

TEST(CodecFormat, CodesThatCannotBeAreRefused) {
  const auto expect_refused = [](CodecOptions options, const Bytes& code, size_t count) {
    EXPECT_THROW(Decoded(*MakeCodec(options), code, count), MalformedCode);
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  expect_refused({.kind = CodecKind::kFloat32}, WithFloats({}, {1, -kInfinity}), 2);
  expect_refused({.kind = CodecKind::kFloat16}, BytesOf({0x00, 0x7c}), 1);
  expect_refused({.kind = CodecKind::kFloat16}, BytesOf({0x01, 0xfc}), 1);
  expect_refused({.kind = CodecKind::kBFloat16}, BytesOf({0x80, 0xff}), 1);
  expect_refused({.kind = CodecKind::kInt8}, WithFloats({}, {-1}) + BytesOf({1}), 1);
  expect_refused({.kind = CodecKind::kInt8}, WithFloats({}, {kMost / 126}) + BytesOf({1}), 1);
  expect_refused({.kind = CodecKind::kInt8}, WithFloats({}, {std::nanf("")}) + BytesOf({1}), 1);
  expect_refused({.kind = CodecKind::kInt8}, WithFloats({}, {1}) + BytesOf({0x80}), 1);
  const CodecOptions topk = {.kind = CodecKind::kTopK};
  EXPECT_EQ(Decoded(*MakeCodec(topk), WithFloats(BytesOf({1, 2}), {9}), 3), std::vector<float>({0, 0, 9}));
  expect_refused(topk, WithFloats(BytesOf({1, 3}), {9}), 3);
  expect_refused(topk, WithFloats(BytesOf({2, 2, 0}), {9, 9}), 3);
  expect_refused(topk, WithFloats(BytesOf({1, 0x82, 0x00}), {9}), 3);  // not the shortest form
  expect_refused(topk, WithFloats(BytesOf({1, 2}), {kInfinity}), 3);
  expect_refused(topk, WithFloats(BytesOf({4, 0, 0, 0, 0}), {9, 9, 9, 9}), 3);
  expect_refused(topk, BytesOf({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}), 3);
  expect_refused(topk, BytesOf({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}), 3);
  // A gap that would come round to 0.
  expect_refused(topk, WithFloats(BytesOf({2, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}), {9, 9}), 3);
  const CodecOptions threshold = {.kind = CodecKind::kThreshold};
  EXPECT_EQ(Decoded(*MakeCodec(threshold), WithFloats({}, {2}) + BytesOf({0, 1, 5}), 3),
            std::vector<float>({0, 0, -2}));
  expect_refused(threshold, WithFloats({}, {2}) + BytesOf({0, 1, 6}), 3);
  expect_refused(threshold, WithFloats({}, {2}) + BytesOf({0, 1, 5, 0}), 3);
  expect_refused(threshold, WithFloats({}, {2}) + BytesOf({2, 1, 5}), 3);
  expect_refused(threshold, WithFloats({}, {2}) + BytesOf({1, 0x03}), 3);
  expect_refused(threshold, WithFloats({}, {2}) + BytesOf({1, 0x40}), 3);  // a fourth value
  for (const float bad : {0.0f, -1.0f, kInfinity, std::nanf("")}) {
    expect_refused(threshold, WithFloats({}, {bad}) + BytesOf({0, 0}), 3);
  }
  const CodecOptions onebit = {.kind = CodecKind::kOneBit};
  EXPECT_EQ(Decoded(*MakeCodec(onebit), WithFloats(BytesOf({2}), {-1, 2}) + BytesOf({1, 2}), 3),
            std::vector<float>({0, -1, 2}));
  expect_refused(onebit, WithFloats(BytesOf({2}), {-1, 2}) + BytesOf({1, 1}), 3);  // 0 and negative
  expect_refused(onebit, WithFloats(BytesOf({2}), {-1, 2}) + BytesOf({8, 0}), 3);  // a fourth value
  expect_refused(onebit, WithFloats(BytesOf({1}), {-1, 2}) + BytesOf({8}), 3);
  expect_refused(onebit, WithFloats(BytesOf({1}), {1, 2}) + BytesOf({0}), 3);
  expect_refused(onebit, WithFloats(BytesOf({1}), {-1, -2}) + BytesOf({0}), 3);
  expect_refused(onebit, WithFloats(BytesOf({1}), {-kInfinity, 2}) + BytesOf({0}), 3);
  expect_refused(onebit, WithFloats(BytesOf({1}), {-1, std::nanf("")}) + BytesOf({0}), 3);
  expect_refused(onebit, WithFloats(BytesOf({3}), {-1, 2}) + BytesOf({0}), 3);
}

// Every half, and every float exactly between two of them, which goes to the even one.
TEST(CodecFormat, HalvesAreRoundedToTheNearestEven) {
  const auto codec = MakeCodec({.kind = CodecKind::kFloat16});
  std::vector<float> halves, middles, above, below;
  const auto value_of = [](int half) {
    const int exponent = half >> 10, fraction = half & 1023;
    return exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  };
  for (int half = 0; half < 0x7c00; ++half) halves.push_back(static_cast<float>(value_of(half)));
  EXPECT_EQ(ThroughCode(*codec, halves), halves);
  for (int half = 0; half + 1 < 0x7c00; ++half) {
    middles.push_back(static_cast<float>((value_of(half) + value_of(half + 1)) / 2));
    above.push_back(std::nextafter(middles.back(), kMost));
    below.push_back(std::nextafter(middles.back(), 0.0f));
  }
  const auto rounded = ThroughCode(*codec, middles), rounded_above = ThroughCode(*codec, above),
             rounded_below = ThroughCode(*codec, below);
  for (int half = 0; half + 1 < 0x7c00; ++half) {
    ASSERT_EQ(rounded[half], halves[half + half % 2]) << half;
    ASSERT_EQ(rounded_above[half], halves[half + 1]) << half;
    ASSERT_EQ(rounded_below[half], halves[half]) << half;
  }
}

TEST(CodecFormat, TopKSendsTheLargest) {
  for (const double ratio : {1e-6, 0.001, 0.01, 0.3, 0.99, 1.0}) {
    for (const size_t n : {size_t{1}, size_t{1000}, (size_t{1} << 18) + 1}) {
      SCOPED_TRACE(std::to_string(ratio) + " of " + std::to_string(n));
      const auto codec = MakeCodec({.kind = CodecKind::kTopK, .topk_ratio = ratio});
      auto values = Gaussians(n, n);
      // Many equal ones.
      for (float& value : values) value = std::round(value * 20) / 20;
      const auto k = std::max<size_t>(1, static_cast<size_t>(std::ceil(ratio * static_cast<double>(n))));
      std::vector<uint32_t> order(n);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](uint32_t a, uint32_t b) { return std::abs(values[a]) > std::abs(values[b]); });
      std::vector<float> expected(n);
      for (size_t i = 0; i < k; ++i) expected[order[i]] = values[order[i]];
      const auto code = Encoded(*codec, values);
      EXPECT_LE(code.size(), codec->EncodedBytesAtMost(n));
      EXPECT_TRUE(Decoded(*codec, code, n) == expected);
    }
  }
}

TEST(CodecFormat, SizesAreWhatTheyAreFor) {
  constexpr size_t kCount = 100'000;
  const auto values = Gaussians(kCount, 1);
  const auto bits_a_value = [&](CodecOptions options) {
    return 8.0 * static_cast<double>(Encoded(*MakeCodec(options), values).size()) / kCount;
  };
  EXPECT_EQ(bits_a_value({.kind = CodecKind::kFloat32}), 32);
  EXPECT_EQ(bits_a_value({.kind = CodecKind::kFloat16}), 16);
  EXPECT_EQ(bits_a_value({.kind = CodecKind::kBFloat16}), 16);
  EXPECT_LT(bits_a_value({.kind = CodecKind::kInt8}), 8.2);
  EXPECT_LT(bits_a_value({.kind = CodecKind::kTopK, .topk_ratio = 0.01}), 0.45);
  EXPECT_LT(bits_a_value({.kind = CodecKind::kThreshold, .threshold = 1}), 2.01);
  EXPECT_LT(bits_a_value({.kind = CodecKind::kThreshold, .threshold = 3}), 0.05);  // 0.27% of them
  EXPECT_LT(bits_a_value({.kind = CodecKind::kOneBit}), 1.2);
}

TEST(CodecFormat, OneBitCarriesTheMeansOfItsSigns) {
  const auto values = Gaussians(1024, 2);
  const auto decoded = ThroughCode(*MakeCodec({.kind = CodecKind::kOneBit}), values);
  for (size_t column = 0; column < values.size(); column += 512) {
    double sum = 0, decoded_sum = 0;
    for (size_t i = column; i < column + 512; ++i) {
      sum += std::max(values[i], 0.0f);
      decoded_sum += std::max(decoded[i], 0.0f);
    }
    EXPECT_NEAR(decoded_sum, sum, 1e-4 * sum);
  }
}

}  // namespace
}  // namespace crema
